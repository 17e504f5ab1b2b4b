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

	fleetv1 "github.com/spillway-dev/spillway/api/fleet/v1alpha1"
	"github.com/spillway-dev/spillway/api/kudo/v1beta1"
	"github.com/spillway-dev/spillway/api/spillway/v1alpha1"
	"github.com/spillway-dev/spillway/internal/kube"
	"github.com/spillway-dev/spillway/internal/metrics"
	"github.com/spillway-dev/spillway/internal/notify/subject"
)

// kind is a kind with rollouts. The permission to read it is that of its ring, so that a
// manager without the ring needs none.
type kind struct {
	name   string
	ring   string
	group  schema.GroupVersion
	object client.Object
	// isOfCluster is true of a kind that a manager of some namespaces does not read.
	isOfCluster bool
}

func kinds() []kind {
	return []kind{
		{name: subject.KindPolicy, ring: metrics.RingConfig, group: v1alpha1.GroupVersion, object: &v1alpha1.ConfigPolicy{}},
		{name: subject.KindClusterPolicy, ring: metrics.RingConfig, group: v1alpha1.GroupVersion, object: &v1alpha1.ClusterConfigPolicy{}, isOfCluster: true},
		{name: subject.KindGroup, ring: metrics.RingZones, group: v1alpha1.GroupVersion, object: &v1alpha1.RolloutGroup{}},
		{name: subject.KindInstance, ring: metrics.RingPlans, group: v1beta1.GroupVersion, object: &v1beta1.Instance{}},
		{name: subject.KindModule, ring: metrics.RingFleet, group: fleetv1.GroupVersion, object: &fleetv1.Module{}},
		{name: subject.KindBootstrapModule, ring: metrics.RingFleet, group: fleetv1.GroupVersion, object: &fleetv1.BootstrapModule{}},
	}
}

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
	for _, k := range kinds() {
		if !slices.Contains(r.options.Rings, k.ring) || k.isOfCluster && len(r.options.Namespaces) > 0 {
			continue
		}
		needed := kube.Needed{
			Ring: "notify", Called: "the kind " + k.name + " is", Without: "no message is sent about objects of a kind",
			Action: "apply what \"spillway install --export\" prints", Kinds: []schema.GroupVersionKind{k.group.WithKind(k.name)},
			IsOptional: true,
		}
		if err := needed.Start(ctx, mgr, func(ctx context.Context) error { return r.watch(ctx, mgr, c, k) }); err != nil {
			return err
		}
	}
	return nil
}

// watch watches a kind, if it may be read.
func (r *reconciler) watch(ctx context.Context, mgr ctrl.Manager, c controller.Controller, k kind) error {
	err := r.verify(ctx, k)
	if apierrors.IsForbidden(err) {
		mgr.GetLogger().WithName("notify").Error(nil, "no message is sent about a kind: no permission to list it; grant list and watch, and restart the manager", "kind", k.name)
		return nil
	}
	if err != nil {
		return err
	}
	r.readable.add(k.name)
	if err := c.Watch(crsource.Kind(mgr.GetCache(), k.object, r.toNotifiers())); err != nil {
		return fmt.Errorf("watch the kind %s: %w", k.name, err)
	}
	return nil
}

// verify is nil if the kind can be read in all namespaces of the manager.
func (r *reconciler) verify(ctx context.Context, k kind) error {
	namespaces := r.options.Namespaces
	if len(namespaces) == 0 {
		namespaces = []string{""}
	}
	for _, namespace := range namespaces {
		list, err := r.list(k)
		if err != nil {
			return err
		}
		if err := r.live.List(ctx, list, client.InNamespace(namespace), client.Limit(1)); err != nil {
			return fmt.Errorf("list one %s: %w", k.name, err)
		}
	}
	return nil
}

// list is an empty list of a kind.
func (r *reconciler) list(k kind) (client.ObjectList, error) {
	object, err := r.cached.Scheme().New(k.group.WithKind(k.name + "List"))
	if err != nil {
		return nil, fmt.Errorf("make a list of %s: %w", k.name, err)
	}
	list, ok := object.(client.ObjectList)
	if !ok {
		return nil, fmt.Errorf("%T is no list", object)
	}
	return list, nil
}
