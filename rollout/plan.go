package rollout

import "time"

// Plan is what Decide returns: an inert value that says what may happen next.
type Plan struct {
	// Steps are the leaves to move now, in the order to move them.
	Steps []Step
	// Holds are the units that are not where they should be and are not moved
	// now, each with the one reason, in the order of the tree: leaves, and units
	// all of whose leaves are done that still soak or wait for a gate.
	Holds []Hold
	// Groups sum up the units with others beneath them, in the order of the tree,
	// the root first unless it is a leaf; see [Plan.Group].
	Groups []Group
	// Phase sums up the whole tree.
	Phase Phase
	// Wake is when to look again if nothing changes, zero for never.
	Wake time.Time
	// Acquire is the lock to take before the first step, nil if none is needed
	// or it is held already. It is set too when the lock is ours but names another
	// unit than the one that goes next. Take it by compare-and-swap on
	// what was observed, and observe again before anything is moved that might have
	// changed meanwhile.
	Acquire *Lock
	// Release is true when the lock is ours and nothing beneath it needs it any
	// more: no step is taken, nothing is unavailable, nothing soaks, and nothing
	// merely waits for a retry or a rate. A rollout that is paused or behind a
	// gate while everything is up does not keep others from the lock.
	Release bool
}

// Step moves one leaf to its target.
type Step struct {
	// Path are the names from below the root down to the leaf; empty if the root
	// itself is the leaf.
	Path     Path
	From, To string
	// Repair is true if the leaf was down already, so that moving it takes no
	// place in a budget.
	Repair bool
	// Start says what the step does for a unit above that starts as a whole.
	Start Start
}

// Start says what a step does for the [Whole] unit that its leaf is beneath.
type Start int

// The starts.
const (
	// StartNone starts nothing: the leaf is moved alone, to the unit's Revision, or
	// is beneath no such unit.
	StartNone Start = iota
	// StartWhole starts the unit: everything beneath may move.
	StartWhole
	// StartEach starts the unit so that single leaves are moved, this one among
	// them: they are down, and nothing else may move in it now.
	StartEach
)

// Hold is the one reason why a unit is not moved now.
type Hold struct {
	Path   Path
	Reason Reason
	// On is the unit that the leaf waits for, nil if it is none in particular.
	On Path
	// Message is a whole sentence, without a final full stop, that names the
	// unit and the cause, and does not change merely because time passes:
	// "zone-b is waiting: zone-a has 2 of 3 ready, zone-a-1 is not ready".
	Message string
	// Cause is what the Message is made of, for programs.
	Cause Cause
	// Since is when the cause began, zero if that is unknown.
	Since time.Time
	// Until is when it ends automatically, zero if it does not.
	Until time.Time
	// Position is the place in the queue for a budget or a rate, from 1; zero
	// if the leaf does not queue. Where several stop it, it is that of the
	// tightest: the smallest budget, or the rate whose next token comes last.
	Position int
}

// Cause is why a unit waits, in parts that are the same for all units that wait for the same.
type Cause struct {
	// Subject is the unit that is in the way, empty if that is the unit itself. Does is what it does:
	// "is waiting", "is queued", "is paused by ann", "failed".
	Subject, Does string
	// Why is the reason that follows, empty if there is none. If it quotes another unit, Root is what
	// that one waits for, or what it does; else it is the same as Why.
	Why, Root string
	// About is the object in question, the zero Ref if there is none, or if it is a unit: see [Hold].
	About Ref
}

// Ref refers to an object outside the tree: a gate, or what the ring has given for a [Block].
type Ref struct{ Kind, Namespace, Name string }

// KindGate is the kind of a Ref to a [Gate].
const KindGate = "Gate"

// Path names a unit by the names of the units above it and its own.
type Path []string

// Reason is a word that machines may depend on, CamelCase but for those that a
// metric of rollout-operator has.
type Reason string

