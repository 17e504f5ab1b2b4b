package policy

import (
	"context"
	"errors"
	"fmt"
	"slices"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	apimeta "k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/spillway-dev/spillway/api/spillway/v1alpha1"
)

// Reader reads policies. Of those that have not changed it keeps what it has read. It is for
// one caller at a time.
type Reader struct {
	reader client.Reader
	kinds  *Kinds
	// lenient is true for a user who explains: what must not be read counts as absent.
	lenient bool
	known   map[types.UID]known
}

// known is a policy as it was at a version.
type known struct {
	version string
	policy  *Policy
}

// NewReader reads for a user, with what the user may read, the policies of a manager of some
// namespaces, of all if there are none.
func NewReader(reader client.Reader, namespaces []string) *Reader {
	r := &Reader{reader: reader, lenient: true, kinds: &Kinds{records: true}}
	for _, k := range KindsFor(namespaces) {
		_ = r.kinds.Add(k) // none waits for it
	}
	return r
}

// Read returns the policies for some namespaces, the empty one stands for all. A nil reader
// knows none.
func (r *Reader) Read(ctx context.Context, namespaces []string) (Set, error) {
	if r == nil {
		return nil, nil
	}
	var set Set
	seen := map[types.UID]known{}
	for _, kind := range r.kinds.readable() {
		in := namespaces
		if kind.Name == ClusterKind {
			in = []string{""}
		}
		for _, namespace := range in {
			if err := r.list(ctx, kind.list, namespace, seen); err != nil {
				return nil, err
			}
		}
	}
	r.known = seen
	for _, k := range seen {
		set = append(set, k.policy)
	}
	slices.SortFunc(set, Compare)
	return set, nil
}

// Records are the records of what has failed. They are not known where they cannot be read.
func (r *Reader) Records(ctx context.Context, namespaces []string) (records []v1alpha1.ConfigRollout, known bool, err error) {
	if r == nil || !r.kinds.hasRecords() {
		return nil, false, nil
	}
	for _, namespace := range namespaces {
		list := &v1alpha1.ConfigRolloutList{}
		err := r.reader.List(ctx, list, client.InNamespace(namespace))
		if err != nil && r.lenient && isAbsent(err) {
			return nil, false, nil
		}
		if err != nil {
			return nil, false, fmt.Errorf("list the records of what has failed: %w", err)
		}
		records = append(records, list.Items...)
	}
	return records, true, nil
}

// Record reads one of them, an empty one if there is none.
func (r *Reader) Record(ctx context.Context, namespace, name string) (*v1alpha1.ConfigRollout, error) {
	record := &v1alpha1.ConfigRollout{}
	if r == nil || !r.kinds.hasRecords() {
		return record, nil
	}
	err := r.reader.Get(ctx, client.ObjectKey{Namespace: namespace, Name: name}, record)
	if client.IgnoreNotFound(err) != nil {
		return nil, fmt.Errorf("read the record %s: %w", name, err)
	}
	return record, nil
}

func (r *Reader) list(ctx context.Context, kind client.ObjectList, namespace string, seen map[types.UID]known) error {
	list, _ := kind.DeepCopyObject().(client.ObjectList)
	if err := r.reader.List(ctx, list, client.InNamespace(namespace)); err != nil {
		if r.lenient && isAbsent(err) {
			return nil
		}
		return fmt.Errorf("list policies: %w", err)
	}
	return apimeta.EachListItem(list, func(item runtime.Object) error { //nolint:wrapcheck // there is none
		obj, ok := item.(client.Object)
		if !ok || obj.GetDeletionTimestamp() != nil {
			return nil
		}
		k, ok := r.known[obj.GetUID()]
		if !ok || k.version != obj.GetResourceVersion() {
			k = known{obj.GetResourceVersion(), Read(obj)}
		}
		seen[obj.GetUID()] = k
		return nil
	})
}

// isAbsent is true of errors that say that there are no policies to be read.
func isAbsent(err error) bool {
	discovery := &apimeta.NoKindMatchError{}
	return apimeta.IsNoMatchError(err) || errors.As(err, &discovery) || apierrors.IsNotFound(err) || apierrors.IsForbidden(err)
}
