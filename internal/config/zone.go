package config

import (
	appsv1 "k8s.io/api/apps/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/spillway-dev/spillway/internal/vocabulary"
)

// A StatefulSet that is a zone of a group gets its hash at once, whatever the
// budget: writing it moves no Pod. The zones ring moves them, one zone at a time,
// under a budget of its own.

// zoneOf reads the part that a workload has in a group.
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
