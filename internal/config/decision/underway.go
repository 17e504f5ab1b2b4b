package decision

import (
	"github.com/spillway-dev/spillway/internal/config/policy"
	"github.com/spillway-dev/spillway/rollout"
)

// report is how far the releases have come, of each policy. Those of an object that one
// workload uses, and that nothing keeps, are left out: they have no stages to speak of.
func (s *staging) report() map[*policy.Policy][]policy.Release {
	reports := map[*policy.Policy][]policy.Release{}
	for _, c := range s.ordered {
		path := rollout.Path{c.policy.String(), c.path()}
		answer := s.plan.At(path...)
		g := s.plan.Group(path...)
		if g.Phase == rollout.PhaseComplete || len(c.parts) == 1 && (answer.Hold == nil || !isFirm(answer.Hold.Reason)) {
			continue
		}
		r := policy.Release{Release: c.Release, Namespace: c.namespace, Progress: progressOf(g), Reason: rollout.ReasonProgressing, Waits: answer.Message()}
		switch {
		case answer.Hold != nil:
			r.Reason = answer.Hold.Reason
		case answer.Step != nil:
			r.Waits = answer.Step.Path[len(answer.Step.Path)-1] + " is next to roll"
		}
		for i := range c.policy.Stages {
			name := stageName(&c.policy.Stages[i])
			r.Stages = append(r.Stages, policy.StageProgress{Name: c.policy.Stages[i].Name, Progress: progressOf(s.plan.Group(append(path[:2:2], name)...))})
		}
		reports[c.policy] = append(reports[c.policy], r)
	}
	return reports
}

func progressOf(g rollout.Group) policy.Progress {
	return policy.Progress{Phase: g.Phase, Updated: g.Counts.Ready, Of: g.Counts.Total}
}

// IsKnown is false while it is not known of some workload whether it has the present config,
// as is so when the manager has just begun: then a release may be under way that nothing
// says anything about yet.
func (o *Observed) IsKnown() bool {
	for i := range o.Workloads {
		w := &o.Workloads[i]
		if w.isStaged() && !w.IsCurrent() && w.Hashes == nil && w.Change.First.IsZero() && w.Retry == nil && len(w.Missing) == 0 && len(w.Denied) == 0 {
			return false
		}
	}
	return true
}

// Soaking are the namespaces in which it matters since when workloads are ready.
func (o *Observed) Soaking() map[string]bool {
	soaking := map[string]bool{}
	for i := range o.Workloads {
		w := &o.Workloads[i]
		if len(o.Policies) == 0 || soaking[w.Namespace] || !w.isUnderway(o.Now) {
			continue
		}
		for _, r := range w.releasesUnderway() {
			if p := o.policyFor(w, r.Object); p != nil && p.Soaks() {
				soaking[w.Namespace] = true
			}
		}
	}
	return soaking
}
