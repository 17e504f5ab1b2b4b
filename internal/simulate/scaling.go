package simulate

import (
	"cmp"
	"context"
	"slices"
	"strings"

	appsv1 "k8s.io/api/apps/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/spillway-dev/spillway/api/spillway/v1alpha1"
	"github.com/spillway-dev/spillway/internal/kube"
	"github.com/spillway-dev/spillway/internal/simulate/record"
	"github.com/spillway-dev/spillway/internal/zones/guard"
	"github.com/spillway-dev/spillway/internal/zones/lock"
	"github.com/spillway-dev/spillway/internal/zones/scaling"
	"github.com/spillway-dev/spillway/rollout"
)

// newScaling is the part of the zones ring that scales. It has a request for each group.
func (s *simulation) newScaling() *ring {
	run := scaling.NewOffline(kube.Offline{Client: s.Client, Indexer: s.Store}, scaling.Options{Now: s.Clock}, s.models.Endpoints)
	return &ring{
		Reconciler: run,
		name:       record.RingZones,
		remembers:  true,
		wakes: func(before, after client.Object) []types.NamespacedName {
			obj := cmp.Or(after, before)
			if run.Mirrors(obj.GetObjectKind().GroupVersionKind().GroupKind()) {
				return append(run.Requests(before, after), s.groupsIn(obj.GetNamespace())...)
			}
			return run.Requests(before, after)
		},
		waits: func(ctx context.Context) ([]record.Wait, error) {
			explanations, err := run.Status(ctx)
			s.passing = slices.ContainsFunc(explanations, s.isPassing)
			return waitsOf(func(context.Context) ([]scaling.Explanation, error) { return explanations, err }, scalingWait)(ctx)
		},
		repeats: func() bool { return !s.minTimePending() && !s.passing },
	}
}

// isPassing is true while time alone ends a wait, other than that for another attempt.
func (s *simulation) isPassing(e scaling.Explanation) bool {
	return e.Reason != rollout.ReasonRetry && e.Until.After(s.Now)
}

// groupsIn are the groups of a namespace.
func (s *simulation) groupsIn(namespace string) []types.NamespacedName {
	var keys []types.NamespacedName
	for set, group := range s.Groups {
		if set.Namespace == namespace && group != "" {
			keys = append(keys, types.NamespacedName{Namespace: namespace, Name: group})
		}
	}
	return keys
}

func scalingWait(e *scaling.Explanation) (w record.Wait, waits bool) {
	return record.Wait{
		Ring: record.RingZones, Namespace: e.Namespace, Object: record.Reference("RolloutGroup", e.Group), Reason: e.Reason, Sentence: e.Sentence,
	}, true
}

// guard lets the guards of replicas decide about all writes, those of the change too.
func (s *simulation) guard(ctx context.Context) {
	guards := guard.NewOffline(kube.Offline{Client: s.Store, Indexer: s.Store}, guard.Options{Now: s.Clock}, s.models.Endpoints)
	s.Store.Admit = func(before, after client.Object) error { return guards.Admit(ctx, before, after) }
}

// minTimePending is true while a guard refuses only because of a downscale of another
// zone, which it does not for ever.
func (s *simulation) minTimePending() bool {
	return slices.ContainsFunc(s.Store.Objects(&appsv1.StatefulSet{}, ""), func(obj client.Object) bool {
		key := types.NamespacedName{Namespace: obj.GetNamespace(), Name: s.GroupOf(obj)}
		group, ok := s.Store.Object(&v1alpha1.RolloutGroup{}, key).(*v1alpha1.RolloutGroup)
		if !ok {
			return false
		}
		d, waits, err := lock.Recently(&group.Status, obj.GetName(), obj.GetLabels(), obj.GetAnnotations())
		return err == nil && waits && s.Now.Before(d.Last.Add(d.Wait))
	})
}

// prepared are the StatefulSets of which Pods were called to prepare since the change.
func (s *simulation) prepared() []Prepared {
	var all []Prepared
	for key := range s.models.Endpoints.Called {
		all = append(all, Prepared{Object: record.Reference(key.Kind, key.Name), Namespace: key.Namespace})
	}
	slices.SortFunc(all, func(a, b Prepared) int {
		return cmp.Or(strings.Compare(a.Namespace, b.Namespace), strings.Compare(a.Object, b.Object))
	})
	return all
}

// Prepared is a StatefulSet of which Pods were called to prepare for a downscale. No call
// leaves the simulation: they are taken to do so immediately, unless they are said to fail.
type Prepared struct {
	Object    string `json:"object"`
	Namespace string `json:"namespace"`
}
