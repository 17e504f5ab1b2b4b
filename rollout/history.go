package rollout

import "time"

// Outcome is how a rollout went.
type Outcome string

// The outcomes.
const (
	// OutcomeRunning: it has not ended.
	OutcomeRunning Outcome = "Running"
	// OutcomeComplete: everything got to the revision.
	OutcomeComplete Outcome = "Complete"
	// OutcomeFailed: it came to a stop that needs a user. It runs again if it
	// moves again.
	OutcomeFailed Outcome = "Failed"
	// OutcomeRolledBack: too much failed, and the former revision was wanted back.
	OutcomeRolledBack Outcome = "RolledBack"
	// OutcomeSuperseded: another revision came before it had ended.
	OutcomeSuperseded Outcome = "Superseded"
)

// Entry is one rollout of a revision.
type Entry struct {
	Revision  string
	StartedAt time.Time
	// EndedAt is zero while it runs.
	EndedAt time.Time
	Outcome Outcome
}

// Advance returns the history, newest entry first, as it is after a plan for the
// revision had the phase. What has completed stays so: a leaf that breaks later
// begins no new rollout. Only the newest limit entries are kept, all for no limit.
// It does not change what it is given, and returns just that if nothing changes.
func Advance(history []Entry, revision string, phase Phase, now time.Time, limit int) []Entry {
	if len(history) == 0 || history[0].Revision != revision {
		return cut(begin(history, revision, phase, now), limit)
	}

	if e := history[0].advanced(phase, now); e != history[0] {
		history = append([]Entry{e}, history[1:]...)
	}

	return cut(history, limit)
}

// begin puts a new entry first, and closes the one before if it still runs.
func begin(history []Entry, revision string, phase Phase, now time.Time) []Entry {
	e := Entry{Revision: revision, StartedAt: now, Outcome: OutcomeRunning}
	longer := append([]Entry{e.advanced(phase, now)}, history...)

	if len(longer) > 1 && longer[1].Outcome == OutcomeRunning {
		longer[1] = longer[1].ended(OutcomeSuperseded, now)
	}

	return longer
}

// advanced is the entry after its revision had the phase.
func (e Entry) advanced(phase Phase, now time.Time) Entry {
	switch {
	case e.Outcome == OutcomeComplete:
		return e
	case phase == PhaseComplete:
		return e.ended(OutcomeComplete, now)
	case phase == PhaseRollingBack:
		return e.ended(OutcomeRolledBack, now)
	case e.Outcome == OutcomeRolledBack:
		return e
	case phase == PhaseFailed:
		return e.ended(OutcomeFailed, now)
	default:
		return e.running()
	}
}

// ended is the entry with an outcome; the end stays the first with that outcome.
func (e Entry) ended(outcome Outcome, now time.Time) Entry {
	if e.Outcome != outcome {
		e.Outcome, e.EndedAt = outcome, now
	}

	return e
}

func (e Entry) running() Entry {
	e.Outcome, e.EndedAt = OutcomeRunning, time.Time{}

	return e
}

func cut(history []Entry, limit int) []Entry {
	if limit <= 0 || len(history) <= limit {
		return history
	}

	return history[:limit:limit]
}
