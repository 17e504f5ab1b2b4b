package plans

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/spillway-dev/spillway/api/kudo/v1beta1"
	"github.com/spillway-dev/spillway/internal/kube"
)

// ContentHash names the content of an OperatorVersion: the same for the same
// spec, whatever the object is called.
func ContentHash(spec *v1beta1.OperatorVersionSpec) string {
	raw, err := json.Marshal(spec) // maps are written in the order of their keys
	if err != nil {
		return ""
	}
	return shortened(raw)
}

func shortened(raw []byte) string {
	sum := sha256.Sum256(raw)
	return hex.EncodeToString(sum[:])[:16]
}

// PinName is the name of what keeps the content of an OperatorVersion.
func PinName(version, hash string) string {
	const longest = 253 - 1 - 16
	if len(version) > longest {
		version = version[:longest-17] + "-" + shortened([]byte(version))
	}
	return fmt.Sprintf("%s-%s", version, hash)
}

// PinsKept is how many contents of an OperatorVersion are kept, besides those with
// which plans run.
const PinsKept = 10

// outdated are what keeps contents of an OperatorVersion that nobody needs any more.
func outdated(kept []metav1.PartialObjectMetadata, v *Version, instances []v1beta1.Instance) []metav1.PartialObjectMetadata {
	needed := map[string]bool{PinName(v.Name, v.Hash): true}
	for i := range instances {
		if e := instances[i].Status.Execution; e != nil && e.FinishedAt == nil {
			needed[PinName(e.Spec.OperatorVersion.Name, e.ContentHash)] = true
		}
	}
	of := slices.DeleteFunc(slices.Clone(kept), func(m metav1.PartialObjectMetadata) bool {
		return !slices.ContainsFunc(m.OwnerReferences, func(o metav1.OwnerReference) bool { return o.UID == v.UID })
	})
	slices.SortStableFunc(of, func(a, b metav1.PartialObjectMetadata) int {
		return b.CreationTimestamp.Compare(a.CreationTimestamp.Time)
	})
	return slices.DeleteFunc(of[min(PinsKept, len(of)):], func(m metav1.PartialObjectMetadata) bool { return needed[m.Name] })
}

// GeneratedFieldOwner is the name under which stands what was generated once.
const GeneratedFieldOwner = kube.FieldOwner + "/generated"

// FieldOwner is the name under which an Instance's fields stand in managedFields.
func FieldOwner(instance string) string {
	const longest = 128
	owner := kube.FieldOwner + "/instance/" + instance
	if len(owner) > longest {
		owner = kube.FieldOwner + "/instance/" + shortened([]byte(instance))
	}
	return owner
}
