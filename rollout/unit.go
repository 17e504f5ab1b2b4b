package rollout

import "time"

// Observed is everything that Decide needs to know, read at one moment.
type Observed struct {
	// Now is the moment at which the ring looked. All soaks, deadlines, rates
	// and waits are measured against it.
	Now time.Time
	// Self names this rollout as a holder of the lock; see [Lock].
	Self string
	// Root is the whole tree. Its name appears in no sentence.
	Root Unit
}

// Unit is a node of the tree: something that has to get from one revision to
// another, or a group of such things. A unit without children is a leaf unless
// it is marked as a Group, and only leaves move.
type Unit struct {
	// Name is unique among the siblings, as a user knows it: "zone-a",
	// "mimir-ingester-zone-a-1", "Deployment web". Sentences quote it as it is; a
	// group without a name is for the ring only, and not mentioned.
	Name string
	// Children are in the order in which they should go, best first. Nil for a leaf.
	Children []Unit
	// Group says that the unit is a group even where it has no children: an empty
	// stage is complete, gates and all, while a leaf of which nothing is known
	// waits. It changes nothing on a unit with children.
	Group bool
	// Policy says how the children advance.
	Policy Policy
	// Pause holds everything beneath the unit, if not nil.
	Pause *Pause
	// Block is a fact of the ring's own that forbids to move anything beneath
	// the unit now, such as a ConfigMap that does not exist. Nil if there is none.
	Block *Block
	// Whole is set on a unit that starts as a whole and has not started. Nil if its
	// leaves move one by one, as they do once it has started.
	Whole *Whole
	// Gates must pass before the unit starts, or before it counts as complete.
	Gates []Gate
	// Lock is the lock that must be held while anything beneath the unit is
	// disrupted. Nil if none is needed. A plan takes and releases one lock: the
	// first in the order of the tree. Further locks are heeded while another
	// client holds them, but never taken.
	Lock *Lock
	// StartedAt is when this unit was first moved towards its present target;
	// zero if it was not. Deadlines and timeouts are measured from here.
	StartedAt time.Time
	// Leaf is what was observed of a leaf; it is ignored on a unit with children.
	Leaf Leaf
}

// Whole describes a unit of which another controller moves all leaves, under a
// budget of its own, once it may move one. Nothing beneath is moved before all of
// it may be: not even what is down already, which elsewhere waits for no turn. Only
// a budget, a rate, a retry or a Block of its own may keep single leaves. Its leaves are
// Parallel: one that has to wait for another would keep the unit for good.
//
// Where several such units wait for each other alone, because leaves are down in
// each, the first is started leaf by leaf, or rather the one that is disrupted; and so is
// that one if what cannot recover elsewhere waits for it. See [StartEach].
type Whole struct {
	// Revision is what a leaf gets that is moved before the unit has started. One
	// that is down at any other may be moved to it.
	Revision string
	// Reason and Message are those of the [Hold] of a leaf that is kept for this.
	Reason  Reason
	Message string
}

// Removed as the Target of a leaf says that it is to be removed: it is moved to
// Removed, under the budgets, order, gates and pauses above it, and is Removed and
// Healthy when it is gone, unless the ring leaves it out of the tree by then. Until
// then it is unavailable. Removing what is down already takes something away, so
// it waits for its turn, and there are never more leaves being removed than the
// budgets allow. List the units in the order in which to remove: the last stage first.
// Under [OneAtATime] what is down and to be removed in one child is not removed while
// another child is disrupted; if that one waits for the same, a user must fix one of them.
const Removed = "(removed)"

