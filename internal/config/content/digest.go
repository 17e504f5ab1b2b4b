package content

import (
	"context"
	"crypto/sha256"
	"maps"
	"strings"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/spillway-dev/spillway/internal/kube"
	"github.com/spillway-dev/spillway/internal/vocabulary"
)

// digestSize is half a SHA-256: enough that no two values of one key collide.
const digestSize = 16

// digested marks an object whose values were replaced by digests, because a
// transform may receive an object twice. It is kept in generateName, which has no
// meaning once there is a name.
const digested = "digested-"

// Digesting returns a reader that reads what the cache would contain: objects
// reduced by [Digest].
func Digesting(reader client.Reader) client.Reader { return digestingReader{reader} }

type digestingReader struct{ client.Reader }

// Get reads an object and reduces it.
func (d digestingReader) Get(ctx context.Context, key client.ObjectKey, obj client.Object, opts ...client.GetOption) error {
	if err := d.Reader.Get(ctx, key, obj, opts...); err != nil {
		return err //nolint:wrapcheck // stands in for the reader
	}
	Digest(obj)
	return nil
}

// Digest reduces a ConfigMap or Secret to what the ring keeps of it: its
// identity, the annotations that the ring reads, and a digest of each value. It
// is the transform of the cache, so that no payload stays in memory. It changes
// the object in place.
func Digest(obj client.Object) {
	switch o := obj.(type) {
	case *corev1.ConfigMap:
		digestConfigMap(o)
	case *corev1.Secret:
		digestSecret(o)
	}
}

func digestConfigMap(o *corev1.ConfigMap) {
	if o.GenerateName == digested {
		return
	}
	digests := make(map[string]string, len(o.Data)+len(o.BinaryData))
	for key, value := range configMapValues(o) {
		digests[strings.Clone(key)] = digestOf(value)
	}
	o.Data, o.BinaryData = digests, nil
	if !IsSnapshot(o) {
		o.Immutable = nil
	}
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
	o.Data, o.StringData = digests, nil
	if !IsSnapshot(o) {
		o.Immutable = nil
	}
	if o.Type != corev1.SecretTypeServiceAccountToken {
		o.Type = ""
	}
	o.ObjectMeta = identity(&o.ObjectMeta)
}

// IsDigested is true of an object that was reduced by [Digest].
func IsDigested(obj client.Object) bool { return obj.GetGenerateName() == digested }

// digestOf stands for a value in the cache.
func digestOf(value []byte) string {
	sum := sha256.Sum256(value)
	return string(sum[:digestSize])
}

// configMapValues are the values as wave hashes them: data, then binaryData over
// it.
func configMapValues(o *corev1.ConfigMap) map[string][]byte {
	values := make(map[string][]byte, len(o.Data)+len(o.BinaryData))
	for key, value := range o.Data {
		values[key] = []byte(value)
	}
	maps.Copy(values, o.BinaryData)
	return values
}

// identity keeps of an object's metadata only what the ring reads. Strings are
// cloned so that they do not keep alive the message that they arrived in.
func identity(m *metav1.ObjectMeta) metav1.ObjectMeta {
	kept := metav1.ObjectMeta{
		Name:            strings.Clone(m.Name),
		Namespace:       strings.Clone(m.Namespace),
		UID:             m.UID,
		ResourceVersion: strings.Clone(m.ResourceVersion),
		Annotations:     only(m.Annotations, vocabulary.Ignored, vocabulary.SkipHashCalculation, vocabulary.SharedWith, vocabulary.StopOnFailure, vocabulary.StoppedBy, vocabulary.RetryConfig, vocabulary.OnConfigFailure, vocabulary.Paused, vocabulary.PausedBy),
		OwnerReferences: workloadOwners(m.OwnerReferences),
		GenerateName:    digested,

		CreationTimestamp: m.CreationTimestamp,
		ManagedFields:     kube.Attribution(m, dataField, binaryField),
	}
	if IsSnapshot(m) {
		kept.Labels, kept.ManagedFields = only(m.Labels, vocabulary.Snapshot), nil
		kept.Annotations = only(m.Annotations, vocabulary.SnapshotOf)
	}
	return kept
}

// The fields that have the values of an object.
const dataField, binaryField = "data", "binaryData"

// IsSnapshot is true of an object that says that it is a snapshot of another one.
func IsSnapshot(m metav1.Object) bool { return vocabulary.Snapshot.Get(m.GetLabels()) == "true" }

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

// workloadOwners are the owner references as old versions of wave wrote them: to
// a workload that is not the controller.
func workloadOwners(refs []metav1.OwnerReference) []metav1.OwnerReference {
	var owners []metav1.OwnerReference
	for _, ref := range refs {
		if !is(ref.Controller) && strings.HasPrefix(ref.APIVersion, "apps/") {
			owners = append(owners, ref)
		}
	}
	return owners
}
