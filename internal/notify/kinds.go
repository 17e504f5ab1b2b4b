package notify

import (
	"context"
	"fmt"
	"slices"
	"sync"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	crsource "sigs.k8s.io/controller-runtime/pkg/source"

	"github.com/spillway-dev/spillway/internal/kube"
	"github.com/spillway-dev/spillway/internal/notify/subject"
)

// readable are the kinds that are read, which may become more.
type readable struct {
	mu    sync.Mutex
	kinds []string
}

func (r *readable) add(kind string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.kinds = append(r.kinds, kind)
}

func (r *readable) has(kind string) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	return slices.Contains(r.kinds, kind)
}

// watchAll watches the kinds of the rings that run, each as soon as it is installed.
func (r *reconciler) watchAll(ctx context.Context, mgr ctrl.Manager, c controller.Controller) error {
	for _, k := range subject.KindsOf(r.options.Rings, r.options.Namespaces) {
		needed := kube.Needed{
			Ring: "notify", Called: "the kind " + k.Name + " is", Without: "no message is sent about objects of a kind",
			Action: "apply what \"spillway install --export\" prints", Kinds: []schema.GroupVersionKind{k.Group.WithKind(k.Name)},
			IsOptional: true,
		}
		if err := needed.Start(ctx, mgr, func(ctx context.Context) error { return r.watch(ctx, mgr, c, k) }); err != nil {
			return err
		}
	}
	return nil
}

// watch watches a kind, if it may be read.
func (r *reconciler) watch(ctx context.Context, mgr ctrl.Manager, c controller.Controller, k subject.Kind) error {
	err := r.verify(ctx, k)
	if apierrors.IsForbidden(err) {
		mgr.GetLogger().WithName("notify").Error(nil, "no message is sent about a kind: no permission to list it; grant list and watch, and restart the manager", "kind", k.Name)
		return nil
	}
	if err != nil {
		return err
	}
	r.readable.add(k.Name)
	if err := c.Watch(crsource.Kind(mgr.GetCache(), k.Object, r.toNotifiers())); err != nil {
		return fmt.Errorf("watch the kind %s: %w", k.Name, err)
	}
	return nil
}

// verify is nil if the kind can be read in all namespaces of the manager.
func (r *reconciler) verify(ctx context.Context, k subject.Kind) error {
	for _, namespace := range kube.OrAll(r.options.Namespaces) {
		list, err := r.list(k)
		if err != nil {
			return err
		}
		if err := r.live.List(ctx, list, client.InNamespace(namespace), client.Limit(1)); err != nil {
			return fmt.Errorf("list one %s: %w", k.Name, err)
		}
	}
	return nil
}

// list is an empty list of a kind.
func (r *reconciler) list(k subject.Kind) (client.ObjectList, error) {
	object, err := r.cached.Scheme().New(k.Group.WithKind(k.Name + "List"))
	if err != nil {
		return nil, fmt.Errorf("make a list of %s: %w", k.Name, err)
	}
	list, ok := object.(client.ObjectList)
	if !ok {
		return nil, fmt.Errorf("%T is no list", object)
	}
	return list, nil
}
