// Package plans is the plans ring: an application's parameters or its version
// change, and one of its plans runs.
//
// # Invariants
//
//   - Never two plans are in progress, in status or in fact. status.execution is
//     the one that runs, or the last one that did. What takes its place ends it in
//     the same write.
//   - Which plan runs follows from what is wanted and what was last applied, and
//     from nothing else: [Choose]. So nothing is missed while nobody looks, and a
//     change that is taken back is none.
//   - What an execution brings about, and the content of the OperatorVersion with
//     which it does so, are fixed when it begins. Whatever is edited meanwhile has
//     its turn when it has ended.
//   - An object is created once. A step that is complete is not taken again.
//   - Whatever cannot be understood stalls the Instance, and says so; it never
//     moves anything.
//   - Waiting for health writes nothing.
//
// # States
//
//	            begin            first step             last step done
//	NEVER_RUN ---------> PENDING ---------> IN_PROGRESS ---------------> COMPLETE
//	                                         ^     |
//	                       it went well again|     |a step failed for the time being
//	                                         |     v
//	                                          ERROR (of the step alone)
//
//	PENDING, IN_PROGRESS, ERROR ---> FATAL_ERROR: failed for good, out of time,
//	                                 abandoned, superseded
//
// The first execution of a plan takes it from NEVER_RUN; a later one has a new uid
// and begins with PENDING. A retry does so too, but keeps the steps that were
// complete.
//
// # What is written before what
//
// A pass looks, decides, writes the status if it differs, and acts. The status is
// one write, with the resourceVersion that was observed; plan state and snapshot
// are in it together. What is done afterwards is permitted by it:
//
//   - the content of the OperatorVersion is kept ([Plan.Pin]) before the status
//     that names its hash;
//   - the finalizer is there before the first plan begins;
//   - a step is IN_PROGRESS, and its objects are in the inventory, before the first
//     of them is applied;
//   - a wish without a uid gets one before it is followed, and is removed only
//     after the execution that answers it has ended;
//   - a failure is counted, with the time of the next try, before that try;
//   - the snapshot moves in the write that makes the plan COMPLETE.
//
// What was applied need not be remembered: each object says by which execution and
// step it was applied last, in the write that applied it. So after a crash the
// next pass goes on with what is missing, and nothing is done twice.
//
// # How managers keep out of each other's way
//
// There is one leader. A manager that was leader a moment ago, or whose view is
// old, is kept from doing harm by this:
//
//   - It acts only right after it has written the status, or after it has read the
//     Instance from the API server and found the resourceVersion that it observed.
//     Whoever sees an old step to be in progress does nothing.
//   - It deletes only what has the UID that it saw.
//   - What it sees of objects is at least as new as what it sees of the Instance,
//     and as its own last write: a cache that is not known to be so is not asked,
//     the API server is. Nobody writes a status after an act without having seen
//     what the act did; so who sees that status sees the act.
//
// What remains is a process that stops between that and its request, for longer
// than the lease lasts, and wakes up after the next leader has deleted what it
// wanted to create. Its requests carry the deadline of the lease.
//
// # What a change that failed leaves behind
//
// The snapshot stays where it was, and status.attempted says what may be half
// there. It is not tried again by itself: somebody changes the spec, or asks for a
// retry. What differs from either has to be done then. If nothing of it had been
// touched, to put the spec back is to change nothing.
//
// # How a pass goes
//
// [Decide] is asked with what is known. While [Plan.Needs] is not empty, what it
// names is looked at, put into the same [Observed], and Decide is asked again. Then,
// in this order: keep [Plan.Pin]; write [Plan.Status] if it [Plan.Changes]; make the
// [Plan.Writes], each with its preconditions; come again at once if [Plan.Again],
// else when something that was looked at changes, or at [Plan.Wake]. What the API
// server does not accept is a [Refusal] from then on, until a write to the same
// object succeeds.
package plans
