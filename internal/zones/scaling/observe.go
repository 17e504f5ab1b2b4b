package scaling

import (
	"context"
	"fmt"

	appsv1 "k8s.io/api/apps/v1"
	autoscalingv1 "k8s.io/api/autoscaling/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	apimeta "k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/spillway-dev/spillway/api/spillway/v1alpha1"
	zonesv1 "github.com/spillway-dev/spillway/api/zones/v1"
	"github.com/spillway-dev/spillway/internal/vocabulary"
	"github.com/spillway-dev/spillway/internal/zones/lock"
	"github.com/spillway-dev/spillway/internal/zones/preparehook"
	"github.com/spillway-dev/spillway/internal/zones/replica"
)

// observer does all the reads.
type observer struct {
	options Options
	// cached has the StatefulSets and the RolloutGroups; live asks the API server, for
	// Pods and their addresses among others, which no cache has to hold.
	cached, live client.Reader
	scales       client.SubResourceClientConstructor
	mapper       apimeta.RESTMapper
}

// snapshot is what a pass sees of a group.
type snapshot struct {
	Observed

	key types.NamespacedName
	// group is the object behind Observed.Status.
	group *v1alpha1.RolloutGroup
	// sets are the objects behind Observed.Sets.
	sets []appsv1.StatefulSet
	// asOf is how new the view of Pods is, empty if there is none.
	asOf v1alpha1.Seen
}

// observe reads a group: first at what was decided before, then at the rest.
func (o *observer) observe(ctx context.Context, key types.NamespacedName, m *memory) (snapshot, error) {
	s := snapshot{key: key, Observed: Observed{Now: o.options.Now(), Name: key.Name, Refusals: m.Refusals(o.options.Now())}}
	group := &v1alpha1.RolloutGroup{}
	err := o.cached.Get(ctx, key, group)
	if client.IgnoreNotFound(err) != nil {
		return s, fmt.Errorf("get RolloutGroup %s: %w", key.Name, err)
	}
	s.group, s.Status, s.HasGroup = group, group.Status, err == nil
	sets := &appsv1.StatefulSetList{}
	if err := o.cached.List(ctx, sets, client.InNamespace(key.Namespace), client.UnsafeDisableDeepCopy); err != nil {
		return s, fmt.Errorf("list StatefulSets: %w", err)
	}
	for i := range sets.Items {
		if set := &sets.Items[i]; groupOf(set) == key.Name {
			s.sets = append(s.sets, *set)
			seen := setOf(set)
			seen.Answers = m.recall(&seen)
			s.Sets = append(s.Sets, seen)
		}
	}
	m.expire(s.Sets)
	o.readMirrors(ctx, &s)
	return s, o.readDown(ctx, &s)
}

// readDown reads which replicas are down, where some are to be removed. That is asked of
// the API server itself: a cache may not show yet what was taken last.
func (o *observer) readDown(ctx context.Context, s *snapshot) error {
	if !s.lowers() {
		return nil
	}
	for i := range s.sets {
		pods, version, err := o.podsAt(ctx, &s.sets[i])
		if err != nil {
			return err
		}
		if s.asOf.Pods == "" { // the first is the oldest
			s.asOf.Pods = version
		}
		if w, ok := s.wish(&s.Sets[i]); ok && w.to >= 0 && w.lowers() {
			s.Sets[i].TakesBack = lock.TakesBack(&s.Status, &s.sets[i], pods, w.to)
		}
		if s.Sets[i].Unprepared, err = o.unprepared(ctx, s, i, pods); err != nil {
			return err
		}
		if first := replica.FirstDown(replica.OfSet(&s.sets[i], pods)); first != nil {
			s.Sets[i].Down = first.Name + " is " + string(first.State)
		}
	}
	return nil
}

// unprepared is why a replica cannot be prepared that a delayed downscale is to remove.
func (o *observer) unprepared(ctx context.Context, s *snapshot, i int, pods []corev1.Pod) (string, error) {
	set := &s.Sets[i]
	w, ok := s.wish(set)
	if !ok || set.Settings.Delay == nil || w.to < 0 {
		return "", nil
	}
	why, err := preparehook.Unprepared(ctx, o.live, &s.sets[i], pods, set.Replicas, w.to)
	if apierrors.IsForbidden(err) { // of a user who asks; what is not known may have data
		return err.Error(), nil
	}
	return why, err
}

func groupOf(obj client.Object) string {
	return vocabulary.GroupOf(obj.GetLabels(), obj.GetAnnotations())
}

func setOf(s *appsv1.StatefulSet) Set {
	return Set{
		Name: s.Name, UID: s.UID, ResourceVersion: s.ResourceVersion, Deleting: s.DeletionTimestamp != nil,
		FirstOrdinal: replica.FirstOrdinal(s), Replicas: replica.Count(s), ReadyReplicas: int(s.Status.ReadyReplicas),
		Settled: s.Generation == s.Status.ObservedGeneration, Settings: SettingsOf(s.Labels, s.Annotations),
		Scaled: scaledOf(vocabulary.Scaled.Get(s.Annotations)),
	}
}

// object is the one behind a set.
func (s *snapshot) object(name string) *appsv1.StatefulSet {
	for i := range s.sets {
		if s.sets[i].Name == name {
			return &s.sets[i]
		}
	}
	return nil
}

// readMirrors reads each mirrored object once.
func (o *observer) readMirrors(ctx context.Context, s *snapshot) {
	read := map[Mirror]*Mirrored{}
	for i := range s.Sets {
		mirror := s.Sets[i].Settings.Mirror
		if mirror == nil {
			continue
		}
		if read[*mirror] == nil {
			read[*mirror] = o.readMirror(ctx, s.key.Namespace, *mirror)
		}
		s.Sets[i].Mirrored = read[*mirror]
	}
}

