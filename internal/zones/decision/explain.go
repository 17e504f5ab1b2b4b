package decision

import (
	"time"

	"github.com/spillway-dev/spillway/api/record"
	"github.com/spillway-dev/spillway/api/spillway/v1alpha1"
	"github.com/spillway-dev/spillway/internal/ring"
	"github.com/spillway-dev/spillway/rollout"
)

// Explanation is the state of a group as the manager has recorded it: one sentence, and then the facts.
type Explanation struct {
	Namespace string `json:"namespace"`
	Name      string `json:"name"`
	// Phase is that of the status: Complete, Progressing, Waiting, Paused, Failed
	// or Stalled; Unseen if the manager has not recorded what the group is now.
	Phase string `json:"phase"`
	// Reason is why it is not complete, empty if it is.
	Reason rollout.Reason `json:"reason,omitempty"`
	// Sentence is the same that the status, Events and logs use.
	Sentence string     `json:"sentence"`
	Since    *time.Time `json:"since,omitempty"`
	Until    *time.Time `json:"until,omitempty"`
	// Zone is which zone moves, of how many; Updated how many Pods are up to date
	// and available, of how many.
	Zone    string `json:"zone"`
	Updated string `json:"updated"`
	// Zones has a row for each zone, in the order in which they go.
	Zones []v1alpha1.Zone `json:"zones,omitempty"`
	// Rollout is the record, nil if it is of another generation or there is none.
	Rollout *record.Rollout `json:"rollout,omitempty"`
	// Deadline is when what moves counts as failed, nil if nothing does.
	Deadline *time.Time `json:"deadline,omitempty"`
	// Lock is who may disrupt the group, nil if there is none.
	Lock *v1alpha1.Lock `json:"lock,omitempty"`
	// Pause and Retry are what users asked for.
	Pause *v1alpha1.Pause `json:"pause,omitempty"`
	Retry *v1alpha1.Retry `json:"retry,omitempty"`
	// Problems are mistakes, each with its fix; Notes are what is worth knowing
	// though nothing is wrong.
	Problems []string `json:"problems,omitempty"`
	Notes    []string `json:"notes,omitempty"`
	// History are the last rollouts, the newest first.
	History []v1alpha1.Rollout `json:"history,omitempty"`
	// Forecast is when the rollout ends, as the last step said.
	Forecast *v1alpha1.Forecast `json:"forecast,omitempty"`
	// Automatic is true of a group that no user wrote and no user has changed; and
	// Missing of one that the manager has not made yet.
	Automatic bool `json:"automatic,omitempty"`
	Missing   bool `json:"missing,omitempty"`
}

// ExplanationOf is what the status of a group says.
func ExplanationOf(g *v1alpha1.RolloutGroup) Explanation {
	s := &g.Status
	e := Explanation{
		Namespace: g.Namespace, Name: g.Name, Zone: s.Zone, Updated: s.Updated, Zones: s.Zones,
		Lock: s.Lock, Pause: g.Spec.Pause, Retry: g.Spec.Retry, History: s.History, Forecast: s.Forecast,
	}
	recorded := ring.Recorded{Generation: g.Generation, Observed: s.ObservedGeneration, Rollout: s.Rollout, Conditions: s.Conditions, Since: s.Since}
	e.is(recorded.Summary())
	if e.Phase == string(ring.PhaseUnseen) {
		return e
	}
	if e.Rollout, e.Notes = s.Rollout, s.Rollout.Notes; e.Reason == ReasonInvalid {
		e.Problems = []string{e.Sentence}
	}
	return e
}

func (e *Explanation) is(s ring.Summary) {
	e.Phase, e.Reason, e.Sentence, e.Since, e.Until, e.Deadline = string(s.Phase), s.Reason, s.Sentence, s.Since, s.Until, s.Deadline
}

// Unmade is a group that has members, and no object yet: the manager has not made it, or cannot.
func Unmade(namespace, name string) Explanation {
	e := Explanation{Namespace: namespace, Name: name, Missing: true}
	e.is(ring.Summary{Phase: ring.PhaseUnseen, Sentence: "RolloutGroup " + name + " is not created by the manager yet"})
	if problem := Nameless(name); problem != "" {
		e.Phase, e.Reason, e.Sentence, e.Problems = string(PhaseStalled), ReasonInvalid, problem, []string{problem}
	}
	return e
}

// HasFailed is true if a Pod of the group has failed: that, and nothing else, is what a retry is about.
func (e *Explanation) HasFailed() bool {
	if e.Rollout == nil {
		return false
	}
	for i := range e.Rollout.Causes {
		if isFailure(rollout.Reason(e.Rollout.Causes[i].Reason)) {
			return true
		}
	}
	return false
}

// notes say what a way of holding zones risks.
func (o *Observed) notes() []string {
	for i := range o.Sets {
		if set := &o.Sets[i]; set.Strategy == OnDelete && !set.lent() {
			return []string{"the group is of type OnDelete: a Pod that is evicted before its zone's turn comes back at the new revision; " +
				"with type RollingUpdate it would come back at the old one"}
		}
	}
	return nil
}
