package zones

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/spillway-dev/spillway/api/spillway/v1alpha1"
	"github.com/spillway-dev/spillway/internal/gates/ask"
	"github.com/spillway-dev/spillway/internal/ring"
	"github.com/spillway-dev/spillway/internal/zones/decision"
)

// rereads bounds how often a view is read again that changed while it was read.
const rereads = 5

// observer does all the reads of the ring.
type observer struct {
	options Options
	// cached reads the views of the informers, live asks the API server.
	cached, live viewer
	server       *server
	budgets      *budgets
	// noGates is true if RolloutGates are not installed.
	noGates bool
}

// viewer reads the RolloutGroups, and the StatefulSets of a group with their Pods.
type viewer interface {
	client.Reader
	// view is not atomic: while it is read, it may change.
	view(ctx context.Context, key types.NamespacedName) (view, error)
}

// view is one read of the StatefulSets of a group. It does not change.
type view struct {
	sets []appsv1.StatefulSet
	pods map[types.UID][]corev1.Pod
	// asOf is how new it is at least.
	asOf v1alpha1.Seen
}

// snapshot is what a pass sees of a group.
type snapshot struct {
	decision.Observed
	key types.NamespacedName
	// object is the group itself, nil if there is none.
	object *v1alpha1.RolloutGroup
	// sets are the objects behind Observed.Sets.
	sets []appsv1.StatefulSet
	// restored is true if the status is that of a group of the same name that a user
	// has deleted. It must be written before anything else is done.
	restored bool
}

// observe reads a group: first at what was decided before, then at what the
// next decision is about, so that the latter is not older. Where the cache is not
// good enough, the API server itself is asked, once in a reconcile.
func (o *observer) observe(ctx context.Context, m *memory, live bool) (snapshot, error) {
	now := o.options.Now()
	group, err := o.group(ctx, m, now)
	if err != nil {
		return snapshot{}, err
	}
	v, asOf, err := o.look(ctx, m, live)
	if err != nil {
		return snapshot{}, err
	}
	found, err := o.server.look(ctx, v.sets)
	if err != nil {
		return snapshot{}, err
	}
	group, restored := m.restore(group)
	s := snapshot{key: m.key, object: group, sets: v.sets, restored: restored}
	s.Observed = decision.Observed{
		Now: now, By: o.options.By, Live: live, Group: groupSeen(m.key, group), Server: found, AsOf: asOf, Sets: m.mark(v.observed()), Refusals: m.Refusals(now),
	}
	if s.Gates, err = o.gates(ctx, m, group); err != nil {
		return snapshot{}, err
	}
	if live {
		if s.Orphans, err = o.orphans(ctx, &s); err != nil {
			return snapshot{}, err
		}
	}
	return s, o.budgets.bound(ctx, &s)
}

// gates reads the RolloutGates of the group.
func (o *observer) gates(ctx context.Context, m *memory, group *v1alpha1.RolloutGroup) (ask.Gates, error) {
	if o.noGates || group == nil {
		return nil, nil
	}
	gates, err := ask.List(ctx, o.cached, group.Namespace, group.UID)
	for i := range gates {
		m.Observed(ring.Change{Act: string(decision.CreateGate), Object: gates[i].Name})
	}
	return gates, err
}

// orphans asks for the Pods of moves whose StatefulSets are gone.
func (o *observer) orphans(ctx context.Context, s *snapshot) ([]decision.Pod, error) {
	var orphans []decision.Pod
	for i := range s.Group.Status.Moves {
		m := &s.Group.Status.Moves[i]
		if m.Pod == "" || s.hasSet(m.Zone) {
			continue
		}
		pods := &corev1.PodList{}
		err := o.live.List(ctx, pods, client.InNamespace(s.key.Namespace), client.MatchingFields{metav1.ObjectNameField: m.Pod})
		if err != nil {
			return nil, fmt.Errorf("get Pod %s: %w", m.Pod, err)
		}
		for j := range pods.Items {
			orphans = append(orphans, decision.PodOf(&pods.Items[j], 0))
		}
	}
	return orphans, nil
}

