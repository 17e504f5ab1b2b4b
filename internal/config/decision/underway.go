package decision

import (
	"cmp"
	"slices"

	"github.com/spillway-dev/spillway/internal/config/content"
	"github.com/spillway-dev/spillway/internal/config/policy"
	"github.com/spillway-dev/spillway/rollout"
)

// report is what there is to say of each policy.
func (s *staging) report() map[*policy.Policy]*policy.Report {
	reports := make(map[*policy.Policy]*policy.Report, len(s.o.Policies))
	for _, p := range s.o.Policies {
		reports[p] = &policy.Report{}
	}
	s.addReleases(reports)
	s.o.addUnpinned(reports)
	return reports
}

// addReleases adds how far the releases have come. Those of an object that one workload uses,
// and that nothing keeps, are left out: they have no stages to speak of.
func (s *staging) addReleases(reports map[*policy.Policy]*policy.Report) {
	for _, c := range s.ordered {
		path := s.at(c)
		answer := s.plan.At(path...)
		g := s.plan.Group(path...)
		if g.Phase == rollout.PhaseComplete || c.spread == nil && len(c.parts) == 1 && (answer.Hold == nil || !isFirm(answer.Hold.Reason)) {
			continue
		}
		r := policy.Release{Release: c.Release, Namespace: c.namespace, Progress: progressOf(g), Reason: rollout.ReasonProgressing, Waits: answer.Message()}
		switch {
		case answer.Hold != nil:
			r.Reason, r.Cause, r.Until = answer.Hold.Reason, answer.Hold.Cause, answer.Hold.Until
			r.Cause.Subject = cmp.Or(r.Cause.Subject, answer.Hold.Path[len(answer.Hold.Path)-1])
		case answer.Step != nil:
			r.Cause = rollout.Cause{Subject: answer.Step.Path[len(answer.Step.Path)-1], Does: "is next to roll"}
			r.Waits = r.Cause.Sentence("", 0)
		}
		for i := range c.policy.Stages {
			name := stageName(&c.policy.Stages[i])
			r.Stages = append(r.Stages, policy.StageProgress{Name: c.policy.Stages[i].Name, Progress: progressOf(s.plan.Group(append(slices.Clip(path), name)...))})
		}
		r.RolledBack = s.rolledBack(c)
		reports[c.policy].Releases = append(reports[c.policy].Releases, r)
	}
}

// rolledBack is how many workloads of a release have failed with it and have their previous
// config back.
func (s *staging) rolledBack(c *course) int {
	n := 0
	for i := range c.parts {
		for _, k := range c.parts[i].workloads {
			if w := &s.workloads[k]; w.IsCurrent() && w.isRolledBack() && slices.Contains(w.releasesUnderway(), c.Release) {
				n++
			}
		}
	}
	return n
}

// addUnpinned adds the workloads that policies want to have pins, or to return, and that have
// none. What a user says of a workload is no concern of a policy.
func (o *Observed) addUnpinned(reports map[*policy.Policy]*policy.Report) {
	for i := range o.Workloads {
		w := &o.Workloads[i]
		if !w.Settings.Tracked || w.Settings.PinSet || w.Pinning.On {
			continue
		}
		if p := o.lacksPins(w); p != nil {
			why := w.Pinning.Refused
			if w.Pinning.By == "" {
				why = "onFailure: Rollback of " + p.String() + " has no effect: the workload does not keep its config; set pinConfig: true"
			}
			reports[p].Unpinned.Add(w.called(p.Namespace), why)
		}
	}
}

// lacksPins is the first policy that wants a workload without pins to have them, or to return.
func (o *Observed) lacksPins(w *Workload) *policy.Policy {
	if w.Pinning.By != "" {
		return o.Policies.Pinning(w.Namespace, w.Object.GetLabels(), w.Demand.Uses)
	}
	for i := range w.Uses {
		p := o.policyFor(w, w.Uses[i].Object)
		if p != nil && p.RollsBack && !w.Uses[i].Ignored && w.Settings.OnFailure == "" {
			return p
		}
	}
	return nil
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
	soaking, spread := map[string]bool{}, map[spreadName]bool{}
	for i := range o.Workloads {
		w := &o.Workloads[i]
		if len(o.Policies) == 0 || soaking[w.Namespace] && !o.Policies.StagesNamespaces() || !w.isUnderway(o.Now) {
			continue
		}
		o.soak(w, soaking, spread)
	}
	o.addSoaking(soaking, spread)
	return soaking
}

// soak adds the namespace of a workload that is about to be rolled or was, and what is released over namespaces.
func (o *Observed) soak(w *Workload, soaking map[string]bool, spread map[spreadName]bool) {
	for _, r := range w.releasesUnderway() {
		for _, p := range o.policiesFor(w, r.Object) {
			soaking[w.Namespace] = soaking[w.Namespace] || p.Soaks()
			if p.SoaksNamespaces() {
				spread[spreadNameOf(p, r.Object)] = true
			}
		}
	}
}

// addSoaking adds the namespaces for which later ones wait of releases over namespaces.
func (o *Observed) addSoaking(soaking map[string]bool, spread map[spreadName]bool) {
	for i := range o.Workloads {
		w := &o.Workloads[i]
		if len(spread) == 0 || soaking[w.Namespace] || !w.isStaged() {
			continue
		}
		soaking[w.Namespace] = slices.ContainsFunc(w.Uses, func(u content.Use) bool {
			p := o.spreading(w, u.Object)
			return spread[spreadNameOf(p, u.Object)] && o.stageIn(p, w.Namespace) < len(p.NamespaceStages)-1
		})
	}
}
