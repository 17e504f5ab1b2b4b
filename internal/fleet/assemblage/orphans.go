package assemblage

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/spillway-dev/spillway/internal/kube"
	"github.com/spillway-dev/spillway/internal/vocabulary"
)

// Orphans finds the assemblages of the hub that only Spillway has written and that have
// no sync any more. Anything that another client has written into one, even a label, is
// a reason to keep it.
type Orphans struct {
	Live client.Reader

	mu sync.Mutex
	// kept are those that another client has written, by the version at which that was found.
	kept map[types.NamespacedName]string
}

// Orphaned returns true for an assemblage without syncs in which every managed field is
// Spillway's. It asks the API server, once for each version: the cache keeps no managed
// fields.
func (d *Orphans) Orphaned(ctx context.Context, gvk schema.GroupVersionKind, obj client.Object, syncs int) (bool, error) {
	finalized := slices.Contains(obj.GetFinalizers(), vocabulary.AssemblageFinalizer) // it has had syncs before
	if syncs > 0 || !finalized || obj.GetDeletionTimestamp() != nil || d.isKept(obj) {
		return false, nil
	}
	head := &metav1.PartialObjectMetadata{}
	head.SetGroupVersionKind(gvk)
	err := d.Live.Get(ctx, client.ObjectKeyFromObject(obj), head)
	switch {
	case apierrors.IsNotFound(err):
		return false, nil
	case err != nil:
		return false, fmt.Errorf("get the managed fields of the %s: %w", gvk.Kind, err)
	case head.UID != obj.GetUID() || head.ResourceVersion != obj.GetResourceVersion():
		return false, nil // the cache will show it
	case slices.ContainsFunc(head.ManagedFields, isForeignEntry):
		d.keep(obj)
		return false, nil
	default:
		return true, nil
	}
}

func isForeignEntry(entry metav1.ManagedFieldsEntry) bool {
	return entry.Manager != kube.FieldOwner && !strings.HasPrefix(entry.Manager, kube.ModuleOwner)
}

func (d *Orphans) isKept(obj client.Object) bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.kept[client.ObjectKeyFromObject(obj)] == obj.GetResourceVersion()
}

func (d *Orphans) keep(obj client.Object) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.kept == nil {
		d.kept = map[types.NamespacedName]string{}
	}
	d.kept[client.ObjectKeyFromObject(obj)] = obj.GetResourceVersion()
}

// Forget forgets an assemblage that is gone.
func (d *Orphans) Forget(key types.NamespacedName) {
	d.mu.Lock()
	defer d.mu.Unlock()
	delete(d.kept, key)
}