// Leaf is the observed state of something that moves as a whole.
type Leaf struct {
	// Current and Target are revisions. The leaf is outdated while they differ.
	Current, Target string
	// Health is how it does at its Current revision. Failed at a revision that
	// is not its target is no failure of this rollout: it is a leaf to repair.
	Health Health
	// Settled is true if it has been healthy at its target before, so that no
	// deadline or timeout applies to it any more: what breaks a week later is
	// Unhealthy, not late. Optional.
	Settled bool
	// MayRecover is true of a leaf that is not available and may become so without being
	// moved. Moving it takes something away: it waits for its turn, and needs no place
	// in a budget but its own. Optional.
	MayRecover bool
	// RecoversBy is when MayRecover ends if nothing changes, zero if that is unknown. While the
	// leaf waits, its Hold says so, and ends then. Optional.
	RecoversBy time.Time
	// Disrupted is true of a leaf that was moved, and has not been available since: it
	// may be moved again while other children are down that were not disrupted. What is
	// at its target and getting healthy counts as disrupted anyway, and so does what is down
	// in the child for which the lock is ours. Repairing is true if it was unavailable when
	// it was moved. Optional; see [Policy].Repairs.
	Disrupted, Repairing bool
	// NoEvidence is why what becomes of the leaf says nothing about its target, as what may
	// follow "it is": "suspended", "scaled to 0 replicas", "not ready since before it was
	// assigned v2". Empty if it says something. What gives no evidence is never a failure, no
	// unit waits for it, and it moves after what gives some; see [Policy].MinEvidence. Down, it
	// takes no place in a budget unless it is Disrupted, or was moved and is not Repairing.
	// With a Block of its own it is skipped: no unit waits for it. It is
	// moved in its turn once that is over.
	NoEvidence string
	// LostSince is since when it is Degraded, of a settled leaf that is to count as
	// failed if it is so for as long as the Deadline: what is gone is never ready at
	// its target if no one can tell. Zero if that is unknown, or no failure. Optional.
	LostSince time.Time
	// HealthySince is since when it has been Healthy at its Current revision,
	// measured again for each revision; zero when unknown, which soaks as if it
	// had become healthy Now, and so until it is known. It matters only where
	// MinReady or Soak is set.
	HealthySince time.Time
	// Reason tells why it is not healthy, as what may follow "it is": "not ready
	// since 14:03 (ContainersNotReady)". See [Clock] for times. Optional.
	Reason string
	// Cause is the reason of its Hold while it is at its target, not available and not
	// failed, in place of ReasonProgressing and ReasonUnhealthy: the CamelCase word of
	// a ring that knows what it is. Optional.
	Cause Reason
	// Priority orders leaves that compete for a budget or a rate: the higher goes
	// first; of equal ones those that are down already, then the order of the tree.
	Priority int
	// RetryAt is when a step that failed may be tried again, zero for immediately.
	RetryAt time.Time
	// RetryReason says what failed, for the Hold until RetryAt: "the API server
	// refused the patch".
	RetryReason string
}

// Health is what the engine knows of a leaf's well-being.
type Health int

// The healths of a leaf.
const (
	// Unknown counts as not available: what cannot be seen is not built upon.
	Unknown Health = iota
	// Healthy is ready and serving, or complete where it is something that ends.
	Healthy
	// Progressing is updating and not available yet, nothing is known to be wrong.
	Progressing
	// Degraded is not available though it was or should be.
	Degraded
	// Failed will not become healthy at this revision by waiting.
	Failed
)

// Order is how the children of a unit follow one another.
type Order int

// The orders.
const (
	// Parallel lets all children move at the same time, within the budget.
	Parallel Order = iota
	// Series starts a child only once every earlier one is complete: up to
	// date, healthy, soaked, gates passed. A paused child stops the later ones.
	Series
	// OneAtATime never disrupts two children at the same time; their order is a
	// preference. The child that is already disrupted goes first, and so does one
	// that is up to date but still soaks or waits for a gate of its own; after
	// these the child for which the lock is ours. A child that is paused, blocked
	// or behind a gate but wholly available is passed over, and one that is so
	// and not available stops the others. While a second child is not available
	// or soaks, only leaves that are down already may be moved, because replacing
	// them takes nothing away.
	OneAtATime
)

