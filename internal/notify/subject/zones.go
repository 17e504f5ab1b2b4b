package subject

import (
	"slices"
	"strconv"
	"time"

	apimeta "k8s.io/apimachinery/pkg/api/meta"

	"github.com/spillway-dev/spillway/api/spillway/v1alpha1"
	"github.com/spillway-dev/spillway/internal/metrics"
	"github.com/spillway-dev/spillway/internal/notify/decision"
	"github.com/spillway-dev/spillway/internal/ring"
	"github.com/spillway-dev/spillway/internal/zones/lock"
	"github.com/spillway-dev/spillway/rollout"
)

// Group is a group of zones, with the rollouts of its history.
func (read Reader) Group(g *v1alpha1.RolloutGroup) decision.Subject {
	history := make([]decision.Rollout, len(g.Status.History))
	for i := range g.Status.History {
		r := &g.Status.History[i]
		id := strconv.FormatInt(r.Number, 10)
		history[i] = decision.Rollout{ID: id, StartedAt: r.StartedAt.Time, Reason: r.Outcome, Trace: read.trace(g, id, r.StartedAt)}
		if r.FinishedAt != nil {
			history[i].EndedAt = r.FinishedAt.Time
		}
	}
	return decision.Subject{
		Key: KeyOf(KindGroup, g), Ring: metrics.RingZones, Kind: KindGroup, Name: g.Name, Rollouts: finished(history, g.Status.Conditions),
	}
}

// Down are the zones of a group that are down on purpose: those that its lock is held for, while
// the rollout is not stopped. Until is when that changes automatically, zero for never.
func Down(g *v1alpha1.RolloutGroup, now time.Time) (zones []string, until time.Time) {
	s := &g.Status
	held := lock.Observed(s, now)
	if held.Holder == "" || g.DeletionTimestamp != nil || apimeta.IsStatusConditionTrue(s.Conditions, ring.ConditionStalled) {
		return nil, time.Time{}
	}
	if s.Lock != nil && s.Lock.Expires != nil && s.Lock.Expires.After(now) {
		until = s.Lock.Expires.Time
	}
	for i := range s.Zones {
		if z := &s.Zones[i]; isHeld(held, s, z.Name) && (z.Ready < z.Total || s.Phase != string(rollout.PhasePaused) && s.Phase != string(rollout.PhaseWaiting)) {
			zones = append(zones, z.Name)
		}
	}
	return zones, until
}

// isHeld is true of the zone that a lock is for: one that is for several is for those in which
// something is about to be replaced.
func isHeld(held *rollout.Lock, s *v1alpha1.RolloutGroupStatus, zone string) bool {
	return held.Unit == zone || held.Unit == "" && slices.ContainsFunc(s.Moves, func(m v1alpha1.Move) bool { return m.Zone == zone })
}
