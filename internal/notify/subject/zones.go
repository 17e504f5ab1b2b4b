package subject

import (
	"strconv"

	"github.com/spillway-dev/spillway/api/spillway/v1alpha1"
	"github.com/spillway-dev/spillway/internal/metrics"
	"github.com/spillway-dev/spillway/internal/notify/decision"
)

// Group is a group of zones, with the rollouts of its history.
func Group(g *v1alpha1.RolloutGroup) decision.Subject {
	history := make([]decision.Rollout, len(g.Status.History))
	for i := range g.Status.History {
		r := &g.Status.History[i]
		history[i] = decision.Rollout{ID: strconv.FormatInt(r.Number, 10), StartedAt: r.StartedAt.Time, Reason: r.Outcome}
		if r.FinishedAt != nil {
			history[i].EndedAt = r.FinishedAt.Time
		}
	}
	return decision.Subject{
		Key: KeyOf(KindGroup, g), Ring: metrics.RingZones, Kind: KindGroup, Name: g.Name, Rollouts: finished(history, g.Status.Conditions),
	}
}
