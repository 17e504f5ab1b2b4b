package config

import (
	"slices"
	"strings"

	"github.com/spillway-dev/spillway/api/spillway/v1alpha1"
	"github.com/spillway-dev/spillway/internal/config/content"
	"github.com/spillway-dev/spillway/internal/config/decision"
	"github.com/spillway-dev/spillway/internal/config/policy"
	"github.com/spillway-dev/spillway/internal/config/workload"
	"github.com/spillway-dev/spillway/internal/ring"
	"github.com/spillway-dev/spillway/rollout"
)

// recorded replaces the states of workloads by those that the manager has recorded, if the caller may not read
// what they are decided from: with other rights the ring decides otherwise.
func recorded(o *decision.Observed, all []Explanation) {
	if !slices.ContainsFunc(o.Workloads, func(w decision.Workload) bool { return len(w.Denied) > 0 }) {
		return
	}
	states := statesOf(o)
	for i := range all {
		w, e := &o.Workloads[i], &all[i]
		if e.State == StateNotTracked || e.State == StateNotWatched {
			continue
		}
		e.asRecorded(w, states[w.Name])
	}
}

// statesOf are the states that are recorded. Of a workload in several records, that of the first object.
func statesOf(o *decision.Observed) map[workload.Name]state {
	states := map[workload.Name]state{}
	for object, r := range o.Records {
		if r.Rollout == nil {
			continue
		}
		for i := range r.Rollout.Causes {
			c := &r.Rollout.Causes[i]
			for k, unit := range c.Units {
				kind, name, _ := strings.Cut(unit, " ")
				of := workload.Name{Kind: kind, Namespace: r.Namespace, Name: name}
				if known, ok := states[of]; !ok || object.Compare(known.object) < 0 {
					states[of] = state{object, r.Rollout, c, k}
				}
			}
		}
	}
	return states
}

// state is what is recorded of a workload: the record of an object, a cause in it, and its place there.
type state struct {
	object  content.Object
	rollout *v1alpha1.RolloutRecord
	cause   *v1alpha1.RolloutCause
	at      int
}

// asRecorded sets the state to what is recorded; up to date if nothing is.
func (e *Explanation) asRecorded(w *decision.Workload, s state) {
	e.State, e.Reason, e.Cause, e.Sentence = StateUpToDate, "", rollout.Cause{}, e.Kind+" "+e.Name+" is up to date"
	e.Since, e.Until, e.Deadline, e.Position, e.Progress = nil, nil, nil, 0, ""
	e.Policy, e.Held, e.FailedOn, e.FailedWith, e.PausedFor = "", nil, nil, nil, nil
	e.Missing, e.Lacking, e.Changed, e.Keeps = nil, nil, nil, nil
	e.Unseen = strings.Join(w.Denied, "; ")
	for i := range e.Uses {
		if u := &e.Uses[i]; !u.Exists {
			u.Exists, u.Unseen = true, true
		}
	}
	c := s.cause
	if c == nil {
		return
	}
	if e.Position = int(c.Position); c.Position > 0 {
		e.Position += s.at
	}
	e.State, e.Reason, e.Cause, e.Sentence = State(c.State), rollout.Reason(c.Reason), ring.CauseOf(c), ring.Sentence(c, e.Kind+" "+e.Name, e.Position)
	e.Since, e.Until, e.Deadline, e.Changed = moment(ring.TimeOf(c.Since)), moment(ring.TimeOf(c.Until)), moment(ring.TimeOf(c.Deadline)), s.rollout.Changed
	e.refer(refOf(c.About, w.Namespace), refOf(c.On, w.Namespace))
	if e.Policy != "" && s.object.Kind != "" {
		e.Held = &s.object
	}
}

// refOf is a reference of a record in a namespace.
func refOf(r *v1alpha1.RolloutReference, namespace string) rollout.Ref {
	if r == nil {
		return rollout.Ref{}
	}
	ref := rollout.Ref{Kind: r.Kind, Namespace: r.Namespace, Name: r.Name}
	if ref.Namespace == "" && r.Kind != policy.ClusterKind {
		ref.Namespace = namespace
	}
	return ref
}