// readMirror tries all versions of a kind, because some may have no scale.
func (o *observer) readMirror(ctx context.Context, namespace string, m Mirror) *Mirrored {
	mappings, err := o.mapper.RESTMappings(m.Kind.GroupKind())
	if err != nil {
		return &Mirrored{Problem: "its kind is not known here: " + err.Error()}
	}
	found := &Mirrored{Problem: "its kind has no scale subresource"}
	for _, mapping := range mappings {
		obj := &unstructured.Unstructured{}
		obj.SetGroupVersionKind(mapping.GroupVersionKind)
		obj.SetNamespace(namespace)
		obj.SetName(m.Name)
		scale := &unstructured.Unstructured{}
		scale.SetGroupVersionKind(autoscalingv1.SchemeGroupVersion.WithKind("Scale"))
		if err := o.scales.SubResource("scale").Get(ctx, obj, scale); err != nil {
			found.Problem = err.Error()
			continue
		}
		return mirroredBy(scale)
	}
	return found
}

// mirroredBy is what a Scale says; a number that it leaves out is zero.
func mirroredBy(scale *unstructured.Unstructured) *Mirrored {
	wanted, _, err := unstructured.NestedInt64(scale.Object, "spec", "replicas")
	if err != nil {
		return &Mirrored{Problem: "its scale has no number of replicas"}
	}
	there, _, _ := unstructured.NestedInt64(scale.Object, "status", "replicas")
	return &Mirrored{Replicas: int(wanted), StatusReplicas: int(there), UID: scale.GetUID(), ResourceVersion: scale.GetResourceVersion()}
}

// pods are those of a StatefulSet, from the API server itself.
func (o *observer) pods(ctx context.Context, set *appsv1.StatefulSet) ([]corev1.Pod, error) {
	pods, _, err := o.podsAt(ctx, set)
	return pods, err
}

// podsAt is pods, and how new the list is.
func (o *observer) podsAt(ctx context.Context, set *appsv1.StatefulSet) ([]corev1.Pod, string, error) {
	selector, err := metav1.LabelSelectorAsSelector(set.Spec.Selector)
	if err != nil {
		return nil, "", fmt.Errorf("selector of StatefulSet %s: %w", set.Name, err)
	}
	list := &corev1.PodList{}
	if err := o.live.List(ctx, list, client.InNamespace(set.Namespace), client.MatchingLabelsSelector{Selector: selector}); err != nil {
		return nil, "", fmt.Errorf("list the Pods of StatefulSet %s: %w", set.Name, err)
	}
	var owned []corev1.Pod
	for i := range list.Items {
		if owner := metav1.GetControllerOfNoCopy(&list.Items[i]); owner != nil && owner.UID == set.UID {
			owned = append(owned, list.Items[i])
		}
	}
	return owned, list.ResourceVersion, nil
}

// set reads a StatefulSet as it is now, nil if there is none.
func (o *observer) set(ctx context.Context, namespace, name string) (*appsv1.StatefulSet, error) {
	var none *appsv1.StatefulSet
	set := &appsv1.StatefulSet{}
	err := o.live.Get(ctx, client.ObjectKey{Namespace: namespace, Name: name}, set)
	if apierrors.IsNotFound(err) {
		return none, nil
	}
	if err != nil {
		return nil, fmt.Errorf("get StatefulSet %s: %w", name, err)
	}
	return set, nil
}

// evictionsSeen is true if all Pods whose eviction was admitted are being replaced out;
// and how new a view must be to know that.
func (o *observer) evictionsSeen(ctx context.Context, namespace string) (bool, v1alpha1.Seen, error) {
	budgets := &zonesv1.ZoneAwarePodDisruptionBudgetList{}
	err := o.live.List(ctx, budgets, client.InNamespace(namespace))
	if err != nil && !apimeta.IsNoMatchError(err) {
		return false, v1alpha1.Seen{}, fmt.Errorf("list ZoneAwarePodDisruptionBudgets: %w", err)
	}
	for i := range budgets.Items {
		for name, d := range budgets.Items[i].Status.DisruptedPods {
			seen, err := o.evictionSeen(ctx, client.ObjectKey{Namespace: namespace, Name: name}, d)
			if err != nil || !seen {
				return false, v1alpha1.Seen{}, err
			}
		}
	}
	one := &metav1.PartialObjectMetadataList{}
	one.SetGroupVersionKind(corev1.SchemeGroupVersion.WithKind("PodList"))
	if err := o.live.List(ctx, one, client.InNamespace(namespace), client.Limit(1)); err != nil {
		return false, v1alpha1.Seen{}, fmt.Errorf("list Pods: %w", err)
	}
	return true, v1alpha1.Seen{Pods: one.ResourceVersion}, nil
}

func (o *observer) evictionSeen(ctx context.Context, key client.ObjectKey, d zonesv1.DisruptedPod) (bool, error) {
	if !o.options.Now().Before(d.At.Add(lock.LandsWithin)) {
		return true, nil
	}
	pod := &corev1.Pod{}
	err := o.live.Get(ctx, key, pod)
	if apierrors.IsNotFound(err) {
		return true, nil
	}
	if err != nil {
		return false, fmt.Errorf("get Pod %s: %w", key.Name, err)
	}
	return pod.UID != d.UID || pod.DeletionTimestamp != nil, nil
}
