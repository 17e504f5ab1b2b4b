package config

import (
	"crypto/sha256"
	"maps"
	"strings"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/spillway-dev/spillway/internal/vocabulary"
)

// digestSize is half a SHA-256: enough that no two values of one key collide.
const digestSize = 16

// digested marks, in the generateName that nobody looks at once there is a
// name, an object whose values were replaced by digests, because a transform
// may meet an object twice.
const digested = "digested-"

// digestOf stands for a value in the cache.
func digestOf(value []byte) string {
	sum := sha256.Sum256(value)
	return string(sum[:digestSize])
}

// Digest reduces a ConfigMap or Secret to what the ring keeps of it: who it is,
// which of our annotations it has, and a digest of each value. The cache does so
// to all that it holds, so that no payload stays in memory. It changes the
// object that it is given.
func Digest(obj client.Object) {
	switch o := obj.(type) {
	case *corev1.ConfigMap:
		digestConfigMap(o)
	case *corev1.Secret:
		digestSecret(o)
	}
}

// digestedFacts reduces an object, and returns what is known of it then.
func digestedFacts(obj client.Object) facts {
	Digest(obj)
	return factsOf(obj)
}

func digestConfigMap(o *corev1.ConfigMap) {
	if o.GenerateName == digested {
		return
	}
	digests := make(map[string]string, len(o.Data)+len(o.BinaryData))
	for key, value := range configMapValues(o) {
		digests[strings.Clone(key)] = digestOf(value)
	}
	o.Data, o.BinaryData, o.Immutable = digests, nil, nil
	o.ObjectMeta = identity(&o.ObjectMeta)
}

func digestSecret(o *corev1.Secret) {
	if o.GenerateName == digested {
		return
	}
	digests := make(map[string][]byte, len(o.Data))
	for key, value := range o.Data {
		digests[strings.Clone(key)] = []byte(digestOf(value))
	}
	o.Data, o.StringData, o.Immutable, o.Type = digests, nil, nil, ""
	o.ObjectMeta = identity(&o.ObjectMeta)
}

// configMapValues are the values as the predecessor hashes them: data, then
// binaryData over it.
func configMapValues(o *corev1.ConfigMap) map[string][]byte {
	values := make(map[string][]byte, len(o.Data)+len(o.BinaryData))
	for key, value := range o.Data {
		values[key] = []byte(value)
	}
	maps.Copy(values, o.BinaryData)
	return values
}

// identity keeps of an object's metadata only what the ring looks at. Strings
// are cloned so that they do not keep the message alive that they came in.
func identity(m *metav1.ObjectMeta) metav1.ObjectMeta {
	return metav1.ObjectMeta{
		Name:            strings.Clone(m.Name),
		Namespace:       strings.Clone(m.Namespace),
		UID:             m.UID,
		ResourceVersion: strings.Clone(m.ResourceVersion),
		Annotations:     only(m.Annotations, vocabulary.Ignored, vocabulary.SharedWith),
		OwnerReferences: workloadOwners(m.OwnerReferences),
		GenerateName:    digested,
	}
}

// only keeps the annotations of some keys; nil if there are none.
func only(annotations map[string]string, keys ...vocabulary.Key) map[string]string {
	var kept map[string]string
	for _, key := range keys {
		if value, name, ok := key.Lookup(annotations); ok {
			if kept == nil {
				kept = map[string]string{}
			}
			kept[name] = value
		}
	}
	return kept
}

// workloadOwners are the owner references as old versions of the predecessor
// made them: to a workload, not as its controller.
func workloadOwners(refs []metav1.OwnerReference) []metav1.OwnerReference {
	var owners []metav1.OwnerReference
	for _, ref := range refs {
		if !is(ref.Controller) && strings.HasPrefix(ref.APIVersion, "apps/") && workloadKinds[ref.Kind] {
			owners = append(owners, ref)
		}
	}
	return owners
}

// facts are what is known of an object without its values.
type facts struct {
	exists bool
	// version is uid and resourceVersion.
	version string
	ignored bool
	// sharedWith lists the namespaces that may name the object as an extra one.
	sharedWith string
	// digests has a digest for each key.
	digests map[string]string
}

// factsOf reads a digested object.
func factsOf(obj client.Object) facts {
	f := facts{
		exists:     true,
		version:    string(obj.GetUID()) + "/" + obj.GetResourceVersion(),
		ignored:    vocabulary.Ignored.Get(obj.GetAnnotations()) == "true",
		sharedWith: vocabulary.SharedWith.Get(obj.GetAnnotations()),
	}
	switch o := obj.(type) {
	case *corev1.ConfigMap:
		f.digests = o.Data
	case *corev1.Secret:
		f.digests = make(map[string]string, len(o.Data))
		for key, digest := range o.Data {
			f.digests[key] = string(digest)
		}
	}
	return f
}

// sharedTo is true if workloads of the namespace may name the object.
func (f facts) sharedTo(namespace string) bool {
	for entry := range strings.SplitSeq(f.sharedWith, ",") {
		if entry = strings.TrimSpace(entry); entry == "*" || entry == namespace {
			return true
		}
	}
	return false
}