func (s *snapshot) hasSet(name string) bool {
	return slices.ContainsFunc(s.sets, func(set appsv1.StatefulSet) bool { return set.Name == name })
}

func (o *observer) group(ctx context.Context, m *memory, now time.Time) (*v1alpha1.RolloutGroup, error) {
	group := &v1alpha1.RolloutGroup{}
	err := o.cached.Get(ctx, m.key, group, client.UnsafeDisableDeepCopy)
	if apierrors.IsNotFound(err) {
		return m.Newest(nil, now), nil
	}
	if err != nil {
		return nil, fmt.Errorf("get RolloutGroup %s: %w", m.key.Name, err)
	}
	return m.Newest(group, now), nil
}

// restore is the group with the status that was known of the former one, if
// a user has deleted that and no client has written anything since.
func (m *memory) restore(group *v1alpha1.RolloutGroup) (_ *v1alpha1.RolloutGroup, restored bool) {
	before := m.known
	switch {
	case group == nil:
		return nil, false
	case before == nil || before.UID == group.UID || group.Status.ObservedGeneration != 0 || before.Status.ObservedGeneration == 0:
		m.known = group
		return group, false
	}
	group = group.DeepCopy()
	before.Status.DeepCopyInto(&group.Status)
	return group, true
}

func groupSeen(key types.NamespacedName, group *v1alpha1.RolloutGroup) decision.Group {
	if group == nil {
		return decision.Group{Namespace: key.Namespace, Name: key.Name}
	}
	return decision.Group{
		Namespace: key.Namespace, Name: key.Name, UID: group.UID, ResourceVersion: group.ResourceVersion,
		Generation: group.Generation, Spec: group.Spec, Status: group.Status,
	}
}

// look reads the view of the cache, or of the API server itself.
func (o *observer) look(ctx context.Context, m *memory, live bool) (view, v1alpha1.Seen, error) {
	if live && m.live != nil {
		m.renew(m.live)
		return *m.live, m.live.asOf, nil
	}
	v, err := steady(ctx, o.cached, m.key)
	if err != nil {
		return view{}, v1alpha1.Seen{}, err
	}
	m.asOf = newerOf(m.asOf, v.asOf)
	m.renew(&v)
	if !live {
		return v, m.asOf, nil
	}
	fresh, err := o.live.view(ctx, m.key)
	if err != nil {
		return view{}, v1alpha1.Seen{}, err
	}
	if maps.Equal(fresh.versions(), v.versions()) { // the cache is as new; that only could not be known
		m.asOf = newerOf(m.asOf, fresh.asOf)
	}
	m.live = &fresh
	return fresh, fresh.asOf, nil
}

// steady reads a view until it is the same twice in a row, so that all of it is
// as new as the newest in it.
func steady(ctx context.Context, r viewer, key types.NamespacedName) (view, error) {
	last, err := r.view(ctx, key)
	if err != nil {
		return view{}, err
	}
	for range rereads {
		next, err := r.view(ctx, key)
		if err != nil {
			return view{}, err
		}
		if maps.Equal(next.versions(), last.versions()) {
			return next, nil
		}
		next.asOf, last = last.asOf, next // the rest of it is at least as new as that
	}
	return last, nil
}

// versions identify all that is in the view.
func (v *view) versions() map[types.UID]string {
	versions := map[types.UID]string{}
	for i := range v.sets {
		set := &v.sets[i]
		versions[set.UID] = set.ResourceVersion
		for j := range v.pods[set.UID] {
			versions[v.pods[set.UID][j].UID] = v.pods[set.UID][j].ResourceVersion
		}
	}
	return versions
}

func (v *view) observed() []decision.Set {
	sets := make([]decision.Set, len(v.sets))
	for i := range v.sets {
		sets[i] = decision.SetOf(&v.sets[i], v.pods[v.sets[i].UID])
	}
	return sets
}

