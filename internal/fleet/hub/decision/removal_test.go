package decision_test

import (
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/spillway-dev/spillway/internal/fleet/hub/decision"
	"github.com/spillway-dev/spillway/rollout"
)

// A mistake in the selector matches no cluster: nothing is removed before a user approves,
// and then no more at a time than the budget allows; and without a cluster the module is not ready.
func TestAMistakeInTheSelectorRemovesNothingUntilItIsApproved(t *testing.T) {
	o := planned(t, `strategy: Incremental, rollout: {maxUnreadyClusters: 2}`, "a v1 up\nb v1 up\nc v1 up\nd v1 up\ne v1 up")
	o.Module.Spec.Selector = &metav1.LabelSelector{MatchLabels: map[string]string{"env": "porduction"}}
	p := decision.Decide(o)
	if p.Permits || len(p.Steps) > 0 || p.Status.Removal == nil || p.Status.Removal.Clusters != 5 {
		t.Fatalf("%d steps, removal %+v", len(p.Steps), p.Status.Removal)
	}
	if !strings.Contains(p.Status.WaitingFor, "5 of 5 are to be removed, more than 1 (maxRemoved)") {
		t.Error(p.Status.WaitingFor)
	}
	o.Module.Status, o.Module.RemovalApproval = p.Status, p.Status.Removal.Approval
	for left := 5; left > 0; {
		o.Module.Status.Moves = nil
		p = decision.Decide(o)
		if n := len(p.Status.Moves); !p.Permits || n != min(2, left) {
			t.Fatalf("%d of %d lose the module at a time: %s", n, left, said(&p))
		}
		for _, m := range p.Status.Moves { // they lose it, and their reports go with it
			for i := range o.Records {
				if o.Records[i].Cluster == m.Cluster {
					o.Records[i].Assigned, o.Records[i].Reported = false, false
					left--
				}
			}
		}
		o.Module.Status = p.Status
	}
	o.Module.Status.Moves = nil
	p = decision.Decide(o)
	ready := p.Status.Conditions[0]
	if p.Status.Phase != string(rollout.PhaseWaiting) || ready.Type != "Ready" || ready.Status != metav1.ConditionFalse || ready.Reason != string(decision.ReasonNoClusters) {
		t.Errorf("%s %+v", p.Status.Phase, ready)
	}
	o.Module.Spec.AllowEmpty = true
	if p = decision.Decide(o); p.Status.Phase != string(rollout.PhaseComplete) {
		t.Errorf("it may be for none, and is %s", p.Status.Phase)
	}
}
