package workload

import (
	appsv1 "k8s.io/api/apps/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/spillway-dev/spillway/internal/vocabulary"
)

// Zone is the part that a StatefulSet has in a group, whose Pods the zones ring
// replaces, one zone at a time and under a budget of its own. Its hash is written
// immediately, whatever the budget, because that replaces no Pod.
type Zone struct {
	// Group is the group's name, empty if it is in none.
	Group string
	// Open is true if its controller would replace Pods as soon as the template
	// changes.
	Open bool
}

// zoneOf reads the part of a workload in a group.
func zoneOf(obj client.Object) Zone {
	set, ok := obj.(*appsv1.StatefulSet)
	if !ok {
		return Zone{}
	}
	z := Zone{Group: vocabulary.GroupOf(set.Labels, set.Annotations)}
	if s := set.Spec.UpdateStrategy; s.Type != appsv1.OnDeleteStatefulSetStrategyType {
		held := s.RollingUpdate != nil && s.RollingUpdate.Partition != nil && *s.RollingUpdate.Partition >= replicasOf(set)
		z.Open = !held
	}
	return z
}

func replicasOf(set *appsv1.StatefulSet) int32 {
	if set.Spec.Replicas == nil {
		return 1
	}
	return *set.Spec.Replicas
}

// IsReplaced is true if all Pods of a zone have the present template. The current revision of
// its status does not say so, as it stays behind where another client replaces the Pods.
func IsReplaced(obj client.Object) bool {
	set, ok := obj.(*appsv1.StatefulSet)
	return ok && set.Status.ObservedGeneration >= set.Generation && set.Status.UpdatedReplicas >= replicasOf(set)
}
