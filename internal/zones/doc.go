// Package zones is the zones ring: the Pod template of StatefulSets that form a
// group changes, and their Pods follow, one zone at a time.
//
// # Invariants
//
//   - Spillway never disrupts two zones at the same time. Whatever takes a Pod
//     down that is up is permitted by the lock of the group, for one zone.
//   - Never more Pods of a zone are unavailable than may be when one is taken
//     down. Unavailable are the replicas of the spec that no Pod of the zone
//     serves; a count of the status of a StatefulSet is never used.
//   - What is taken down was written into the status of the RolloutGroup before,
//     by compare-and-swap. See "How managers keep out of each other's way".
//   - A Pod that is outdated and not available is replaced before one that is
//     available. That takes nothing away, so it waits neither for the budget nor
//     for the turn of its zone.
//   - Whatever cannot be understood moves nothing in its group, and says so.
//   - Converged, the plan is empty, and so is the one after it.
//
// # When a zone is done
//
// It is done when each replica of its spec is a Pod that belongs to it by the UID
// of its owner, has the update revision, and has been ready for as long as the
// group and the StatefulSet ask; when the StatefulSet's status has observed its
// generation; when it is held again, where it is held by partition; and when it
// has soaked. While a status has not observed its generation it is unknown which
// revision is wanted: all of the group waits. There is one exception, see "Verified".
//
// A StatefulSet without replicas is done. One that is being deleted moves
// nothing, and while it lasts its Pods are counted. One that appears takes its
// place in the order; one that is gone is waited for no longer.
//
// # Pause
//
// A paused zone moves nothing. While all of it is available the others pass it
// by; while it is not, it stops the others, since it counts as disrupted. A
// paused group moves nothing at all. What is being replaced still is. Outside
// of its maintenance windows a group is as if it were paused.
//
// # Two ways to hold a zone
//
// A StatefulSet of type OnDelete holds itself; its Pods move when they are
// deleted. A Pod that is evicted before its turn comes back at the new revision.
//
// One of type RollingUpdate is held by its partition: while it is at least the
// number of replicas, no Pod moves, and one that is evicted comes back at the
// old revision. A zone rests held, also when there is nothing to do: if it did
// not, its controller would begin to roll it in the moment in which a user
// edits its template, turn or no turn. The partition that is written, [Held], is
// far above any number of replicas, so that a zone may be scaled up while held.
// In a group the partition belongs to Spillway. A zone that is open without
// permission, such as one that has just joined the group or one whose manifest
// says partition 0, is held before anything else is done. If it was whole and wants
// another revision, its controller may have replaced Pods by then: the status says that it was
// opened, so no other zone moves without a live look. A policy refuses such writes where it can
// tell ([policies.OutOfTurn]).
//
// In its turn a zone is opened by one patch, and held again by another once it is
// done, or when it has to wait in between. How it is opened depends. If the API server knows
// rollingUpdate.maxUnavailable, the partition becomes 0 and the controller rolls
// the zone within that budget; only what it would leave stuck is replaced by
// Spillway. Otherwise, or if the group asks for more minReadySeconds than the
// StatefulSet does, its type becomes OnDelete for as long as its turn lasts, and
// Spillway deletes the Pods itself. Lowering the partition instead could not
// replace a broken Pod of a low ordinal first. A zone that is lent in this way is
// held only once its controller has noted that it is done (status.currentRevision):
// one that is evicted in between would come back at the old revision. Where the
// partition holds it may as well, but that is a moment, and its controller notes it
// while it is held.
//
// # Verified
//
// A zone that was open is built upon without another look, and before its controller
// has observed the hold, if it is known that from the patch that opened it to the one
// that holds it no client has changed its spec, and that all of its replicas were at
// the update revision when it was held. For its controller, which may have seen either
// of these specs and none between them, has then nothing left to replace, and the
// revisions in its status are those of this template. The first follows from the
// generations in the answers to these two patches, of which the second has the
// first's as its precondition; a count of the status in between does not refuse it.
// A manager that does not have these answers, another one or the next one, waits for the
// status and looks live.
//
// A Pod that is broken at the revision that a held zone would bring it back to
// gains nothing from being replaced. It waits for its zone's turn. A held zone
// brings a Pod back to the last revision at which the zone was whole; so a Pod
// that broke at a revision in between is replaced immediately. If Pods of several
// zones wait in that way, none of them would ever have its turn: then the first
// zone is set to OnDelete for as long as these are replaced, which takes nothing
// away.
//
// # How managers keep out of each other's way
//
// There is one leader, but a lease cannot stop one that was leader a moment ago;
// and every view may be old. Package rollout/sim states the protocol; here it is:
//
//   - A pass either permits or acts. To permit is to write the lock and the
//     [v1alpha1.Move]s into the status of the RolloutGroup, with the
//     resourceVersion that was observed. To act is to do what the observed status
//     permits.
//   - A move names the UID and the resourceVersion that the Pod or the StatefulSet
//     had, and acting carries them as preconditions. So two managers that act upon
//     the same move do it once.
//   - A manager that sees a move of something that has not changed since takes it for
//     gone already, however old the move is: its request may be on the wire. One that is
//     not wanted any more is withdrawn by changing an annotation of the Pod or the
//     StatefulSet, so that the request finds another resourceVersion than it names. What
//     is gone with its UID can change no more: its moves are over.
//   - A write that the API server refuses is permitted again when it is tried again.
//   - With the lock is written how new the views of Pods and StatefulSets were
//     ([v1alpha1.Seen]). Whose views are older looks again, live. So a decision
//     knows of all that the decisions before it knew.
//   - What was done without a move is known to the API server alone: what a
//     controller has replaced automatically, and what was done under a lock that has
//     expired. Before anything is built upon that, the plan asks for a live look.
//   - The lock is given back, or to another zone, only when nothing is permitted
//     any more and no zone is open.
//
// The holder of the lock is named after the group, not after a process, so that
// the next leader goes on where the last one stopped.
//
// To delete the RolloutGroup deletes the lock, the moves and the history. The
// manager that leads makes another and writes what it knew of the former one into
// it, before it does anything else. Only if it stops just then, that is lost: its
// successor begins again, with what the preconditions of each write still promise.
//
// # What it costs
//
// A Pod that is deleted costs two writes: the one that permits it, and the delete.
// What became of the Pod before is in the write that permits the next one. A
// zone that is held by its partition costs three, whatever its size: one of the
// status, which permits it, and two of the StatefulSet, to open it and to hold it
// again. It costs no read, unless it is not verified: then, before another zone goes, a list
// of the StatefulSets and one of the Pods of each, because what the controller of the
// open zone did is in no move. A rollout costs one more write, which says that it is
// over. Waiting for longer than [Options.StatusDelay] costs a write of its own.
// Converged, nothing is written.
//
// Where the kind RolloutGroup is not installed the ring says so and does nothing;
// it begins within seconds after it is.
//
// # Why
//
//   - One write for each zone instead of three was tried. The permission must be in another
//     object before the zone is opened, and must be young, because a manager that was leader a
//     moment ago may act upon it late.
//   - An admission policy that holds a zone in the very edit of its template would save a
//     write, but it comes into force on each API server at its own time, and may be deleted at
//     any moment.
//   - Permitting two Pods by one write saves calls only where Pods are ready within seconds.
package zones
