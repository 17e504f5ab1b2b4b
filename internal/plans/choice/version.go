package choice

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"maps"
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/spillway-dev/spillway/api/kudo/v1beta1"
	"github.com/spillway-dev/spillway/internal/vocabulary"
)

// Version is an OperatorVersion, or the pinned content of one.
type Version struct {
	Namespace, Name string
	UID             types.UID
	// Hash is the [ContentHash] of the spec.
	Hash string
	Spec *v1beta1.OperatorVersionSpec
	// KeepsAll is true if nothing of it is ever pruned ([vocabulary.Prune]).
	KeepsAll bool
}

// NewVersion makes a Version of an OperatorVersion.
func NewVersion(ov *v1beta1.OperatorVersion) *Version {
	return &Version{
		Namespace: ov.Namespace, Name: ov.Name, UID: ov.UID, Hash: ContentHash(&ov.Spec), Spec: &ov.Spec,
		KeepsAll: vocabulary.Prune.Get(ov.Annotations) == "false",
	}
}

// SameTarget is true of two specs that want the same; requested plans do not count.
func SameTarget(namespace string, a, b *v1beta1.InstanceSpec) bool {
	return sameVersion(namespace, a, b) && maps.EqualFunc(WithTokens(a), WithTokens(b), isSame)
}

func sameVersion(namespace string, a, b *v1beta1.InstanceSpec) bool {
	return VersionKey(namespace, a) == VersionKey(namespace, b)
}

// Target is a copy of a spec without the plan that it requests.
func Target(spec *v1beta1.InstanceSpec) *v1beta1.InstanceSpec {
	t := spec.DeepCopy()
	t.PlanExecution = v1beta1.PlanExecution{}
	return t
}

// PinOf names the ControllerRevision with the content that the last plan of an Instance
// began with; false if it never had one.
func PinOf(i *v1beta1.Instance) (types.NamespacedName, bool) {
	e := i.Status.Execution
	if e == nil || e.ContentHash == "" {
		return types.NamespacedName{}, false
	}
	return PinKey(i, &e.Spec, e.ContentHash), true
}

// PinKey names the ControllerRevision with the content of an OperatorVersion with which
// plans of an Instance run. It is in the namespace of the Instance, because nothing is
// written outside of that: for an OperatorVersion that another namespace shares, each
// Instance keeps its own.
func PinKey(i *v1beta1.Instance, spec *v1beta1.InstanceSpec, hash string) types.NamespacedName {
	version := VersionKey(i.Namespace, spec)
	name := version.Name
	if version.Namespace != i.Namespace {
		name = i.Name + "." + version.Namespace + "." + version.Name
	}
	return types.NamespacedName{Namespace: i.Namespace, Name: PinName(name, hash)}
}

// PinOwner owns the pinned contents of a version with which plans of an Instance run: the
// OperatorVersion, or the Instance if that is of another namespace.
func PinOwner(i *v1beta1.Instance, v *Version) metav1.OwnerReference {
	if v.Namespace != i.Namespace {
		return metav1.OwnerReference{APIVersion: v1beta1.GroupVersion.String(), Kind: "Instance", Name: i.Name, UID: i.UID}
	}
	return metav1.OwnerReference{APIVersion: v1beta1.GroupVersion.String(), Kind: "OperatorVersion", Name: v.Name, UID: v.UID}
}

// VersionKey names the OperatorVersion of a spec.
func VersionKey(namespace string, spec *v1beta1.InstanceSpec) types.NamespacedName {
	if spec.OperatorVersion.Namespace != "" {
		namespace = spec.OperatorVersion.Namespace
	}
	return types.NamespacedName{Namespace: namespace, Name: spec.OperatorVersion.Name}
}

// MayUse is true if Instances of a namespace may use an OperatorVersion: one of their
// own, or one that its owner shares with them. Its templates are rendered into their
// namespace, where others may read them.
func MayUse(namespace string, version metav1.Object) bool {
	return version.GetNamespace() == namespace ||
		vocabulary.IsSharedWith(vocabulary.SharedWith.Get(version.GetAnnotations()), namespace)
}

// PinsKept is how many contents of an OperatorVersion are kept, besides those that
// running plans use.
const PinsKept = 10

// OutdatedPins are those of the ControllerRevisions of an owner that nothing needs: not
// the newest one, which has just been made, and none with which a plan of the Instances
// runs. All are of one namespace.
func OutdatedPins(all []metav1.PartialObjectMetadata, owner types.UID, newest string, instances []v1beta1.Instance) []metav1.PartialObjectMetadata {
	needed := map[string]bool{newest: true}
	for i := range instances {
		if e := instances[i].Status.Running(); e != nil {
			needed[PinKey(&instances[i], &e.Spec, e.ContentHash).Name] = true
		}
	}
	pins := slices.DeleteFunc(slices.Clone(all), func(m metav1.PartialObjectMetadata) bool {
		return !slices.ContainsFunc(m.OwnerReferences, func(o metav1.OwnerReference) bool { return o.UID == owner })
	})
	slices.SortStableFunc(pins, func(a, b metav1.PartialObjectMetadata) int {
		return b.CreationTimestamp.Compare(a.CreationTimestamp.Time)
	})
	return slices.DeleteFunc(pins[min(PinsKept, len(pins)):], func(m metav1.PartialObjectMetadata) bool { return needed[m.Name] })
}

// ContentHash names the content of an OperatorVersion: the same for the same
// spec, whatever the object is called.
func ContentHash(spec *v1beta1.OperatorVersionSpec) string {
	raw, err := json.Marshal(spec) // maps are written in the order of their keys
	if err != nil {
		return ""
	}
	return shortHash(raw)
}

// PinName is the name of the ControllerRevision with the content of an
// OperatorVersion.
func PinName(version, hash string) string {
	const longest = 253 - 1 - 16
	if len(version) > longest {
		version = version[:longest-17] + "-" + shortHash([]byte(version))
	}
	return fmt.Sprintf("%s-%s", version, hash)
}

func shortHash(raw []byte) string {
	sum := sha256.Sum256(raw)
	return hex.EncodeToString(sum[:])[:16]
}
