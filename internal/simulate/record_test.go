package simulate_test

import (
	"testing"

	appsv1 "k8s.io/api/apps/v1"

	"github.com/spillway-dev/spillway/internal/simulate/record"
)

// A StatefulSet that names its strategy alone is open: there is no partition.
func TestAStatefulSetWithoutPartitionIsOpen(t *testing.T) {
	t.Parallel()
	with := func(strategy appsv1.StatefulSetUpdateStrategy) *appsv1.StatefulSet {
		set := &appsv1.StatefulSet{}
		set.Namespace, set.Name, set.Labels = "default", "zone-a", map[string]string{"rollout-group": "ingester"}
		set.Spec.Replicas, set.Spec.UpdateStrategy = new(int32(3)), strategy
		return set
	}
	rolling := func(partition int32) appsv1.StatefulSetUpdateStrategy {
		return appsv1.StatefulSetUpdateStrategy{
			Type: appsv1.RollingUpdateStatefulSetStrategyType, RollingUpdate: &appsv1.RollingUpdateStatefulSetStrategy{Partition: new(partition)},
		}
	}
	plain := appsv1.StatefulSetUpdateStrategy{Type: appsv1.RollingUpdateStatefulSetStrategyType}
	for _, test := range []struct {
		was, is appsv1.StatefulSetUpdateStrategy
		does    string
	}{
		{rolling(3), plain, "is opened"},
		{plain, rolling(3), "is held"},
		{plain, rolling(0), ""},
		{rolling(1), plain, ""},
	} {
		r, does := record.NewRecorder(), ""
		r.See(0, with(test.was), with(test.is))
		for _, step := range r.Steps() {
			does += step.Does
		}
		if does != test.does {
			t.Errorf("from %v to %v: it %q, not %q", test.was, test.is, does, test.does)
		}
	}
}
