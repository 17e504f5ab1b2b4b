package ring

import (
	"slices"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/spillway-dev/spillway/api/spillway/v1alpha1"
	"github.com/spillway-dev/spillway/internal/message"
	"github.com/spillway-dev/spillway/rollout"
)

// Waiting is a unit that is not complete, and why.
type Waiting struct {
	rollout.Cause

	// Unit is its name, State a word for it.
	Unit, State            string
	Reason                 rollout.Reason
	On                     rollout.Ref
	Since, Until, Deadline time.Time
	Position               int
}

// A record has at most so many causes, and after these one for each state and reason; and each names so many
// units. With that it is far smaller than what the API server takes.
const (
	mostCauses = 200
	mostUnits  = 5000
)

// Causes groups units by why they are not complete, in their order.
func Causes(units []Waiting, namespace string) []v1alpha1.RolloutCause {
	type key struct {
		rollout.Cause

		state  string
		reason rollout.Reason
		on     rollout.Ref
		until  time.Time
	}
	places := map[key]int{}
	var causes []v1alpha1.RolloutCause
	for i := range units {
		u := units[i]
		k := key{u.Cause, u.State, u.Reason, u.On, u.Until}
		at, known := places[k]
		if !known && len(causes) >= mostCauses {
			u = u.summary()
			k = key{Cause: u.Cause, state: u.State, reason: u.Reason}
			at, known = places[k]
		}
		if !known {
			at = len(causes)
			places[k] = at
			causes = append(causes, u.Record(namespace))
		}
		u.addTo(&causes[at])
	}
	return causes
}

// summary is a unit without what distinguishes it from others of its state.
func (u *Waiting) summary() Waiting {
	s := *u
	s.Cause, s.On, s.Until, s.Position = rollout.Cause{Does: "is " + u.State, Why: "spillway explain says why"}, rollout.Ref{}, time.Time{}, 0
	return s
}

// addTo adds a unit to its cause.
func (u *Waiting) addTo(c *v1alpha1.RolloutCause) {
	if c.Count++; len(c.Units) < mostUnits {
		c.Units = append(c.Units, u.Unit)
	}
	c.Since, c.Deadline = sooner(c.Since, u.Since), sooner(c.Deadline, u.Deadline)
}

// Record is the cause in a record of a namespace, without the unit.
func (u *Waiting) Record(namespace string) v1alpha1.RolloutCause {
	return v1alpha1.RolloutCause{
		State: u.State, Reason: string(u.Reason), Subject: u.Subject, Does: u.Does, Why: message.Sentence(u.Why),
		About: refOf(u.About, namespace), On: refOf(u.On, namespace), Until: momentOf(u.Until), Position: int32(min(u.Position, 1<<30)), //nolint:gosec // bounded
	}
}

// Sentence is what a cause says of one of its units.
func Sentence(c *v1alpha1.RolloutCause, unit string, position int) string {
	return CauseOf(c).Sentence(unit, position)
}

// CauseOf is a cause in the parts of its sentence.
func CauseOf(c *v1alpha1.RolloutCause) rollout.Cause {
	return rollout.Cause{Subject: c.Subject, Does: c.Does, Why: c.Why}
}

func refOf(r rollout.Ref, namespace string) *v1alpha1.RolloutReference {
	if r == (rollout.Ref{}) {
		return nil
	}
	ref := v1alpha1.RolloutReference{Kind: r.Kind, Namespace: r.Namespace, Name: r.Name}
	if ref.Namespace == namespace {
		ref.Namespace = ""
	}
	return &ref
}

func momentOf(t time.Time) *metav1.MicroTime {
	if t.IsZero() {
		return nil
	}
	at := metav1.NewMicroTime(t.Truncate(time.Microsecond))
	return &at
}

func sooner(a *metav1.MicroTime, b time.Time) *metav1.MicroTime {
	if at := momentOf(b); at != nil && (a == nil || at.Before(a)) {
		return at
	}
	return a
}

// mostPastRecords is how many rollouts a record has that are over.
const mostPastRecords = 10

// Record is the record of a rollout after a decision, with those before it. What is decided has no times.
func Record(before *v1alpha1.RolloutRecord, history []v1alpha1.PastRolloutRecord, decided *v1alpha1.RolloutRecord, now time.Time) (*v1alpha1.RolloutRecord, []v1alpha1.PastRolloutRecord) {
	at := metav1.NewMicroTime(now.UTC().Truncate(time.Microsecond))
	isComplete := decided.Phase == string(rollout.PhaseComplete)
	switch {
	case before != nil && before.FinishedAt != nil && isComplete: // nothing was under way since
		return before, history
	case before != nil && (before.Target == decided.Target && before.FinishedAt == nil || isComplete):
		keepSince(decided.Causes, before.Causes)
		decided.StartedAt, decided.Target = before.StartedAt, before.Target
		if before.MovedAt != nil {
			decided.MovedAt = before.MovedAt
		}
		if len(decided.Changed) == 0 {
			decided.Changed = before.Changed
		}
	case before != nil && before.FinishedAt == nil && before.MovedAt == nil && before.Phase != string(rollout.PhaseFailed): // no unit ever had it
		decided.StartedAt = at
	case before != nil:
		history = append([]v1alpha1.PastRolloutRecord{pastOf(before, at)}, history[:min(len(history), mostPastRecords-1)]...)
		decided.StartedAt = at
	default:
		decided.StartedAt = at
	}
	if isComplete {
		decided.FinishedAt = &at
	}
	decided.DecidedAt = at
	return decided, history
}

// keepSince keeps since when units wait for what they were recorded to wait for: a manager that has just begun
// does not know it.
func keepSince(causes, before []v1alpha1.RolloutCause) {
	for i := range causes {
		c := &causes[i]
		k := slices.IndexFunc(before, func(b v1alpha1.RolloutCause) bool {
			return b.State == c.State && b.Reason == c.Reason && b.Subject == c.Subject && b.Does == c.Does && b.Why == c.Why
		})
		if k >= 0 && before[k].Since != nil {
			c.Since = before[k].Since
		}
	}
}

// pastOf is what a rollout has become, when another one begins.
func pastOf(r *v1alpha1.RolloutRecord, now metav1.MicroTime) v1alpha1.PastRolloutRecord {
	past := v1alpha1.PastRolloutRecord{Target: r.Target, Changed: r.Changed, StartedAt: r.StartedAt, FinishedAt: now, MovedAt: r.MovedAt, Outcome: string(rollout.OutcomeSuperseded), Message: r.WaitingFor}
	switch {
	case r.FinishedAt != nil:
		past.Outcome, past.FinishedAt, past.Message = string(rollout.OutcomeComplete), *r.FinishedAt, ""
	case r.Phase == string(rollout.PhaseFailed):
		past.Outcome = string(rollout.OutcomeFailed)
	}
	return past
}
