package notify

import (
	"testing"
	"time"

	"github.com/spillway-dev/spillway/api/spillway/v1alpha1"
	"github.com/spillway-dev/spillway/internal/notify/decision"
	"github.com/spillway-dev/spillway/internal/notify/transport"
)

// TestAlertsAreRenewed checks that an alert is sent again each minute while a rollout is
// stopped, immediately after a restart, and not any more once it continues.
func TestAlertsAreRenewed(t *testing.T) {
	t.Parallel()
	now := time.Date(2026, 5, 4, 12, 0, 0, 0, time.UTC)
	stopped := decision.Rollout{ID: "1", StartedAt: now, State: decision.Stopped, Reason: "GateRefused"}
	s := snapshot{now: now, notifier: &v1alpha1.Notifier{}, subjects: []decision.Subject{{Key: "RolloutGroup/u1", Kind: "RolloutGroup", Rollouts: []decision.Rollout{stopped}}}}
	s.notifier.Spec.Alertmanager = &v1alpha1.AlertmanagerNotifier{}
	p := decide(&s)
	if !p.Persist || p.renew {
		t.Fatalf("before it is recorded: %+v", p)
	}
	s.notifier.Status = p.Status
	if p = decide(&s); len(p.Deliver) != 1 || p.renew {
		t.Fatalf("before it is sent: %+v", p)
	}
	s.notifier.Status = decision.Delivered(p.Status, p.Deliver, nil, now)
	if p = decide(&s); !p.renew {
		t.Errorf("after a restart: %+v", p)
	}
	s.renewed = now
	if p = decide(&s); p.renew || !p.Wake.Equal(now.Add(transport.RenewEvery)) {
		t.Errorf("a moment later: %+v", p)
	}
	s.now = now.Add(transport.RenewEvery)
	if p = decide(&s); !p.renew || p.Persist || p.sends() {
		t.Errorf("a minute later: %+v", p)
	}
	s.notifier.Spec.Suspend = true
	if p = decide(&s); p.renew {
		t.Errorf("suspended: %+v", p)
	}
	s.notifier.Spec.Suspend, s.subjects[0].Rollouts[0].State = false, decision.Running
	if p = decide(&s); p.renew || !p.Persist || len(p.Status.Queue) != 1 || p.Status.Queue[0].Phase != v1alpha1.RolloutResumed {
		t.Errorf("once it continues: %+v", p)
	}
}
