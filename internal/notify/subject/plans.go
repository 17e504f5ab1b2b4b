package subject

import (
	"github.com/spillway-dev/spillway/api/kudo/v1beta1"
	"github.com/spillway-dev/spillway/internal/metrics"
	"github.com/spillway-dev/spillway/internal/notify/decision"
	"github.com/spillway-dev/spillway/internal/tracing/identity"
)

// Instance is an Instance, with the plans that run and ran.
func Instance(i *v1beta1.Instance) decision.Subject {
	var history []decision.Rollout
	if e := i.Status.Running(); e != nil {
		history = append(history, decision.Rollout{ID: e.Plan, StartedAt: e.StartedAt.Time, Trace: identity.Trace(i.UID, e.Plan, e.StartedAt.Time)})
	}
	for k := range i.Status.History {
		e := &i.Status.History[k]
		history = append(history, decision.Rollout{
			ID: e.Plan, StartedAt: e.StartedAt.Time, EndedAt: e.FinishedAt.Time, Reason: string(e.Result), Sentence: e.Message,
			Trace: identity.Trace(i.UID, e.Plan, e.StartedAt.Time),
		})
	}
	return decision.Subject{
		Key: KeyOf(KindInstance, i), Ring: metrics.RingPlans, Kind: KindInstance, Name: i.Name, Rollouts: finished(history, i.Status.Conditions),
	}
}
