package rollout

import (
	"time"

	"github.com/spillway-dev/spillway/internal/rollout"
)

// What a decision is made from, and what it consists of.
type (
	// Answer is what a plan says of one unit.
	Answer = rollout.Answer
	// Block is a fact of one's own that forbids to move.
	Block = rollout.Block
	// Counts counts the leaves beneath a unit.
	Counts = rollout.Counts
	// Entry is a rollout that is remembered.
	Entry = rollout.Entry
	// Gate has to pass before a unit starts, or counts as complete.
	Gate = rollout.Gate
	// Health is how a leaf does.
	Health = rollout.Health
	// Hold is a unit that does not move now, and the one reason.
	Hold = rollout.Hold
	// Leaf is something that moves as a whole.
	Leaf = rollout.Leaf
	// Limit is a number or a percentage.
	Limit = rollout.Limit
	// Lock is held while something is disrupted.
	Lock = rollout.Lock
	// Observed is everything that Decide needs to know.
	Observed = rollout.Observed
	// OnFailure is what becomes of the others when a unit fails.
	OnFailure = rollout.OnFailure
	// Order is how children follow one another.
	Order = rollout.Order
	// Outcome is how a rollout that is remembered ended.
	Outcome = rollout.Outcome
	// Path is the place of a unit in the tree.
	Path = rollout.Path
	// Pause holds everything beneath a unit.
	Pause = rollout.Pause
	// Phase is how a unit stands.
	Phase = rollout.Phase
	// Plan is what may happen next, and why the rest waits.
	Plan = rollout.Plan
	// Policy says how the children of a unit advance.
	Policy = rollout.Policy
	// Rate is how often something may move.
	Rate = rollout.Rate
	// Reason is why something waits, as a word.
	Reason = rollout.Reason
	// Step is a unit that is to move now.
	Step = rollout.Step
	// Unit is a node of the tree.
	Unit = rollout.Unit
	// Verdict is what a gate says.
	Verdict = rollout.Verdict
	// When is when a gate has to pass.
	When = rollout.When
)

// The outcomes of rollouts.
const (
	OutcomeRunning    = rollout.OutcomeRunning
	OutcomeComplete   = rollout.OutcomeComplete
	OutcomeFailed     = rollout.OutcomeFailed
	OutcomeRolledBack = rollout.OutcomeRolledBack
	OutcomeSuperseded = rollout.OutcomeSuperseded
)

// The reasons of the engine.
const (
	ReasonPaused      = rollout.ReasonPaused
	ReasonLocked      = rollout.ReasonLocked
	ReasonGate        = rollout.ReasonGate
	ReasonGateRefused = rollout.ReasonGateRefused
	ReasonOrder       = rollout.ReasonOrder
	ReasonOther       = rollout.ReasonOther
	ReasonBudget      = rollout.ReasonBudget
	ReasonRate        = rollout.ReasonRate
	ReasonSoak        = rollout.ReasonSoak
	ReasonProgressing = rollout.ReasonProgressing
	ReasonUnhealthy   = rollout.ReasonUnhealthy
	ReasonDeadline    = rollout.ReasonDeadline
	ReasonFailed      = rollout.ReasonFailed
	ReasonRetry       = rollout.ReasonRetry
)

// The phases of a unit.
const (
	PhaseComplete    = rollout.PhaseComplete
	PhaseRollingBack = rollout.PhaseRollingBack
	PhaseProgressing = rollout.PhaseProgressing
	PhaseFailed      = rollout.PhaseFailed
	PhasePaused      = rollout.PhasePaused
	PhaseWaiting     = rollout.PhaseWaiting
)

// The healths of a leaf.
const (
	Unknown     = rollout.Unknown
	Healthy     = rollout.Healthy
	Progressing = rollout.Progressing
	Degraded    = rollout.Degraded
	Failed      = rollout.Failed
)

// The orders.
const (
	Parallel   = rollout.Parallel
	Series     = rollout.Series
	OneAtATime = rollout.OneAtATime
)

// What becomes of the others when a unit fails.
const (
	Stop     = rollout.Stop
	Continue = rollout.Continue
	Rollback = rollout.Rollback
)

// When gates have to pass.
const (
	Before = rollout.Before
	After  = rollout.After
)

// What gates say.
const (
	Pending = rollout.Pending
	Passed  = rollout.Passed
	Refused = rollout.Refused
)

// Decide returns what may happen next. It performs no I/O and reads no clock.
func Decide(o Observed) Plan { return rollout.Decide(o) }

// Number is an absolute limit of n.
func Number(n int) Limit { return rollout.Number(n) }

// Percentage is a limit of n per cent of the leaves of a unit.
func Percentage(n int) Limit { return rollout.Percentage(n) }

// Count counts the leaves beneath the unit at a path; all of them for no path.
func Count(o Observed, path ...string) Counts { return rollout.Count(o, path...) }

// Advance returns the history, newest entry first, as it is after a plan for the
// revision had the phase. Only the newest limit entries are kept, all for no limit.
func Advance(history []Entry, revision string, phase Phase, now time.Time, limit int) []Entry {
	return rollout.Advance(history, revision, phase, now, limit)
}

// Clock writes a moment the way all sentences of a plan do.
func Clock(t time.Time) string { return rollout.Clock(t) }
