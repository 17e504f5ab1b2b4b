package notify

import (
	"slices"
	"time"

	"github.com/spillway-dev/spillway/internal/notify/decision"
	"github.com/spillway-dev/spillway/internal/notify/transport"
	"github.com/spillway-dev/spillway/internal/ring"
)

// plan is what is to be done about a Notifier.
type plan struct {
	decision.Plan

	// renew is true if the alerts about what is stopped are to be sent again.
	renew bool
	// silence is true if the silences are to be renewed, or ended.
	silence bool
}

// decide is pure.
func decide(s *snapshot) plan {
	p := plan{Plan: decision.Decide(&decision.Observed{
		Now: s.now, Notifier: s.notifier, Subjects: s.subjects, Missing: s.missing, Down: s.down, DownUntil: s.downUntil,
	})}
	if p.hasAlerts(s) {
		p.renew = p.isDue(s, s.renewed)
	}
	if len(p.Silenced) > 0 && !p.Persist {
		p.silence = !slices.Equal(p.Silenced, s.silenced) || p.isDue(s, s.silencedAt)
	}
	p.silence = p.silence || len(p.Unsilenced) > 0 && !p.Persist
	return p
}

// isDue is true if what was sent at a time is to be sent again, and otherwise says when.
func (p *plan) isDue(s *snapshot, at time.Time) bool {
	again := at.Add(transport.RenewEvery)
	if s.now.Before(again) {
		p.Wake = ring.Earlier(p.Wake, again)
		return false
	}
	return true
}

// hasAlerts is true of a Notifier whose alerts are sent, and last.
func (p *plan) hasAlerts(s *snapshot) bool {
	spec := &s.notifier.Spec
	return spec.Alertmanager != nil && !spec.Suspend && len(p.Stopped) > 0 && !p.Persist && !p.sends() && p.Status.Attempts == 0
}

// sends is true if something is to be sent, or tried.
func (p *plan) sends() bool { return p.Verify || len(p.Deliver) > 0 }
