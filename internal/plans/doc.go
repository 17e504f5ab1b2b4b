// Package plans is the plans ring: the parameters or the version of an application
// change, and one of its plans runs.
//
// # Invariants
//
//   - Never two plans are in progress, in status or in fact. status.execution is the
//     one that is running, or the last one that did. What replaces it ends it in the
//     same write.
//   - Which plan runs follows from what is wanted and what was last applied, and from
//     nothing else: [choice.Choose]. So nothing is missed while no manager runs, and a
//     change that is reverted needs no plan.
//   - What an execution applies, and the content of the OperatorVersion that it uses,
//     are fixed when it begins. Later edits have their turn when it has ended.
//   - An object is created once. A step that is complete is not started again.
//   - Invalid input stalls the Instance, with a message; it never moves anything.
//   - Waiting for health writes nothing.
//   - What a plan reads and writes, it does as the account of the Instance, if that has one.
//     What the ring records is the manager's.
//   - The value of a parameter from a Secret is read as that account, and is in memory for one
//     pass only. In every spec that is compared or recorded a token stands for it.
//   - What other clients have changed is applied again only if the Instance wants that, and while no
//     plan runs. Each try is recorded before it is made.
//
// # States
//
//	            begin            first step             last step done
//	NEVER_RUN ---------> PENDING ---------> IN_PROGRESS ---------------> COMPLETE
//	                                         ^     |
//	                             it succeeds |     | a step failed and is retried
//	                                         |     v
//	                                          ERROR (of the step alone)
//
//	PENDING, IN_PROGRESS, ERROR ---> FATAL_ERROR: failed for good, timed out,
//	                                 abandoned, superseded
//
// The first execution of a plan takes it from NEVER_RUN; a later one has a new uid and
// begins with PENDING. A retry does so too, but keeps the steps that are complete.
//
// # What is written before what
//
// A pass observes, decides, writes the status if it differs, and acts. The status is one
// write, with the resourceVersion that was observed; it contains the plan state and the
// snapshot of what was last applied. It permits what is done afterwards:
//
//   - the content of the OperatorVersion is pinned before the status names its hash;
//   - the finalizer exists before the first plan begins;
//   - a step is IN_PROGRESS, and its objects are in the inventory, before the first of
//     them is applied;
//   - a request without a uid gets one before it is answered, and is removed only after
//     the execution that answers it has ended;
//   - a failure is counted, with the time of the next try, before that try;
//   - the snapshot moves in the write that makes the plan COMPLETE.
//
// What was applied need not be remembered: each object says which execution and step
// applied it last, in the write that applied it. So after a crash the next pass does
// what is missing, and nothing twice.
//
// # How managers do not interfere with each other
//
// There is one leader. A manager that was leader a moment ago, or whose cache is
// outdated, does no harm, because:
//
//   - It acts only right after it has written the status, or after it has read the
//     Instance from the API server and found the resourceVersion that it observed. A
//     manager that observes an old step in progress does nothing.
//   - It deletes only the object whose UID it has read.
//   - What it reads of objects is at least as new as the Instance and its own last
//     write: they are read from the API server, or are its answers to the applies that the
//     Instance, as it still is, has permitted in the pass before. No manager writes a status after an act
//     without having read what the act did; so what reads that status reads the act.
//
// What remains is a process that stops between that and its request, for longer than the
// lease lasts, and continues after the next leader has deleted what it wanted to create.
// Its requests carry the deadline of the lease.
//
// # What a change that failed leaves behind
//
// The snapshot stays, and status.attempted says what may be partly applied. It is not
// retried automatically: a user changes the spec, or requests a retry. What differs from
// either must be applied then. If nothing of it was touched, reverting the spec changes
// nothing.
//
// # How a pass goes
//
// The decision is made with what is known. While it needs more, that is read into the
// same snapshot, and the decision is made again. Then, in this order: pin content; write
// the status if it changes; make the writes, each with its preconditions; reconcile
// again immediately if there is more to decide, else when an object changes that was
// read, or when the engine says. A write that the API server does not accept is a
// [write.Refusal] from then on, which answers that execution and what was sent, and nothing else.
//
// # Rooms
//
// [decision] is the pure part; [choice] decides which plan is needed, [task] what one
// task needs, [execution] how far an execution comes; [watch] wakes Instances up; [admit]
// guards them at admission; [account] says as whom plans act; [object], [pipe] and [render]
// know of no Instance. The loop of
// passes, writes within a time, back-off, Events and metrics are those of package ring.
package plans
