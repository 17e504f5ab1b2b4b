package revisions

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/spillway-dev/spillway/internal/config/content"
	"github.com/spillway-dev/spillway/internal/config/pin"
	"github.com/spillway-dev/spillway/internal/vocabulary"
)

// Snapshot is an immutable copy of an object with an earlier or the present content.
type Snapshot struct {
	pin.Pin

	Created time.Time
}

// Snapshots are those of a namespace that exist, without their values.
type Snapshots []Snapshot

// SnapshotsIn lists the snapshots of a namespace.
func SnapshotsIn(ctx context.Context, reader client.Reader, namespace string) (Snapshots, error) {
	var all Snapshots
	for _, kind := range []content.Kind{content.ConfigMap, content.Secret} {
		list := &metav1.PartialObjectMetadataList{}
		list.SetGroupVersionKind(corev1.SchemeGroupVersion.WithKind(string(kind) + "List"))
		if err := reader.List(ctx, list, client.InNamespace(namespace), client.MatchingLabels{vocabulary.Snapshot.Native: "true"}); err != nil {
			return nil, fmt.Errorf("list the snapshots of %ss: %w", kind, err)
		}
		for i := range list.Items {
			if s, ok := snapshotOf(kind, &list.Items[i]); ok {
				all = append(all, s)
			}
		}
	}
	slices.SortFunc(all, func(a, b Snapshot) int { return b.Created.Compare(a.Created) })
	return all, nil
}

// snapshotOf reads what a snapshot says of itself; false if its name does not follow from it.
func snapshotOf(kind content.Kind, m *metav1.PartialObjectMetadata) (Snapshot, bool) {
	_, name, found := strings.Cut(vocabulary.SnapshotOf.Get(m.Annotations), "/")
	digest := m.Name[strings.LastIndexByte(m.Name, '-')+1:]
	s := Snapshot{Pin: pin.Pin{Kind: kind, Name: name, Digest: digest}, Created: m.CreationTimestamp.Time}
	return s, found && s.Snapshot() == m.Name
}

// Has is true if the snapshot of a pin exists, or needs not to.
func (s Snapshots) Has(p pin.Pin) bool {
	return !p.HasSnapshot() || slices.ContainsFunc(s, func(of Snapshot) bool { return of.Pin == p })
}

// Of are the snapshots of one object, the newest first.
func (s Snapshots) Of(kind content.Kind, name string) Snapshots {
	return slices.DeleteFunc(slices.Clone(s), func(of Snapshot) bool { return of.Kind != kind || of.Name != name })
}

// PresentOf is the pin of an object with the content that it has now.
func PresentOf(ctx context.Context, reader client.Reader, o content.Object) (pin.Pin, error) {
	facts, err := Facts(ctx, reader, o)
	if err != nil {
		return pin.Pin{}, err
	}
	return PinOf(facts, o), nil
}

// Facts are what is known of objects without their values.
func Facts(ctx context.Context, reader client.Reader, objects ...content.Object) (content.Facts, error) {
	var found []client.Object
	for _, o := range objects {
		obj := o.Kind.New()
		err := reader.Get(ctx, client.ObjectKey{Namespace: o.Namespace, Name: o.Name}, obj)
		if apierrors.IsNotFound(err) {
			continue
		}
		if err != nil {
			return nil, fmt.Errorf("get %s %s: %w", o.Kind, o.Name, err)
		}
		content.Digest(obj)
		found = append(found, obj)
	}
	return content.FactsOf(found...), nil
}

// PinOf is the pin of an object with the content that it has by some facts.
func PinOf(facts content.Facts, o content.Object) pin.Pin {
	digest, exists := facts.DigestOf(o)
	if !exists {
		digest = pin.Absent
	}
	return pin.Pin{Kind: o.Kind, Name: o.Name, Digest: pin.ShortDigest(digest)}
}
