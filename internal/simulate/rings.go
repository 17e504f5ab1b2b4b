package simulate

import (
	"context"
	"maps"
	"slices"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/spillway-dev/spillway/api/spillway/v1alpha1"
	"github.com/spillway-dev/spillway/internal/config"
	"github.com/spillway-dev/spillway/internal/kube"
	"github.com/spillway-dev/spillway/internal/plans"
	"github.com/spillway-dev/spillway/internal/vocabulary"
	"github.com/spillway-dev/spillway/internal/zones"
	"github.com/spillway-dev/spillway/rollout"
)

// The rings, as steps and waits name them.
const (
	RingConfig = "config"
	RingZones  = "zones"
	RingPlans  = "plans"
	RingFleet  = "fleet"
)

// ring is one of the rings, run without a manager.
type ring struct {
	reconcile.Reconciler

	name     string
	requests func(obj client.Object) []types.NamespacedName
	// waits is all that the ring has that is not where it should be.
	waits func(ctx context.Context) ([]Wait, error)
}

func (r *ring) wakes(before, after client.Object) []types.NamespacedName {
	var keys []types.NamespacedName
	for _, obj := range []client.Object{before, after} {
		if obj != nil {
			keys = append(keys, r.requests(obj)...)
		}
	}
	return keys
}

func (r *ring) look(ctx context.Context, key types.NamespacedName) (time.Duration, error) {
	result, err := r.Reconcile(ctx, reconcile.Request{NamespacedName: key})
	return result.RequeueAfter, err //nolint:wrapcheck // it is said as the ring says it
}

// waitsOf asks a ring how everything stands, and takes what waits.
func waitsOf[E any](status func(context.Context) ([]E, error), wait func(*E) (Wait, bool)) func(context.Context) ([]Wait, error) {
	return func(ctx context.Context) ([]Wait, error) {
		explanations, err := status(ctx)
		var all []Wait
		for i := range explanations {
			if w, waits := wait(&explanations[i]); waits {
				all = append(all, w)
			}
		}
		return all, err
	}
}

// newConfig is the config ring. It has one request for everything.
func newConfig(w *world, o config.Options) *ring {
	run := config.NewOffline(kube.Offline{Client: w.store, Indexer: w.store}, o)
	return &ring{
		Reconciler: run,
		name:       RingConfig,
		requests: func(obj client.Object) []types.NamespacedName {
			switch obj.(type) {
			case *appsv1.Deployment, *appsv1.StatefulSet, *appsv1.DaemonSet, *corev1.ConfigMap, *corev1.Secret:
				return []types.NamespacedName{{}}
			default:
				return nil
			}
		},
		waits: waitsOf(run.Status, configWait),
	}
}

func configWait(e *config.Explanation) (w Wait, waits bool) {
	w = Wait{Ring: RingConfig, Namespace: e.Namespace, Object: reference(e.Kind, e.Name), Reason: e.Reason, Sentence: e.Sentence}
	return w, e.State != config.StateUpToDate && e.State != config.StateNotTracked
}

// newZones is the zones ring. It has a request for each group.
func newZones(ctx context.Context, w *world, o zones.Options) (*ring, error) {
	run, err := zones.NewOffline(ctx, kube.Offline{Client: w.store, Indexer: w.store, Version: w.server.version}, o)
	if err != nil {
		return nil, err
	}
	return &ring{
		Reconciler: run,
		name:       RingZones,
		requests: func(obj client.Object) []types.NamespacedName {
			if _, ok := obj.(*v1alpha1.RolloutGroup); ok {
				return []types.NamespacedName{client.ObjectKeyFromObject(obj)}
			}
			if group := w.groupOf(obj); group != "" {
				return []types.NamespacedName{{Namespace: obj.GetNamespace(), Name: group}}
			}
			return nil
		},
		waits: waitsOf(run.Status, zonesWait),
	}, nil
}

// groupOf is the group of a StatefulSet, or of the one that a Pod belongs to.
func (w *world) groupOf(obj client.Object) string {
	switch o := obj.(type) {
	case *appsv1.StatefulSet:
		return vocabulary.GroupOf(o.Labels, o.Annotations)
	case *corev1.Pod:
		for _, key := range keysOfSet(o) {
			return w.groups[key]
		}
	}
	return ""
}

func zonesWait(e *zones.Explanation) (w Wait, waits bool) {
	w = Wait{Ring: RingZones, Namespace: e.Namespace, Object: reference("RolloutGroup", e.Name), Reason: e.Reason, Sentence: e.Sentence}
	return w, e.Phase != string(rollout.PhaseComplete) || len(e.Problems) > 0
}

// newPlans is the plans ring. It has a request for each Instance, and each is looked
// at again whatever changes: a plan may have to do with everything.
func newPlans(w *world, o plans.Options) *ring {
	run := plans.NewOffline(kube.Offline{Client: w.store, Indexer: w.store}, o)
	return &ring{
		Reconciler: run,
		name:       RingPlans,
		requests: func(obj client.Object) []types.NamespacedName {
			if _, ok := obj.(*corev1.Pod); ok {
				return nil
			}
			return slices.Collect(maps.Keys(w.instances))
		},
		waits: waitsOf(run.Status, plansWait),
	}
}

func plansWait(e *plans.Explanation) (w Wait, waits bool) {
	w = Wait{Ring: RingPlans, Namespace: e.Namespace, Object: reference("Instance", e.Name), Reason: e.Reason, Sentence: e.Sentence}
	return w, e.Phase != rollout.PhaseComplete
}
