package ring

import (
	"cmp"
	"slices"
	"strconv"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/spillway-dev/spillway/api/record"
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
	// Whole is true of a stage as a whole, which is no unit; Removed of one that is to be removed.
	Whole, Removed bool
}

// The states of the units of what has a plan.
const (
	StateNext    = "Next"
	StateRolling = "Rolling"
	StateWaiting = "Waiting"
	StateFailed  = "Failed"
)

// A record has at most so many causes, whose texts have so many bytes, and after these one for each state and
// reason. Each names its first unit, and all together so many units that their names have so many bytes.
const (
	mostCauses = 200
	mostTexts  = 64 << 10
	mostUnits  = 5000
	mostNames  = 96 << 10
)

// Causes groups units by why they are not complete, in their order.
func Causes(units []Waiting, namespace string) []record.Cause {
	g := grouping{namespace: namespace, places: map[group]int{}}
	for i := range units {
		g.add(units[i])
	}
	return g.causes
}

// group is what units have in common that wait for the same.
type group struct {
	rollout.Cause

	state  string
	reason rollout.Reason
	on     rollout.Ref
	until  time.Time
	// removed keeps what is to be removed apart.
	removed bool
}

// grouping groups units.
type grouping struct {
	namespace    string
	causes       []record.Cause
	places       map[group]int
	texts, names int
}

func (g *grouping) add(u Waiting) {
	k := group{u.Cause, u.State, u.Reason, u.On, u.Until, u.Removed}
	at, known := g.places[k]
	if !known && (len(g.causes) >= mostCauses || g.texts > mostTexts) {
		u = u.summary()
		k = group{Cause: u.Cause, state: u.State, reason: u.Reason, removed: u.Removed}
		at, known = g.places[k]
	}
	if !known {
		at = len(g.causes)
		g.places[k] = at
		c := u.Record(g.namespace)
		g.causes = append(g.causes, c)
		g.texts += length(c.Subject) + length(c.Does) + length(c.Why)
	}
	c := &g.causes[at]
	if size := length(u.Unit); len(c.Units) == 0 || len(c.Units) < mostUnits && g.names+size <= mostNames {
		c.Units, g.names = append(c.Units, u.Unit), g.names+size
	}
	c.Count++
	c.Since, c.Deadline = sooner(c.Since, u.Since), sooner(c.Deadline, u.Deadline)
}

// length is how long a text is in JSON, and what separates it from the next.
func length(text string) int { return len(strconv.Quote(text)) + 1 }

// summary is a unit without what distinguishes it from others of its state.
func (u *Waiting) summary() Waiting {
	s := *u
	s.Cause, s.On, s.Until, s.Position = rollout.Cause{Does: "is " + u.State, Why: "spillway explain says why"}, rollout.Ref{}, time.Time{}, 0
	return s
}

// Record is the cause in a record of a namespace, without the unit.
func (u *Waiting) Record(namespace string) record.Cause {
	return record.Cause{
		State: u.State, Reason: string(u.Reason), Removed: u.Removed, Subject: u.Subject, Does: message.Sentence(u.Does), Why: message.Sentence(u.Why),
		About: refOf(u.About, namespace), On: refOf(u.On, namespace), Until: momentOf(u.Until), Position: int32(min(u.Position, 1<<30)), //nolint:gosec // bounded
	}
}

// WaitingIn is what a cause says of one of its units, which has a place among them: what was recorded of it, without
// the objects that are referred to.
func WaitingIn(c *record.Cause, unit string, at int) Waiting {
	u := Waiting{
		Cause: CauseOf(c), Unit: unit, State: c.State, Reason: rollout.Reason(c.Reason), Removed: c.Removed,
		Since: TimeOf(c.Since), Until: TimeOf(c.Until), Deadline: TimeOf(c.Deadline), Position: int(c.Position),
	}
	if u.Position > 0 {
		u.Position += at
	}
	return u
}

// Sentence is what a cause says of one of its units.
func Sentence(c *record.Cause, unit string, position int) string {
	return CauseOf(c).Sentence(unit, position)
}

// CauseOf is a cause in the parts of its sentence.
func CauseOf(c *record.Cause) rollout.Cause {
	return rollout.Cause{Subject: c.Subject, Does: c.Does, Why: c.Why}
}

func refOf(r rollout.Ref, namespace string) *record.Reference {
	if r == (rollout.Ref{}) {
		return nil
	}
	ref := record.Reference{Kind: r.Kind, Namespace: r.Namespace, Name: r.Name}
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

// Record is the record of a rollout after a decision, with those before it. What is decided has no times. The one
// before is undone by undoneBy if it is over and was not complete, empty if it is not known by whom.
func Record(before *record.Rollout, history []record.Past, decided *record.Rollout, undoneBy string, now time.Time) (*record.Rollout, []record.Past) {
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
		decided.ChangedBy = cmp.Or(before.ChangedBy, decided.ChangedBy)
		if len(decided.Changed) == 0 {
			decided.Changed = before.Changed
		}
	case before != nil && before.FinishedAt == nil && before.MovedAt == nil && before.Phase != string(rollout.PhaseFailed): // no unit ever had it
		decided.StartedAt = at
	case before != nil:
		history = append([]record.Past{pastOf(before, undoneBy, at)}, history[:min(len(history), mostPastRecords-1)]...)
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
func keepSince(causes, before []record.Cause) {
	for i := range causes {
		c := &causes[i]
		k := slices.IndexFunc(before, func(b record.Cause) bool {
			return b.State == c.State && b.Reason == c.Reason && b.Subject == c.Subject && b.Does == c.Does && b.Why == c.Why
		})
		if k >= 0 && before[k].Since != nil {
			c.Since = before[k].Since
		}
	}
}

// pastOf is what a rollout has become, when another one begins.
func pastOf(r *record.Rollout, undoneBy string, now metav1.MicroTime) record.Past {
	past := record.Past{Target: r.Target, Changed: r.Changed, ChangedBy: r.ChangedBy, StartedAt: r.StartedAt, FinishedAt: now, MovedAt: r.MovedAt, Outcome: string(rollout.OutcomeSuperseded), Message: r.WaitingFor, UndoneBy: undoneBy}
	switch {
	case r.FinishedAt != nil:
		past.Outcome, past.FinishedAt, past.Message, past.UndoneBy = string(rollout.OutcomeComplete), *r.FinishedAt, "", ""
	case r.Phase == string(rollout.PhaseFailed):
		past.Outcome = string(rollout.OutcomeFailed)
	}
	return past
}
