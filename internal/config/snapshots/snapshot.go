package snapshots

import (
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/spillway-dev/spillway/internal/config/content"
	"github.com/spillway-dev/spillway/internal/config/pin"
	"github.com/spillway-dev/spillway/internal/vocabulary"
)

// Grace is how long a snapshot is kept to which nothing refers yet: it is written before what
// refers to it.
const Grace = 2 * time.Minute

// Key is a snapshot: an object of a namespace with one content.
type Key struct {
	Namespace string
	pin.Pin
}

// object is the name of the snapshot.
func (k Key) object() client.ObjectKey {
	return client.ObjectKey{Namespace: k.Namespace, Name: k.Snapshot()}
}

// SourceOf is the key of a snapshot that was reduced by [content.Digest]; false if the object
// is none: its name has to follow from its content.
func SourceOf(obj client.Object) (Key, bool) {
	uid, name, found := strings.Cut(vocabulary.SnapshotOf.Get(obj.GetAnnotations()), "/")
	if !content.IsSnapshot(obj) || !found || !isImmutable(obj) {
		return Key{}, false
	}
	k := Key{Namespace: obj.GetNamespace(), Pin: pin.Pin{
		Kind: content.ObjectOf(obj).Kind, Name: name, Digest: pin.ShortDigest(content.DigestAs(obj, uid)),
	}}
	return k, k.Snapshot() == obj.GetName()
}

func isImmutable(obj client.Object) bool {
	switch o := obj.(type) {
	case *corev1.ConfigMap:
		return o.Immutable != nil && *o.Immutable
	case *corev1.Secret:
		return o.Immutable != nil && *o.Immutable
	default:
		return false
	}
}

// snapshotOf is the snapshot of an object as it is.
func snapshotOf(source client.Object, k Key) client.Object {
	return copyOf(source, k.Namespace, k.Snapshot(), string(source.GetUID())+"/"+source.GetName())
}

// againOf is a snapshot as it was written.
func againOf(snapshot client.Object) client.Object {
	return copyOf(snapshot, snapshot.GetNamespace(), snapshot.GetName(), vocabulary.SnapshotOf.Get(snapshot.GetAnnotations()))
}

func copyOf(source client.Object, namespace, name, of string) client.Object {
	immutable := true
	meta := metav1.ObjectMeta{
		Namespace: namespace, Name: name,
		Labels:      map[string]string{vocabulary.Snapshot.Native: "true", "app.kubernetes.io/managed-by": "spillway"},
		Annotations: map[string]string{vocabulary.SnapshotOf.Native: of},
	}
	switch o := source.(type) {
	case *corev1.Secret:
		return &corev1.Secret{ObjectMeta: meta, Immutable: &immutable, Type: o.Type, Data: o.Data}
	case *corev1.ConfigMap:
		return &corev1.ConfigMap{ObjectMeta: meta, Immutable: &immutable, Data: o.Data, BinaryData: o.BinaryData}
	default:
		return nil
	}
}