// The reasons that the engine itself gives. Rings add their own with [Block]. Of
// each, the comment says the cause, and then, after "Action:", what a person does about it.
const (
	// ReasonPaused: a user has paused the unit, or the rollout that it is part of.
	// Action: ask the user who paused it, and resume it: spillway resume, or spillway
	// fleet unpin for a cluster; if a manifest pauses it, change the manifest.
	ReasonPaused Reason = "Paused"
	// ReasonLocked: another rollout, another change of scale or another client holds the lock.
	// Action: nothing, the wait ends automatically when the lock is released or expires; if
	// its holder is gone, follow the command of spillway explain.
	ReasonLocked Reason = "Locked"
	// ReasonGate: a gate has not passed yet.
	// Action: nothing if a measurement decides the gate; otherwise approve or refuse it:
	// spillway approve, for a module spillway fleet approve.
	ReasonGate Reason = "GatePending"
	// ReasonGateRefused: a gate was refused.
	// Action: correct what was refused and roll out another revision, or approve the gate
	// after all.
	ReasonGateRefused Reason = "GateRefused"
	// ReasonRemovalApproval: more would be removed than is allowed without an approval.
	// Action: check that the selector is correct; if it is, approve the number with the
	// command that the message names.
	ReasonRemovalApproval Reason = "RemovalNotApproved"
	// ReasonOrder: an earlier unit is not complete.
	// Action: nothing if that unit progresses; otherwise fix what the message says about
	// it.
	ReasonOrder Reason = "WaitingForPrevious"
	// ReasonTurn: another unit of the group is disrupted, and only one may be at a time.
	// Action: nothing if that unit becomes healthy; otherwise fix what the message says
	// about it.
	ReasonTurn Reason = "WaitingForTurn"
	// ReasonBudget: as many units as the budget allows are unavailable.
	// Action: nothing if they become healthy; otherwise fix them, or raise the budget:
	// maxUnavailable of a group, maxUnreadyClusters of a module, --max-rolling of the
	// manager.
	ReasonBudget Reason = "BudgetExhausted"
	// ReasonNoEvidence: too little shows whether the target is good: what could show it is
	// suspended, unreachable, without replicas or was not ready before, or there is nothing.
	// Action: bring back what the message names, or correct the selector of the stage; a stage
	// of a module goes on without evidence with allowEmpty.
	ReasonNoEvidence Reason = "NoEvidence"
	// ReasonRate: as many steps as the rate limit allows were taken.
	// Action: nothing, the wait ends automatically; --update-rate of the manager sets the
	// limit.
	ReasonRate Reason = "RateLimited"
	// ReasonSoak: what was updated is healthy, and must stay so for the configured time
	// before the next unit starts: minReadySeconds, and soak of a zone or stage.
	// Action: nothing, the wait ends automatically.
	ReasonSoak Reason = "Soaking"
	// ReasonProgressing: the unit is updating, and is not healthy yet.
	// Action: nothing, the update normally completes without help; if it does not, fix
	// what the message names.
	ReasonProgressing Reason = "Progressing"
	// ReasonUnhealthy: the unit is up to date and not healthy, and no step of the rollout
	// caused that.
	// Action: fix what the message names.
	ReasonUnhealthy Reason = "Unhealthy"
	// ReasonDeadline: the unit was updated and did not become healthy before its deadline. The
	// rollout continues automatically if it becomes so after all.
	// Action: fix what the message names, or roll out another revision; spillway retry
	// starts the deadline of a group again.
	ReasonDeadline Reason = "DeadlineExceeded"
	// ReasonFailed: the unit failed, or more units failed than are allowed to.
	// Action: fix what the message names, or roll out another revision.
	ReasonFailed Reason = "Failed"
	// ReasonRetry: a step failed and will be retried.
	// Action: nothing, the step is retried automatically; if it fails each time, fix what
	// the message names.
	ReasonRetry Reason = "RetryLater"
)

// IsGate is true if a gate is the reason: one that is not decided, or one that was refused.
func (r Reason) IsGate() bool { return r == ReasonGate || r == ReasonGateRefused }

// Phase sums up a tree in one word.
type Phase string

// The phases, by precedence: the first that applies.
const (
	// PhaseComplete: every leaf is where it should be, soaked, gates passed. Of
	// failures that are tolerated the plan is Failed at its end, not Complete.
	PhaseComplete Phase = "Complete"
	// PhaseRollingBack: too many failed and the policy says Rollback.
	PhaseRollingBack Phase = "RollingBack"
	// PhaseProgressing: a step is taken now, or something moved is updating.
	PhaseProgressing Phase = "Progressing"
	// PhaseFailed: nothing moves, and it needs a user: failure, refusal, deadline.
	PhaseFailed Phase = "Failed"
	// PhasePaused: nothing moves because of a pause.
	PhasePaused Phase = "Paused"
	// PhaseWaiting: nothing moves for any other reason.
	PhaseWaiting Phase = "Waiting"
)
