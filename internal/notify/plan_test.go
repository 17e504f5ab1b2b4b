package notify

import (
	"fmt"
	"slices"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

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

// TestSilences checks that a silence is recorded before it is made, renewed each minute, also
// after a restart, and ended when its zone is up again.
func TestSilences(t *testing.T) {
	t.Parallel()
	now := time.Date(2026, 5, 4, 12, 0, 0, 0, time.UTC)
	s := snapshot{now: now, notifier: &v1alpha1.Notifier{}, down: []string{"zone-b"}}
	if p := decide(&s); p.Persist || p.silence {
		t.Errorf("without an Alertmanager: %+v", p)
	}
	s.notifier.Spec.Alertmanager = &v1alpha1.AlertmanagerNotifier{Silence: true}
	p := decide(&s)
	if !p.Persist || p.silence || !slices.Equal(p.Status.Silenced, []string{"zone-b"}) {
		t.Fatalf("before it is recorded: %+v", p)
	}
	s.notifier.Status = p.Status
	if p = decide(&s); !p.silence || !slices.Equal(p.Silenced, s.down) || p.Persist {
		t.Errorf("after a restart: %+v", p)
	}
	s.silenced, s.silencedAt = s.down, now
	s.downUntil = now.Add(time.Hour)
	if p = decide(&s); p.silence || !p.Wake.Equal(now.Add(transport.RenewEvery)) {
		t.Errorf("a moment later: %+v", p)
	}
	s.notifier.Status.Attempts, s.notifier.Status.RetryAt = 3, &metav1.MicroTime{Time: now.Add(2 * time.Minute)}
	s.now = now.Add(transport.RenewEvery)
	if p = decide(&s); !p.silence || p.Persist {
		t.Errorf("a minute later, while messages fail: %+v", p)
	}
	s.notifier.Status.Attempts, s.notifier.Status.RetryAt, s.now = 0, nil, now
	s.down = []string{"zone-c"}
	p = decide(&s)
	if !p.Persist || !slices.Equal(p.Status.Silenced, []string{"zone-b", "zone-c"}) {
		t.Fatalf("the next zone: %+v", p)
	}
	s.notifier.Status = p.Status
	if p = decide(&s); !p.silence || !slices.Equal(p.Unsilenced, []string{"zone-b"}) || !slices.Equal(p.Silenced, []string{"zone-c"}) {
		t.Errorf("the zone before is up: %+v", p)
	}
	s.notifier.Status = decision.Unsilenced(p.Status, p.Unsilenced)
	s.notifier.Spec.Suspend = true
	if p = decide(&s); !p.silence || !slices.Equal(p.Unsilenced, s.down) || len(p.Silenced) > 0 {
		t.Errorf("suspended: %+v", p)
	}
	s.notifier.Status = decision.Unsilenced(p.Status, p.Unsilenced)
	if p = decide(&s); p.Persist || p.silence || !p.Wake.IsZero() {
		t.Errorf("nothing is silenced: %+v", p)
	}
}

// TestSilencesAreBounded checks that there are only so many.
func TestSilencesAreBounded(t *testing.T) {
	t.Parallel()
	s := snapshot{notifier: &v1alpha1.Notifier{}}
	s.notifier.Spec.Alertmanager = &v1alpha1.AlertmanagerNotifier{Silence: true}
	for i := range 100 {
		s.down = append(s.down, fmt.Sprintf("zone-%02d", i))
	}
	p := decide(&s)
	if s.notifier.Status = p.Status; len(p.Status.Silenced) != 64 {
		t.Errorf("%d are recorded", len(p.Status.Silenced))
	}
	if p = decide(&s); p.Persist || len(p.Silenced) != 64 || len(p.Unsilenced) != 0 {
		t.Errorf("then: %+v", p)
	}
}