// Policy says how the children of a unit advance.
type Policy struct {
	Order Order
	// MaxUnavailable bounds how many leaves beneath the unit may be unavailable
	// at a time, those included that are down for reasons of their own. Of zero,
	// nothing that is up may be taken down. A leaf
	// that is outdated and unavailable may be moved whatever the budget, since
	// that takes nothing away, unless it may recover or Repairs is set. Budgets of
	// nested units all have to allow a step.
	// Over the children of a Series the budget belongs on each child: one above
	// them all can be used up by a leaf that is down in a later child, and that
	// is not repaired before its turn.
	MaxUnavailable Limit
	// Repairs bounds how many leaves beneath that are down may be moved at a time out
	// of turn or beyond a budget. Under OneAtATime only those of the child that is
	// disrupted are, if one is. Not set, all may be, as that takes nothing away. A leaf
	// that may recover never is.
	Repairs Limit
	// Rate bounds how often a step is taken beneath the unit.
	Rate Rate
	// Shared says, as a clause, who has what MaxUnavailable and Rate permit: "teams take
	// turns: a had 9 of the last 10". What waits for them says so too. Empty to say nothing.
	Shared string
	// MinReady is how long a leaf has to stay healthy at its target before it
	// counts as available. It is inherited by units beneath that have none.
	MinReady time.Duration
	// Soak is how long the whole unit has to stay healthy at its target before
	// it counts as complete. Failed leaves that are tolerated do not count.
	Soak time.Duration
	// Deadline is how long after its StartedAt a leaf beneath may take to become
	// healthy before it counts as failed (progressDeadlineSeconds). It is
	// inherited by units beneath that have none. Zero is no deadline. A leaf that
	// is outdated though it was started is late only if its step has failed (see
	// RetryAt); otherwise it is simply moved again.
	Deadline time.Duration
	// Timeout is how long after its own StartedAt the unit as a whole may take,
	// soak and gates at its end not counted. When it is over, everything
	// unfinished beneath holds and counts as failed for the units above. Zero is
	// no timeout; it means nothing on a leaf.
	Timeout time.Duration
	// Budget makes this unit share its MaxUnavailable with all units of the same
	// Budget: what is unavailable beneath any of them counts for each, and a
	// percentage is one of all their leaves. Empty if it shares with none.
	Budget string
	// MaxRemoved bounds how many leaves beneath may be to be removed without an
	// approval; a percentage is one of those that exist. While there are more, and
	// more than RemovalsApproved, none of them is removed.
	MaxRemoved Limit
	// Removed is how many leaves were removed beneath lately and are not in the tree any more:
	// MaxRemoved counts them, too, so that it holds over time.
	Removed int
	// RemovalsApproved is how many removals a user has approved, zero if none.
	RemovalsApproved int
	// ApproveWith is the command that approves removals, but for their number, which
	// follows it in the sentence of a [Hold]. Optional.
	ApproveWith string
	// MaxFailures is how many failed leaves beneath are tolerated before OnFailure
	// applies. The zero value tolerates none but those that a unit beneath tolerates
	// already; a limit that is Set counts every failed leaf beneath. A failure
	// that is tolerated does not keep the unit from being complete, and takes no place
	// in its budget or in those above it: of a unit as many leaves may be unavailable as
	// both limits allow together. It does keep the turn under OneAtATime.
	MaxFailures Limit
	// OnFailure says what happens when more have failed.
	OnFailure OnFailure
	// MinEvidence is how many leaves beneath have to show that the target is good, before the
	// unit is complete: to be available at it, and not without evidence (see
	// [Leaf].NoEvidence). Of zero, none has to. Until so many do, nothing without evidence is
	// moved beneath, unless nothing else could show it. A unit beneath which there is nothing
	// is complete only if this is zero.
	MinEvidence int
}

// OnFailure is what happens once too many leaves have failed.
type OnFailure int

