package subject

import (
	"github.com/spillway-dev/spillway/api/kudo/v1beta1"
	"github.com/spillway-dev/spillway/internal/metrics"
	"github.com/spillway-dev/spillway/internal/notify/decision"
)

// Instance is an Instance, with the plans that run and ran.
func (read Reader) Instance(i *v1beta1.Instance) decision.Subject {
	var history []decision.Rollout
	if e := i.Status.Running(); e != nil {
		history = append(history, decision.Rollout{ID: e.Plan, StartedAt: e.StartedAt.Time, Trace: read.trace(i, e.Plan, e.StartedAt)})
	}
	for k := range i.Status.History {
		e := &i.Status.History[k]
		history = append(history, decision.Rollout{
			ID: e.Plan, StartedAt: e.StartedAt.Time, EndedAt: e.FinishedAt.Time, Reason: string(e.Result), Sentence: e.Message,
			Trace: read.trace(i, e.Plan, e.StartedAt),
		})
	}
	return decision.Subject{
		Key: KeyOf(KindInstance, i), Ring: metrics.RingPlans, Kind: KindInstance, Name: i.Name, Rollouts: finished(history, i.Status.Conditions),
	}
}
