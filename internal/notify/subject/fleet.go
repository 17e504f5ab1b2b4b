package subject

import (
	"slices"

	"sigs.k8s.io/controller-runtime/pkg/client"

	fleetv1 "github.com/spillway-dev/spillway/api/fleet/v1alpha1"
	"github.com/spillway-dev/spillway/internal/metrics"
	"github.com/spillway-dev/spillway/internal/notify/decision"
	"github.com/spillway-dev/spillway/rollout"
)

// Module is a Module or a BootstrapModule, with the rollouts of its history.
func (read Reader) Module(kind string, m client.Object, s *fleetv1.ModuleStatus) decision.Subject {
	var history []decision.Rollout
	for i := range s.History {
		p := &s.History[i]
		if isReturn(s.History, i) {
			continue
		}
		r := decision.Rollout{ID: p.Revision, StartedAt: p.StartedAt.Time, Reason: p.Outcome, Trace: read.trace(m, p.Revision, p.StartedAt)}
		if p.FinishedAt != nil {
			r.EndedAt = p.FinishedAt.Time
		}
		if p.Outcome == string(rollout.OutcomeRolledBack) {
			r.Sentence = p.Revision + " failed and is rolled back"
		}
		history = append(history, r)
	}
	return decision.Subject{
		Key: KeyOf(kind, m), Ring: metrics.RingFleet, Kind: kind, Name: m.GetName(), Rollouts: finished(history, s.Conditions),
	}
}

// isReturn is true of the part of a history that is no rollout of its own: after a rollout was
// rolled back, that of the revision before it.
func isReturn(history []fleetv1.PastRollout, i int) bool {
	return i+1 < len(history) && history[i+1].Outcome == string(rollout.OutcomeRolledBack) &&
		slices.ContainsFunc(history[i+2:], func(p fleetv1.PastRollout) bool { return p.Revision == history[i].Revision })
}
