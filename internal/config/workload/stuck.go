package workload

import (
	appsv1 "k8s.io/api/apps/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/spillway-dev/spillway/internal/vocabulary"
)

// MayBeStuck is true of a StatefulSet that replaces its Pods in order, is not ready, and has not
// updated all of them: it waits for the first one that is not ready, also if that never can be
// at the revision that it has (kubernetes/kubernetes#67250). Zones are replaced by their group.
func MayBeStuck(obj client.Object) bool {
	set, ok := obj.(*appsv1.StatefulSet)
	return ok && set.Spec.PodManagementPolicy != appsv1.ParallelPodManagement &&
		set.Spec.UpdateStrategy.Type != appsv1.OnDeleteStatefulSetStrategyType &&
		vocabulary.GroupOf(set.Labels, set.Annotations) == "" &&
		set.Status.ObservedGeneration >= set.Generation && set.Status.UpdateRevision != "" &&
		set.Status.UpdatedReplicas < replicasOf(set) && !IsReady(set)
}
