package describe

import (
	"fmt"
	"slices"

	"github.com/spillway-dev/spillway/internal/config"
	"github.com/spillway-dev/spillway/internal/config/content"
	"github.com/spillway-dev/spillway/internal/config/decision"
	"github.com/spillway-dev/spillway/internal/config/policy"
	"github.com/spillway-dev/spillway/rollout"
)

// policies are the policies for a namespace, for all if it is empty, with their releases
// there. A ClusterConfigPolicy that does nothing in a namespace is left out of it, unless it is
// asked for.
func policies(all []policy.Explanation, o *Options) []Unit {
	var units []Unit
	for i := range all {
		u := Policy(&all[i], o.Namespace)
		isNear := o.Namespace == "" || u.Namespace == o.Namespace || u.Namespace == "" && !u.IsComplete()
		if isNear || o.Object != nil && u.Ref == *o.Object {
			units = append(units, u)
		}
	}
	return units
}

// configObject is a ConfigMap or a Secret, and the workloads of its namespace that are rolled
// for it; none if there are no such workloads.
func configObject(all *config.Overview, ref *Ref) []Unit {
	u := Unit{Ref: *ref, Ring: Config, Counted: "workloads", Cause: true}
	o := ref.Content()
	for i := range all.Workloads {
		e := &all.Workloads[i]
		if e.IsFor(o) && e.Namespace == ref.Namespace && e.State != config.StateNotTracked {
			u.Units = append(u.Units, Workload(e))
		}
	}
	if len(u.Units) == 0 {
		return nil
	}
	u.sumUp(all)
	u.sayOf(all.Policies, o)
	for i := range all.Workloads {
		if p := PauseOf(&all.Workloads[i], *ref); p != nil && u.IsComplete() {
			u.pausedUntilResumed(p)
			break
		}
	}
	return []Unit{u}
}

// sayOf says why an object is not complete: what its release waits for, if a policy has one,
// and else what a workload says. The release has failed once nothing progresses, and a workload
// does not get the content because it has failed.
func (u *Unit) sayOf(all []policy.Explanation, o content.Object) {
	if u.IsComplete() {
		return
	}
	if u.Phase != rollout.PhaseProgressing && slices.ContainsFunc(u.Units, isGivenUp) {
		u.Phase = rollout.PhaseFailed
	}
	i := slices.IndexFunc(u.Units, func(w Unit) bool { return w.Phase == u.Phase || u.Phase == rollout.PhaseFailed && isGivenUp(w) })
	u.say(&u.Units[i], "")
	for i := range all {
		for _, r := range releasesIn(all[i].Releases, o.Namespace) {
			if r.Object == o {
				of := release(&r)
				u.say(&of, all[i].Kind+" "+all[i].Name+": ")
				return
			}
		}
	}
}

// isGivenUp is true of a workload that does not get its content before a user corrects it.
func isGivenUp(w Unit) bool { return w.Phase == rollout.PhaseFailed || decision.IsGivenUp(w.Reason) }

// say says what another unit does.
func (u *Unit) say(as *Unit, prefix string) {
	u.Reason, u.Sentence, u.Since, u.Until = as.Reason, prefix+as.Sentence, as.Since, as.Until
}

// Policy is a policy with its releases that are under way in a namespace, in all if it is
// empty, and beneath those the stages.
func Policy(e *policy.Explanation, namespace string) Unit {
	u := Unit{Ref: Ref{Kind: e.Kind, Namespace: e.Namespace, Name: e.Name}, Ring: Config, Phase: rollout.PhaseComplete, Sentence: "no release is under way"}
	releases := releasesIn(e.Releases, namespace)
	for i := range releases {
		u.Units = append(u.Units, release(&releases[i]))
	}
	switch n := len(releases); {
	case e.Problem != "":
		u.Phase, u.Reason, u.Sentence = PhaseStalled, policy.ReasonInvalid, e.Kind+" "+e.Name+" holds all releases that it is for: "+e.Problem
	case e.Unobserved:
		u.Phase, u.Reason, u.Sentence = PhaseUnseen, decision.ReasonNotObserved, e.Kind+" "+e.Name+" is not observed yet: the manager of the config ring writes its status"
	case n > 0:
		most := policy.MostTelling(releases)
		main := release(&most)
		u.Phase = main.Phase
		u.say(&main, "")
		if n > 1 {
			u.Sentence = fmt.Sprintf("%d releases are under way: %s: %s", n, main.Name, main.Sentence)
		}
	default:
		u.pausedBy(e.Pause)
	}
	return u
}

func releasesIn(all []policy.Release, namespace string) []policy.Release {
	if namespace == "" {
		return all
	}
	var in []policy.Release
	for i := range all {
		if all[i].Namespace == namespace {
			in = append(in, all[i])
		}
	}
	return in
}

// release is a release of a policy in a namespace, with its stages.
func release(r *policy.Release) Unit {
	u := Unit{
		Ref: Ref{Kind: KindRelease, Namespace: r.Namespace, Name: r.From(r.Namespace)}, Ring: Config, Phase: r.Phase, Reason: r.Reason, Sentence: r.Text(),
		Since: TimeOrNil(r.Since), Until: TimeOrNil(r.Until), Done: r.Updated, Total: r.Of, Counted: "workloads",
	}
	for i := range r.Stages {
		s := &r.Stages[i]
		u.Units = append(u.Units, Unit{Ref: Ref{Kind: KindStage, Name: s.Name}, Ring: Config, Phase: s.Phase, Done: s.Updated, Total: s.Of, Counted: "workloads"})
	}
	return u
}
