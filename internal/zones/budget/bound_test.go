package budget_test

import (
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	zonesv1 "github.com/spillway-dev/spillway/api/zones/v1"
	"github.com/spillway-dev/spillway/internal/zones/budget"
)

type spec = zonesv1.ZoneAwarePodDisruptionBudgetSpec

// of is a budget for the Pods of the group ingester.
func of(change ...func(*spec)) zonesv1.ZoneAwarePodDisruptionBudget {
	b := zonesv1.ZoneAwarePodDisruptionBudget{ObjectMeta: metav1.ObjectMeta{Name: "ingester-rollout"}}
	b.Spec.Selector.MatchLabels = map[string]string{"rollout-group": "ingester"}
	for _, c := range change {
		c(&b.Spec)
	}
	return b
}

func most(n int32) func(*spec)    { return func(s *spec) { s.MaxUnavailable = &n } }
func percent(n int32) func(*spec) { return func(s *spec) { s.MaxUnavailablePercentage = &n } }
func delayed(s *spec)             { s.CrossZoneEvictionDelay = "20m" }
func byPartition(s *spec)         { s.PodNamePartitionRegex = `zone-[a-z]-([0-9]+)` }
func ofOthers(s *spec)            { s.Selector.MatchLabels = map[string]string{"name": "zone-b"} }

func TestBoundOfARollout(t *testing.T) {
	replicas := int32(10)
	set := &appsv1.StatefulSet{Spec: appsv1.StatefulSetSpec{Replicas: &replicas}, Status: appsv1.StatefulSetStatus{Replicas: 10}}
	set.Spec.Template.Labels = map[string]string{"rollout-group": "ingester"}
	for name, test := range map[string]struct {
		budgets []zonesv1.ZoneAwarePodDisruptionBudget
		want    budget.Bound
		wrong   bool
	}{
		"no budget":        {want: budget.Bound{}},
		"a number":         {budgets: []zonesv1.ZoneAwarePodDisruptionBudget{of(most(2))}, want: budget.Bound{MaxUnavailable: 2}},
		"a share":          {budgets: []zonesv1.ZoneAwarePodDisruptionBudget{of(percent(35))}, want: budget.Bound{MaxUnavailable: 3}},
		"zero is no bound": {budgets: []zonesv1.ZoneAwarePodDisruptionBudget{of(most(0))}, want: budget.Bound{}},
		"by partition":     {budgets: []zonesv1.ZoneAwarePodDisruptionBudget{of(most(1), byPartition, delayed)}, want: budget.Bound{Soak: 20 * time.Minute}},
		"another selector": {budgets: []zonesv1.ZoneAwarePodDisruptionBudget{of(ofOthers)}, want: budget.Bound{}},
		"two of them":      {budgets: []zonesv1.ZoneAwarePodDisruptionBudget{of(), of()}, wrong: true},
		"not understood":   {budgets: []zonesv1.ZoneAwarePodDisruptionBudget{of(delayed)}, wrong: true},
	} {
		t.Run(name, func(t *testing.T) {
			got, err := budget.BoundOf(test.budgets, set)
			if (err != nil) != test.wrong || got != test.want {
				t.Errorf("%+v, %v; want %+v", got, err, test.want)
			}
		})
	}
}

// A percentage is rounded down and at least one, as rollout-operator and every other
// percentage here have it; only of no replicas it is none.
func TestPercentagesOfReplicas(t *testing.T) {
	for _, test := range []struct{ percent, spec, status, want int32 }{
		{50, 3, 3, 1}, {34, 3, 3, 1}, {67, 3, 3, 2}, {1, 100, 100, 1}, {1, 3, 3, 1}, {99, 10, 10, 9}, {100, 7, 7, 7},
		{50, 10, 4, 2}, {50, 4, 10, 2}, {0, 10, 10, 0}, {50, 0, 3, 0}, {50, 3, 0, 0},
	} {
		object := of(percent(test.percent))
		b, err := budget.Of(&object)
		if err != nil {
			t.Fatal(err)
		}
		set := &appsv1.StatefulSet{Spec: appsv1.StatefulSetSpec{Replicas: &test.spec}, Status: appsv1.StatefulSetStatus{Replicas: test.status}}
		if got := b.Unavailable(set); got != int(test.want) {
			t.Errorf("%+v: %d", test, got)
		}
	}
}
