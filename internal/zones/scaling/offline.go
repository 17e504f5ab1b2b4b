package scaling

import (
	"cmp"
	"context"
	"fmt"
	"net/http"
	"slices"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/event"

	"github.com/spillway-dev/spillway/api/spillway/v1alpha1"
	"github.com/spillway-dev/spillway/internal/kube"
	"github.com/spillway-dev/spillway/internal/metrics"
	"github.com/spillway-dev/spillway/internal/ring"
	"github.com/spillway-dev/spillway/internal/zones/lock"
	"github.com/spillway-dev/spillway/internal/zones/preparehook"
	"github.com/spillway-dev/spillway/rollout"
)

// Offline is the controller without a manager: the same passes, asked for one by one.
type Offline struct{ *reconciler }

// NewOffline makes the controller run upon what stands for a cluster, and upon what
// answers for the Pods that it calls.
func NewOffline(on kube.Offline, o Options, pods http.RoundTripper) *Offline {
	r := &reconciler{
		observer: observer{options: o, cached: on, live: on, scales: on, mapper: on.RESTMapper()},
		reporter: reporter{ring.Reporter{Events: on.Events(), Action: "Scale", Writes: metrics.ZonesScales}},
		mirrors:  mirrors{watched: map[schema.GroupVersionKind]bool{}},
	}
	r.actor = actor{
		observer: &r.observer, client: on, options: o,
		keeper: lock.Keeper{Live: on, Writer: on}, caller: preparehook.Over(pods, o.PodTimeout),
	}
	return &Offline{r}
}

// Requests are the groups to reconcile after a RolloutGroup or a StatefulSet has changed,
// as the watches of the manager would ask for them. Before is nil of what is new, after of
// what is gone. It reads nothing.
func (*Offline) Requests(before, after client.Object) []types.NamespacedName {
	switch obj := cmp.Or(after, before).(type) {
	case *v1alpha1.RolloutGroup:
		return []types.NamespacedName{client.ObjectKeyFromObject(obj)}
	case *appsv1.StatefulSet:
		if before != nil && after != nil && !setMatters().Update(event.UpdateEvent{ObjectOld: before, ObjectNew: after}) {
			return nil
		}
		var keys []types.NamespacedName
		for _, set := range []client.Object{before, after} {
			if set != nil && groupOf(set) != "" {
				keys = append(keys, types.NamespacedName{Namespace: set.GetNamespace(), Name: groupOf(set)})
			}
		}
		return keys
	default:
		return nil
	}
}

// Mirrors is true of a kind of which some StatefulSet mirrors an object: after a change of
// one, the groups of its namespace are to be reconciled.
func (o *Offline) Mirrors(kind schema.GroupKind) bool { return o.mirrors.isWatched(kind) }

// Explanation says what the replicas of one StatefulSet wait for.
type Explanation struct {
	Namespace, Group, StatefulSet string
	Reason                        rollout.Reason
	Sentence                      string
	// Until is when the wait ends automatically, zero if it does not.
	Until time.Time
}

// Status explains all replicas that are not as many as they are to be, and writes
// nothing. It knows what Pods have answered.
func (o *Offline) Status(ctx context.Context) ([]Explanation, error) {
	groups, err := o.groups(ctx)
	if err != nil {
		return nil, err
	}
	var all []Explanation
	for _, key := range groups {
		s, err := o.observer.observe(ctx, key, o.memories.Of(key, newMemory))
		if err != nil {
			return nil, err
		}
		plan := Decide(s.Observed)
		all = append(all, plan.Waits(key)...)
	}
	return all, nil
}

// groups are those in which some StatefulSet follows another one, or an object.
func (o *Offline) groups(ctx context.Context) ([]types.NamespacedName, error) {
	sets := &appsv1.StatefulSetList{}
	if err := o.observer.cached.List(ctx, sets, client.UnsafeDisableDeepCopy); err != nil {
		return nil, fmt.Errorf("list StatefulSets: %w", err)
	}
	var keys []types.NamespacedName
	for i := range sets.Items {
		set := &sets.Items[i]
		key := types.NamespacedName{Namespace: set.Namespace, Name: groupOf(set)}
		if key.Name != "" && Follows(set) && !slices.Contains(keys, key) {
			keys = append(keys, key)
		}
	}
	return keys, nil
}

// Waits explains what a plan for a group holds back, and what it has not done yet.
func (p *Plan) Waits(group types.NamespacedName) []Explanation {
	var all []Explanation
	add := func(path rollout.Path, e Explanation) {
		e.Namespace, e.Group, e.StatefulSet = group.Namespace, group.Name, path[len(path)-1]
		all = append(all, e)
	}
	for _, step := range p.Steps {
		add(step.Path, Explanation{Reason: rollout.ReasonProgressing, Sentence: step.Message()})
	}
	for i := range p.Holds {
		h := &p.Holds[i]
		add(h.Path, Explanation{Reason: h.Reason, Sentence: h.Message, Until: h.Until})
	}
	return all
}

// Follows is true of a StatefulSet that has the replicas of another one, or of an object.
func Follows(set *appsv1.StatefulSet) bool {
	s := SettingsOf(set.Labels, set.Annotations)
	return s.follows()
}

// Look says what the replicas of a group wait for, by the same code that the manager
// runs, with the caller's own permissions and nothing but reads. What Pods have said to
// the manager it cannot know: of a delayed downscale it says what is to come about.
func Look(ctx context.Context, c client.Client, o Options, namespace, group string) (Plan, error) {
	look := observer{options: o, cached: c, live: c, scales: c, mapper: c.RESTMapper()}
	s, err := look.observe(ctx, types.NamespacedName{Namespace: namespace, Name: group}, newMemory())
	if err != nil {
		return Plan{}, err
	}
	return Decide(s.Observed), nil
}

// LeaderProblem is why a StatefulSet of a group cannot follow its leader, as far as
// manifests show it; empty if it can, or has none.
func LeaderProblem(name string, group []*appsv1.StatefulSet) string {
	o := Observed{}
	for _, s := range group {
		o.Sets = append(o.Sets, Set{Name: s.Name, Settings: SettingsOf(s.Labels, s.Annotations)})
	}
	w := wish{set: o.set(name)}
	if w.set == nil || w.set.Settings.Leader == "" {
		return ""
	}
	if o.follow(&w); w.block == nil || w.block.Reason != ReasonLeader {
		return ""
	}
	return w.block.Message
}
