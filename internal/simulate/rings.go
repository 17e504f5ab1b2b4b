package simulate

import (
	"context"
	"fmt"
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
	configs "github.com/spillway-dev/spillway/internal/config/decision"
	"github.com/spillway-dev/spillway/internal/config/pods"
	"github.com/spillway-dev/spillway/internal/kube"
	"github.com/spillway-dev/spillway/internal/plans"
	"github.com/spillway-dev/spillway/internal/simulate/record"
	"github.com/spillway-dev/spillway/internal/simulate/world"
	"github.com/spillway-dev/spillway/internal/zones"
	"github.com/spillway-dev/spillway/internal/zones/decision"
	"github.com/spillway-dev/spillway/rollout"
)

// ring is one of the rings, run without a manager.
type ring struct {
	reconcile.Reconciler

	name string
	// requests are those that an object asks for; wakes, where it is set, those that a change
	// asks for.
	requests func(obj client.Object) []types.NamespacedName
	wakes    func(before, after client.Object) []types.NamespacedName
	// repeats is true if what is due may be one more attempt, to which time alone makes no
	// difference. Nil if the ring makes none.
	repeats func() bool
	// remembers reports whether what wakes the ring follows from what it has read before.
	remembers bool
	// waits is all that the ring has that is not where it should be.
	waits func(ctx context.Context) ([]record.Wait, error)
}

// looking names the ring that acts, and its look at what.
func (s *simulation) looking() string {
	r, ok := s.Acting.(*ring)
	if !ok {
		return ""
	}
	return fmt.Sprintf("%d %s", s.Looks, r.name)
}

// Wakes implements [world.Actor].
func (r *ring) Wakes(before, after client.Object) []types.NamespacedName {
	if r.wakes != nil {
		return r.wakes(before, after)
	}
	var keys []types.NamespacedName
	for _, obj := range []client.Object{before, after} {
		if obj != nil {
			keys = append(keys, r.requests(obj)...)
		}
	}
	return keys
}

// Act implements [world.Actor].
func (r *ring) Act(ctx context.Context, key types.NamespacedName) (time.Duration, error) {
	result, err := r.Reconcile(ctx, reconcile.Request{NamespacedName: key})
	return result.RequeueAfter, err //nolint:wrapcheck // it is said as the ring says it
}

// newConfig is the config ring. It has one request for everything.
func newConfig(w *world.World, o config.Options, running pods.Reader) *ring {
	run := config.NewOffline(kube.Offline{Client: w.Client, Indexer: w.Store}, o)
	run.ReadPods(running)
	return &ring{
		Reconciler: run,
		name:       record.RingConfig,
		requests: func(obj client.Object) []types.NamespacedName {
			switch obj.(type) {
			case *appsv1.Deployment, *appsv1.StatefulSet, *appsv1.DaemonSet, *corev1.ConfigMap, *corev1.Secret, *v1alpha1.ConfigPolicy, *v1alpha1.ClusterConfigPolicy, *v1alpha1.RolloutGate, *v1alpha1.ConfigRollout, *corev1.Namespace:
				return []types.NamespacedName{{}}
			default:
				return nil
			}
		},
		waits: waitsOf(run.Waits, configWait),
	}
}

func configWait(l *configs.Laggard) (w record.Wait, waits bool) {
	return record.Wait{Ring: record.RingConfig, Namespace: l.Name.Namespace, Object: record.Reference(l.Name.Kind, l.Name.Name), Reason: l.Reason, Sentence: l.Sentence(l.Unit, l.Position)}, true
}

// newZones is the zones ring. It has a request for each group.
func newZones(ctx context.Context, w *world.World, o zones.Options) (*ring, error) {
	run, err := zones.NewOffline(ctx, kube.Offline{Client: w.Client, Indexer: w.Store, Version: w.Server.Version}, o)
	if err != nil {
		return nil, err
	}
	return &ring{
		Reconciler: run,
		name:       record.RingZones,
		requests: func(obj client.Object) []types.NamespacedName {
			if _, ok := obj.(*v1alpha1.RolloutGroup); ok {
				return []types.NamespacedName{client.ObjectKeyFromObject(obj)}
			}
			if g, ok := obj.(*v1alpha1.RolloutGate); ok && g.Spec.TargetRef.Kind == "RolloutGroup" {
				return []types.NamespacedName{{Namespace: g.Namespace, Name: g.Spec.TargetRef.Name}}
			}
			if group := w.GroupOf(obj); group != "" {
				return []types.NamespacedName{{Namespace: obj.GetNamespace(), Name: group}}
			}
			return nil
		},
		waits: waitsOf(run.Status, zonesWait),
	}, nil
}

func zonesWait(e *decision.Explanation) (w record.Wait, waits bool) {
	w = record.Wait{Ring: record.RingZones, Namespace: e.Namespace, Object: record.Reference("RolloutGroup", e.Name), Reason: e.Reason, Sentence: e.Sentence}
	return w, e.Phase != string(rollout.PhaseComplete) || len(e.Problems) > 0
}

// newPlans is the plans ring. It has a request for each Instance, and each is looked
// at again whatever changes: a plan may have to do with everything.
func newPlans(w *world.World, o plans.Options) *ring {
	run := plans.NewOffline(kube.Offline{Client: w.Client, Indexer: w.Store}, o)
	return &ring{
		Reconciler: run,
		name:       record.RingPlans,
		requests: func(obj client.Object) []types.NamespacedName {
			if _, ok := obj.(*corev1.Pod); ok {
				return nil
			}
			return slices.Collect(maps.Keys(w.Instances))
		},
		waits:   waitsOf(run.Status, plansWait),
		repeats: func() bool { return true },
	}
}

// waitsOf asks a ring for its status, and returns what waits.
func waitsOf[E any](status func(context.Context) ([]E, error), wait func(*E) (record.Wait, bool)) func(context.Context) ([]record.Wait, error) {
	return func(ctx context.Context) ([]record.Wait, error) {
		explanations, err := status(ctx)
		var all []record.Wait
		for i := range explanations {
			if w, waits := wait(&explanations[i]); waits {
				all = append(all, w)
			}
		}
		return all, err
	}
}

func plansWait(e *plans.Explanation) (w record.Wait, waits bool) {
	w = record.Wait{Ring: record.RingPlans, Namespace: e.Namespace, Object: record.Reference("Instance", e.Name), Reason: e.Reason, Sentence: e.Sentence}
	return w, e.Phase != rollout.PhaseComplete
}
