package describe

import (
	"cmp"
	"context"
	"fmt"
	"strings"

	"github.com/spillway-dev/spillway/api/fleet/v1alpha1"
	"github.com/spillway-dev/spillway/internal/describe/snapshot"
	"github.com/spillway-dev/spillway/internal/estimate"
	"github.com/spillway-dev/spillway/internal/fleet/hub"
	"github.com/spillway-dev/spillway/internal/fleet/hub/decision"
	"github.com/spillway-dev/spillway/rollout"
)

// describeFleet is how the modules stand, as the manager has recorded them: their stages, and beneath those
// the clusters that are not complete.
func describeFleet(ctx context.Context, o *Options, s *snapshot.Snapshot) (d described, err error) {
	explanations, err := hub.Status(ctx, s, hub.Options{Namespaces: o.Config.Namespaces}, o.Namespace)
	for i := range explanations {
		d.units = append(d.units, Module(&explanations[i]))
	}
	return d, err
}

// Module is a module with its stages, and beneath those the clusters that are not complete.
func Module(e *decision.Explanation) Unit {
	u := Unit{
		Ref:  Ref{Kind: e.Kind, Namespace: e.Namespace, Name: e.Name},
		Ring: Fleet, Phase: rollout.Phase(e.Phase), Reason: e.Reason, Sentence: e.Sentence, Since: e.Since, Until: e.Until, Deadline: e.Deadline, Counted: "clusters",
	}
	u.recorded(e.Rollout, KindStage, KindCluster)
	u.pausedBy(e.Pause)
	u.endsBy((*estimate.Forecast)(e.Forecast))
	return u
}

// ModuleFacts are what else there is to know of a module.
func ModuleFacts(e *decision.Explanation) []Fact {
	f := facts{}
	f.phase(e.Phase, string(e.Reason))
	f.optional("target", e.Target)
	f.optional("current", e.Current)
	f.optional("given up", e.RolledBack)
	f.optional("clusters", clustersText(e))
	if s := e.Steered; s != nil {
		f.add("steered", fmt.Sprintf("%s %s, %s", s.Verb, byWhom(s.By, s.Reason), Moment(s.At.Time)))
	}
	f.each("problem", e.Problems)
	for i := range e.Stages {
		s := &e.Stages[i]
		f.add("stage", s.Name, StageCounts(s), withMessage(s.State, s.Message))
	}
	f.waiting(e)
	f.forecast((*estimate.Forecast)(e.Forecast))
	for i := range min(len(e.History), shownRollouts) {
		p := &e.History[i]
		outcome := p.Outcome
		if p.FinishedAt != nil {
			outcome += ", ended " + Moment(p.FinishedAt.Time)
		}
		f.add("rollout", p.Revision, "began "+Moment(p.StartedAt.Time), ended(outcome, p.Message, p.UndoneBy))
	}
	f.each("note", e.Notes)
	return append(f, DecidedFacts(e.Rollout)...)
}

// StageCounts counts the clusters of a stage.
func StageCounts(s *v1alpha1.StageStatus) string {
	return fmt.Sprintf("%d/%d updated, %d ready, %d failed", s.Updated, s.Total, s.Ready, s.Failed)
}

// clustersText counts the clusters.
func clustersText(e *decision.Explanation) string {
	if e.Summary == nil {
		return ""
	}
	texts := []string{e.UpToDate + " up to date"}
	for _, count := range []struct {
		n    int32
		what string
	}{
		{e.Summary.Updating, "updating"}, {e.Summary.Waiting, "not assigned it yet"}, {e.Summary.Failed, "failed"},
		{e.Summary.Held, "pinned"}, {e.Summary.Unreachable, "unreachable"},
	} {
		if count.n > 0 {
			texts = append(texts, fmt.Sprintf("%d %s", count.n, count.what))
		}
	}
	return strings.Join(texts, ", ")
}

// waiting adds the clusters that wait, up to a number of them.
func (f *facts) waiting(e *decision.Explanation) {
	shown, more := 0, 0
	for i := range e.Clusters {
		c := &e.Clusters[i]
		switch {
		case c.Reason == "" && c.Hold == nil:
		case shown == shownClusters:
			more++
		default:
			shown++
			f.add("cluster", c.Name, cmp.Or(string(c.Reason), "Pinned"), c.Sentence)
		}
	}
	if more > 0 {
		f.add("clusters", fmt.Sprintf("%d more are waiting; spillway explain %s/%s -n %s --cluster NAME shows one, -o json all", more, strings.ToLower(e.Kind), e.Name, e.Namespace))
	}
}

// ClusterFacts are what else there is to know of a cluster of a module.
func ClusterFacts(c *decision.ClusterExplanation) []Fact {
	f := facts{}
	f.optional("stage", c.Stage)
	f.optional("revision", c.Revision)
	f.optional("target", c.Target)
	f.optional("state", string(c.State))
	f.optional("reason", string(c.Reason))
	if c.Hold != nil {
		f.add("pinned", byWhom(c.Hold.By, c.Hold.Reason))
	}
	return f
}
