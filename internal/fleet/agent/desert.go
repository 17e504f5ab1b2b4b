package agent

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

// Deserters find the assemblages of the hub in which nobody has anything any more. They
// were made by modules and are not wanted by anybody: what others have written into one,
// be it a label, is a reason to leave it.
type Deserters struct {
	Live client.Reader

	mu sync.Mutex
	// kept are those that are left, by the version at which that was found.
	kept map[types.NamespacedName]string
}

// Deserted is true of an assemblage without syncs to which nobody but Spillway has ever
// contributed anything that is still there. The API server itself is asked, once for
// each version: the cache does not know who has written what.
func (d *Deserters) Deserted(ctx context.Context, gvk schema.GroupVersionKind, obj client.Object, syncs int) (bool, error) {
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
		return false, fmt.Errorf("look who has written the %s: %w", gvk.Kind, err)
	case head.UID != obj.GetUID() || head.ResourceVersion != obj.GetResourceVersion():
		return false, nil // the cache will show it
	case slices.ContainsFunc(head.ManagedFields, isSomebodyElses):
		d.keep(obj)
		return false, nil
	default:
		return true, nil
	}
}

func isSomebodyElses(entry metav1.ManagedFieldsEntry) bool {
	return entry.Manager != kube.FieldOwner && !strings.HasPrefix(entry.Manager, kube.ModuleOwner)
}

func (d *Deserters) isKept(obj client.Object) bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.kept[client.ObjectKeyFromObject(obj)] == obj.GetResourceVersion()
}

func (d *Deserters) keep(obj client.Object) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.kept == nil {
		d.kept = map[types.NamespacedName]string{}
	}
	d.kept[client.ObjectKeyFromObject(obj)] = obj.GetResourceVersion()
}

// Forget forgets an assemblage that is gone.
func (d *Deserters) Forget(key types.NamespacedName) {
	d.mu.Lock()
	defer d.mu.Unlock()
	delete(d.kept, key)
}