// The answers to failure.
const (
	// Stop holds everything beneath the unit that has not moved yet.
	Stop OnFailure = iota
	// Continue goes on. Failed leaves no longer take a place in the budget of
	// this unit or of those above it, nor do they keep later units of a Series
	// from starting, nor does a unit beneath that has itself been stopped.
	Continue
	// Rollback holds like Stop, and sets the plan's phase to RollingBack so that
	// the ring aims at the former revision.
	Rollback
)

// Limit is an absolute number or a percentage, as Kubernetes' IntOrString. The
// zero value is no limit, except for MaxFailures, where it is none at all. [Limit.Of]
// says how percentages are rounded.
type Limit struct {
	Value   int
	Percent bool
	Set     bool
}

// Number is an absolute limit of n.
func Number(n int) Limit { return Limit{Value: n, Set: true} }

// Percentage is a limit of n per cent of the leaves of a unit.
func Percentage(n int) Limit { return Limit{Value: n, Percent: true, Set: true} }

// Rate is a token bucket: a step takes a token, one comes back each Every, and
// at most Burst (at least 1) are kept. How full it is follows from Starts, so a
// restart neither refills nor empties it; starts that came too early leave no
// debt. Of no Every, there is no rate.
type Rate struct {
	Every time.Duration
	Burst int
	// Starts are the moments of earlier steps, in any order.
	Starts []time.Time
}

// Pause is a user's wish that something waits.
type Pause struct {
	// By is who asked, empty if unknown.
	By string
	// Reason is what they said, empty if nothing.
	Reason string
	Since  time.Time
}

// Block is a fact outside the engine that forbids a step.
type Block struct {
	// Reason is a CamelCase word for conditions and metrics: "ConfigMissing".
	Reason Reason
	// Message is the sentence for people, after "waits: ", without a full stop.
	Message string
	// About is the object that it is about, for programs. Optional.
	About Ref
	// Since is when it began, zero if unknown.
	Since time.Time
	// Until is when it ends automatically, zero if it must be ended. A block whose
	// end has come is none.
	Until time.Time
}

// When says whether a gate stands before or after its unit, or lasts while that rolls.
type When int

// The places of a gate.
const (
	Before When = iota
	After
	// During is decided while the unit rolls. A refusal holds what has not moved yet as
	// one Before does; the rest of the time it is a gate After, so the unit is complete once it
	// has passed. A unit with one that was refused keeps its turn.
	During
)

// Verdict is the state of a gate.
type Verdict int

// The verdicts.
const (
	Pending Verdict = iota
	Passed
	Refused
)

// Gate is a decision that is taken elsewhere: a person, a test, a metric.
type Gate struct {
	Name    string
	When    When
	Verdict Verdict
	// OnRefusal says what a refusal does: Stop holds, Continue lets through, and Rollback
	// holds and sets the plan's phase to RollingBack once nothing else keeps the unit.
	OnRefusal OnFailure
	// Message is what was said with the decision, empty if nothing.
	Message string
	Since   time.Time
}

// returns tells whether a gate was refused, and that wants the former revision back.
func (g *Gate) returns() bool { return g.Verdict == Refused && g.OnRefusal == Rollback }

// stands tells whether a gate can keep its unit from starting, or from being complete.
func (g *Gate) stands(when When) bool {
	return g.When == when || g.When == During && (when == After || g.Verdict == Refused)
}

// lets tells whether a gate lets through.
func (g *Gate) lets() bool {
	return g.Verdict == Passed || g.Verdict == Refused && g.OnRefusal == Continue
}

// Lock is the state of a lock that is shared between rollouts, downscales and
// evictions, and lives in an API object where it is taken by compare-and-swap.
type Lock struct {
	// Holder is who has it, empty if it is free; it is ours if it equals Observed.Self.
	Holder string
	// Purpose is what it is held for: "rollout", "downscale", "eviction".
	Purpose string
	// Unit is the name of the child for which it is held, empty for the whole.
	Unit  string
	Since time.Time
}
