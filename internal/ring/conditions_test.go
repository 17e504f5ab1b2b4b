package ring

import (
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/spillway-dev/spillway/rollout"
)

func TestConditions(t *testing.T) {
	noon := time.Date(2026, 5, 4, 12, 0, 0, 0, time.UTC)
	for _, test := range []struct {
		phase   rollout.Phase
		stalled bool
		want    string
	}{
		{rollout.PhaseComplete, false, ConditionReady},
		{rollout.PhaseProgressing, false, ConditionReconciling},
		{rollout.PhaseWaiting, false, ConditionReconciling},
		{rollout.PhaseRollingBack, false, ConditionReconciling},
		{rollout.PhasePaused, false, ""},
		{rollout.PhaseFailed, false, ConditionStalled},
		{"Invalid", true, ConditionStalled},
	} {
		t.Run(string(test.phase), func(t *testing.T) {
			var on []metav1.Condition
			ConditionsOf(test.phase, test.stalled, "Reason", "text").Set(&on, 3, noon)
			ConditionsOf(test.phase, test.stalled, "Reason", "other text").Set(&on, 4, noon.Add(time.Hour))
			if len(on) != 3 || on[0].Type != ConditionReady {
				t.Fatalf("%+v", on)
			}
			for _, c := range on {
				if (c.Status == metav1.ConditionTrue) != (c.Type == test.want) || c.ObservedGeneration != 4 || c.Message != "other text" || !c.LastTransitionTime.Time.Equal(noon) {
					t.Errorf("%+v", c)
				}
			}
			if test.want != "" && !meta.IsStatusConditionTrue(on, test.want) {
				t.Errorf("%s is not true", test.want)
			}
		})
	}
}
