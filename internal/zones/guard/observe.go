package guard

import (
	"context"
	"errors"
	"fmt"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	apimeta "k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/spillway-dev/spillway/api/spillway/v1alpha1"
	zonesv1 "github.com/spillway-dev/spillway/api/zones/v1"
	"github.com/spillway-dev/spillway/internal/vocabulary"
)

// observer does all the reads, from the API server itself: what is admitted here
// cannot be taken back when a cache turns out to have been old.
type observer struct{ live client.Reader }

// group reads a group: its lock first, then its StatefulSets, then their Pods.
func (o observer) group(ctx context.Context, namespace, name string) (*group, error) {
	object, err := o.lockOf(ctx, namespace, name)
	if err != nil {
		return nil, err
	}
	sets := &appsv1.StatefulSetList{}
	if err := o.live.List(ctx, sets, client.InNamespace(namespace)); err != nil {
		return nil, fmt.Errorf("list StatefulSets: %w", err)
	}
	g := &group{object: object}
	g.asOf.StatefulSets = sets.ResourceVersion
	for i := range sets.Items {
		set := &sets.Items[i]
		if vocabulary.GroupOf(set.Labels, set.Annotations) != name {
			continue
		}
		pods, version, err := o.pods(ctx, set)
		if err != nil {
			return nil, err
		}
		if g.asOf.Pods == "" { // the first is the oldest
			g.asOf.Pods = version
		}
		g.zones = append(g.zones, zone{set: set, pods: pods})
	}
	return g, nil
}

// errNoGroup says that there is no RolloutGroup whose lock could be taken.
var errNoGroup = errors.New("its RolloutGroup does not exist")

// lockOf reads the RolloutGroup.
func (o observer) lockOf(ctx context.Context, namespace, name string) (*v1alpha1.RolloutGroup, error) {
	object := &v1alpha1.RolloutGroup{}
	err := o.live.Get(ctx, client.ObjectKey{Namespace: namespace, Name: name}, object)
	if apierrors.IsNotFound(err) || apimeta.IsNoMatchError(err) {
		return nil, errNoGroup
	}
	if err != nil {
		return nil, fmt.Errorf("get RolloutGroup %s: %w", name, err)
	}
	return object, nil
}

// pod reads the Pod that is to be evicted.
func (o observer) pod(ctx context.Context, namespace, name string) (*corev1.Pod, error) {
	pod := &corev1.Pod{}
	err := o.live.Get(ctx, client.ObjectKey{Namespace: namespace, Name: name}, pod)
	return pod, err //nolint:wrapcheck // the sentence of the API server is shown as it is
}

// budgets are those of a namespace, none where the kind is not installed.
func (o observer) budgets(ctx context.Context, namespace string) ([]zonesv1.ZoneAwarePodDisruptionBudget, error) {
	list := &zonesv1.ZoneAwarePodDisruptionBudgetList{}
	err := o.live.List(ctx, list, client.InNamespace(namespace))
	if apimeta.IsNoMatchError(err) || apierrors.IsNotFound(err) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("list ZoneAwarePodDisruptionBudgets: %w", err)
	}
	return list.Items, nil
}

// nativeBudgets are the PodDisruptionBudgets of a namespace.
func (o observer) nativeBudgets(ctx context.Context, namespace string) ([]policyv1.PodDisruptionBudget, error) {
	list := &policyv1.PodDisruptionBudgetList{}
	if err := o.live.List(ctx, list, client.InNamespace(namespace)); err != nil {
		return nil, fmt.Errorf("list PodDisruptionBudgets: %w", err)
	}
	return list.Items, nil
}

// scope reads the StatefulSets that a budget is for, with those of their Pods that it
// is for as well.
func (o observer) scope(ctx context.Context, namespace string, labels map[string]string) ([]zone, v1alpha1.Seen, error) {
	sets, pods := &appsv1.StatefulSetList{}, &corev1.PodList{}
	if err := o.live.List(ctx, sets, client.InNamespace(namespace), client.MatchingLabels(labels)); err != nil {
		return nil, v1alpha1.Seen{}, fmt.Errorf("list StatefulSets: %w", err)
	}
	if err := o.live.List(ctx, pods, client.InNamespace(namespace), client.MatchingLabels(labels)); err != nil {
		return nil, v1alpha1.Seen{}, fmt.Errorf("list Pods: %w", err)
	}
	zones := make([]zone, len(sets.Items))
	for i := range sets.Items {
		zones[i] = zone{set: &sets.Items[i], pods: owned(&sets.Items[i], pods.Items)}
	}
	return zones, v1alpha1.Seen{Pods: pods.ResourceVersion, StatefulSets: sets.ResourceVersion}, nil
}

// pods are those that belong to a StatefulSet, and how new the list is.
func (o observer) pods(ctx context.Context, set *appsv1.StatefulSet) ([]corev1.Pod, string, error) {
	selector, err := metav1.LabelSelectorAsSelector(set.Spec.Selector)
	if err != nil {
		return nil, "", fmt.Errorf("selector of StatefulSet %s: %w", set.Name, err)
	}
	list := &corev1.PodList{}
	if err := o.live.List(ctx, list, client.InNamespace(set.Namespace), client.MatchingLabelsSelector{Selector: selector}); err != nil {
		return nil, "", fmt.Errorf("list the Pods of StatefulSet %s: %w", set.Name, err)
	}
	return owned(set, list.Items), list.ResourceVersion, nil
}

// zone is the one of a StatefulSet, nil if it does not exist.
func (g *group) zone(name string) *zone {
	for i := range g.zones {
		if g.zones[i].set.Name == name {
			return &g.zones[i]
		}
	}
	return nil
}

// set reads a StatefulSet.
func (o observer) set(ctx context.Context, namespace, name string) (*appsv1.StatefulSet, error) {
	set := &appsv1.StatefulSet{}
	err := o.live.Get(ctx, client.ObjectKey{Namespace: namespace, Name: name}, set)
	return set, err //nolint:wrapcheck // the sentence of the API server is shown as it is
}