func newerOf(a, b v1alpha1.Seen) v1alpha1.Seen {
	return v1alpha1.Seen{Pods: ring.Newer(a.Pods, b.Pods), StatefulSets: ring.Newer(a.StatefulSets, b.StatefulSets)}
}

// cachedViewer reads by the indices of the cache.
type cachedViewer struct{ client.Reader }

func (c cachedViewer) view(ctx context.Context, key types.NamespacedName) (view, error) {
	sets := &appsv1.StatefulSetList{}
	err := c.List(ctx, sets, client.InNamespace(key.Namespace), client.MatchingFields{groupIndex: key.Name}, client.UnsafeDisableDeepCopy)
	if err != nil {
		return view{}, fmt.Errorf("list the StatefulSets of group %s: %w", key.Name, err)
	}
	v := view{sets: sets.Items, pods: make(map[types.UID][]corev1.Pod, len(sets.Items))}
	for i := range v.sets {
		uid := v.sets[i].UID
		pods := &corev1.PodList{}
		err := c.List(ctx, pods, client.InNamespace(key.Namespace), client.MatchingFields{ownerIndex: string(uid)}, client.UnsafeDisableDeepCopy)
		if err != nil {
			return view{}, fmt.Errorf("list the Pods of StatefulSet %s: %w", v.sets[i].Name, err)
		}
		v.pods[uid] = pods.Items
	}
	v.asOf = v.newest()
	return v, nil
}

// newest is the resource version of the newest object in the view.
func (v *view) newest() v1alpha1.Seen {
	seen := v1alpha1.Seen{}
	for i := range v.sets {
		set := &v.sets[i]
		seen.StatefulSets = ring.Newer(seen.StatefulSets, set.ResourceVersion)
		for j := range v.pods[set.UID] {
			seen.Pods = ring.Newer(seen.Pods, v.pods[set.UID][j].ResourceVersion)
		}
	}
	return seen
}

// liveViewer asks an API server, which has no such indices.
type liveViewer struct{ client.Reader }

func (l liveViewer) view(ctx context.Context, key types.NamespacedName) (view, error) {
	sets := &appsv1.StatefulSetList{}
	if err := l.List(ctx, sets, client.InNamespace(key.Namespace)); err != nil {
		return view{}, fmt.Errorf("list StatefulSets: %w", err)
	}
	v := view{pods: map[types.UID][]corev1.Pod{}, asOf: v1alpha1.Seen{StatefulSets: sets.ResourceVersion}}
	for i := range sets.Items {
		set := &sets.Items[i]
		if groupOf(set) != key.Name {
			continue
		}
		v.sets = append(v.sets, *set)
		if err := l.addPods(ctx, &v, set); err != nil {
			return view{}, err
		}
	}
	return v, nil
}

// addPods asks for the Pods that the selector of a set picks: those of others are
// released by the controller, and count no more. The view is as new as the first
// answer.
func (l liveViewer) addPods(ctx context.Context, v *view, set *appsv1.StatefulSet) error {
	selector, err := metav1.LabelSelectorAsSelector(set.Spec.Selector)
	if err != nil {
		return fmt.Errorf("selector of StatefulSet %s: %w", set.Name, err)
	}
	pods := &corev1.PodList{}
	if err := l.List(ctx, pods, client.InNamespace(set.Namespace), client.MatchingLabelsSelector{Selector: selector}); err != nil {
		return fmt.Errorf("list the Pods of StatefulSet %s: %w", set.Name, err)
	}
	for i := range pods.Items {
		if owner := ownerOf(&pods.Items[i]); owner != nil && owner.UID == set.UID {
			v.pods[set.UID] = append(v.pods[set.UID], pods.Items[i])
		}
	}
	if v.asOf.Pods == "" {
		v.asOf.Pods = pods.ResourceVersion
	}
	return nil
}
