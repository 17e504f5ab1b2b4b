package describe

import (
	"context"

	"github.com/spillway-dev/spillway/api/fleet/v1alpha1"
	"github.com/spillway-dev/spillway/internal/describe/snapshot"
	"github.com/spillway-dev/spillway/internal/fleet/hub"
	"github.com/spillway-dev/spillway/internal/fleet/hub/decision"
	"github.com/spillway-dev/spillway/rollout"
)

// describeFleet is how the modules stand: their stages, and beneath those the clusters.
func describeFleet(ctx context.Context, o *Options, s *snapshot.Snapshot) ([]Unit, error) {
	explanations, err := hub.Status(ctx, s, hub.Options{Namespaces: o.Config.Namespaces, Now: o.Config.Now}, o.Namespace)
	if err != nil {
		return nil, err
	}
	units := make([]Unit, len(explanations))
	for i := range explanations {
		units[i] = module(&explanations[i])
	}
	return units, nil
}

func module(e *decision.Explanation) Unit {
	u := Unit{
		Ref:  Ref{Kind: e.Kind, Namespace: e.Namespace, Name: e.Name},
		Ring: Fleet, Phase: rollout.Phase(e.Phase), Reason: e.Reason, Sentence: e.Sentence, Since: e.Since, Until: e.Until, Counted: "clusters",
		Unseen: e.Unseen,
	}
	if u.Phase == "" {
		u.Phase = PhaseUnseen
	}
	u.Done, u.Total = counted(e.UpToDate)
	of := map[string][]Unit{}
	for i := range e.Clusters {
		c := &e.Clusters[i]
		of[c.Stage] = append(of[c.Stage], clusterOf(c))
	}
	for i := range e.Stages {
		s := stage(e, &e.Stages[i])
		s.Units = of[e.Stages[i].Name]
		u.Units = append(u.Units, s)
		delete(of, e.Stages[i].Name)
	}
	u.Units = append(u.Units, of[""]...)
	return u
}

func stage(e *decision.Explanation, s *v1alpha1.StageStatus) Unit {
	u := Unit{
		Ref: Ref{Kind: "Stage", Name: s.Name}, Ring: Fleet,
		Done: int(s.Ready), Total: int(s.Total), Counted: "clusters", Sentence: s.Message, Since: TimeOf(s.StartedAt),
	}
	u.Phase, u.Reason = stateOf(s.State, decision.StateComplete, e.StageHold(s.Name))
	if isWritten := e.Unseen != "" && s.State != decision.StateMoving; isWritten && !u.IsComplete() {
		u.Phase, u.Reason = readBack(s.State)
	}
	return u
}

// readBack is the reason that a state names, and the phase of what waits for it.
func readBack(state string) (rollout.Phase, rollout.Reason) {
	for _, reason := range []rollout.Reason{
		rollout.ReasonPaused, rollout.ReasonLocked, rollout.ReasonGate, rollout.ReasonGateRefused, rollout.ReasonOrder, rollout.ReasonTurn,
		rollout.ReasonBudget, rollout.ReasonRate, rollout.ReasonSoak, rollout.ReasonProgressing, rollout.ReasonUnhealthy,
		rollout.ReasonDeadline, rollout.ReasonFailed, rollout.ReasonRetry,
	} {
		if state == string(reason) {
			return phaseOf(reason), reason
		}
	}
	return rollout.PhaseWaiting, ""
}

// clusterOf is a cluster: one that is pinned is where somebody wants it.
func clusterOf(c *decision.ClusterExplanation) Unit {
	u := Unit{
		Ref: Ref{Kind: "Cluster", Name: c.Name}, Ring: Fleet,
		Phase: phaseOf(c.Reason), Reason: c.Reason, Sentence: c.Sentence, Since: c.Since, Until: c.Until,
	}
	switch {
	case c.Reason == "" && (c.Revision == c.Target || c.Hold != nil):
		u.Phase = rollout.PhaseComplete
	case c.OnCluster != "":
		u.WaitsFor = &Ref{Kind: "Cluster", Name: c.OnCluster}
	case c.OnStage != "":
		u.WaitsFor = &Ref{Kind: "Stage", Name: c.OnStage}
	}
	return u
}
