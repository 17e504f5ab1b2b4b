package guard_test

import (
	"testing"
	"time"

	zonesv1 "github.com/spillway-dev/spillway/api/zones/v1"
	"github.com/spillway-dev/spillway/internal/zones/guard"
)

func TestBoundOfARollout(t *testing.T) {
	set := zone("zone-a", 10)
	set.Status.Replicas = 10
	delay := func(s *zonesv1.ZoneAwarePodDisruptionBudgetSpec) { s.CrossZoneEvictionDelay = "20m" }
	for name, test := range map[string]struct {
		budgets []zonesv1.ZoneAwarePodDisruptionBudget
		want    guard.Bound
		wrong   bool
	}{
		"no budget":        {want: guard.Bound{}},
		"a number":         {budgets: []zonesv1.ZoneAwarePodDisruptionBudget{*budget(most(2))}, want: guard.Bound{MaxUnavailable: 2}},
		"a share":          {budgets: []zonesv1.ZoneAwarePodDisruptionBudget{*budget(percent(35))}, want: guard.Bound{MaxUnavailable: 3}},
		"zero is no bound": {budgets: []zonesv1.ZoneAwarePodDisruptionBudget{*budget(most(0))}, want: guard.Bound{}},
		"by partition":     {budgets: []zonesv1.ZoneAwarePodDisruptionBudget{*budget(most(1), byPartition, delay)}, want: guard.Bound{Soak: 20 * time.Minute}},
		"another selector": {budgets: []zonesv1.ZoneAwarePodDisruptionBudget{*budget(only("zone-b"))}, want: guard.Bound{}},
		"two of them":      {budgets: []zonesv1.ZoneAwarePodDisruptionBudget{*budget(), *second()}, wrong: true},
		"not understood":   {budgets: []zonesv1.ZoneAwarePodDisruptionBudget{*budget(delay)}, wrong: true},
	} {
		t.Run(name, func(t *testing.T) {
			got, err := guard.BoundOf(test.budgets, set)
			if (err != nil) != test.wrong || got != test.want {
				t.Errorf("%+v, %v; want %+v", got, err, test.want)
			}
		})
	}
}
