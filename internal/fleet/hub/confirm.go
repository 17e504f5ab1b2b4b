package hub

import (
	"context"
	"errors"
	"fmt"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/spillway-dev/spillway/internal/fleet/cluster"
)

// errChanged is the outcome of a removal that was decided from what is no longer so.
var errChanged = errors.New("the module or the cluster has changed since")

// confirm asks the API server itself whether a removal is still right. It is the one
// write that takes something away for good, and what it follows from, the selector and
// the labels, stands in objects that it does not write: no precondition of the
// assemblage tells that a view of these is old. The module is named by its UID, as
// another of its name writes to the same entry.
func (a *actor) confirm(ctx context.Context, s *sight, w *Write) error {
	if err := a.confirmModule(ctx, s); err != nil || s.Module.Deleting {
		return err
	}
	selector, err := metav1.LabelSelectorAsSelector(s.Module.Spec.Selector)
	if err != nil {
		return fmt.Errorf("spec.selector: %w", err)
	}
	c, err := cluster.LookAt(ctx, a.live, types.NamespacedName{Namespace: s.key.Namespace, Name: w.Cluster.Name})
	switch {
	case err != nil:
		return err
	case c == nil || c.UID != w.Cluster.UID || c.Deleting || selector.Matches(labels.Set(c.Labels)):
		return errChanged
	default:
		return nil
	}
}

// confirmModule is nil if the module says what it was seen to say. That it is being
// deleted is another generation, too.
func (a *actor) confirmModule(ctx context.Context, s *sight) error {
	list := a.kind.modules()
	err := a.live.List(ctx, list, client.InNamespace(s.key.Namespace), client.MatchingFields{metav1.ObjectNameField: s.key.Name})
	if err != nil {
		return fmt.Errorf("look at %s %s: %w", a.kind.name, s.key.Name, err)
	}
	for _, m := range itemsOf(list) {
		if m.GetUID() == s.Module.UID && m.GetGeneration() == s.Module.Generation {
			return nil
		}
	}
	return errChanged
}
