package notify

import (
	"github.com/spillway-dev/spillway/internal/notify/decision"
	"github.com/spillway-dev/spillway/internal/notify/transport"
	"github.com/spillway-dev/spillway/internal/ring"
)

// plan is what is to be done about a Notifier.
type plan struct {
	decision.Plan

	// renew is true if the alerts about what is stopped are to be sent again.
	renew bool
}

// decide is pure.
func decide(s *snapshot) plan {
	p := plan{Plan: decision.Decide(&decision.Observed{Now: s.now, Notifier: s.notifier, Subjects: s.subjects, Missing: s.missing})}
	if p.hasAlerts(s) {
		at := s.renewed.Add(transport.RenewEvery)
		if p.renew = !s.now.Before(at); !p.renew {
			p.Wake = ring.Earlier(p.Wake, at)
		}
	}
	return p
}

// hasAlerts is true of a Notifier whose alerts are sent, and last.
func (p *plan) hasAlerts(s *snapshot) bool {
	spec := &s.notifier.Spec
	return spec.Alertmanager != nil && !spec.Suspend && len(p.Stopped) > 0 && !p.Persist && !p.sends() && p.Status.Attempts == 0
}

// sends is true if something is to be sent, or tried.
func (p *plan) sends() bool { return p.Verify || len(p.Deliver) > 0 }
