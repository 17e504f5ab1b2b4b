// Package zones is the zones ring: the Pod template of StatefulSets that form a
// group changes, and their Pods follow, one zone at a time.
//
// # Invariants
//
//   - Never two zones are disrupted by Spillway at once. Whatever takes a Pod
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
// has soaked. While a status has not observed its generation nobody knows which
// revision is wanted: all of the group waits.
//
// A StatefulSet without replicas is done. One that is being deleted moves
// nothing, and while it lasts its Pods are counted. One that appears takes its
// place in the order; one that is gone is waited for no longer.
//
// # Pause
//
// A paused zone moves nothing. While all of it is available the others pass it
// by; while it is not, it stops the others, since it counts as disrupted. A
// paused group moves nothing at all. What was on its way stays on its way.
//
// # Two ways to hold a zone
//
// A StatefulSet of type OnDelete holds itself; its Pods move when they are
// deleted. A Pod that is evicted before its turn comes back at the new revision.
//
// One of type RollingUpdate is held by its partition: while it is at least the
// number of replicas, no Pod moves, and one that is evicted comes back at the
// old revision. A zone rests held, also when there is nothing to do: if it did
// not, its controller would begin to roll it in the very moment in which somebody
// edits its template, turn or no turn. The partition that is written, [Held], is
// far above any number of replicas, so that a zone may be scaled up while held.
// In a group the partition belongs to Spillway. A zone that is open without
// permission, such as one that has just joined the group or one whose manifest
// says partition 0, is held before anything else is done.
//
// In its turn a zone is opened by one patch, and held again by another once it is
// done and its controller has noted that (status.currentRevision), or when it has
// to wait in between. How it is opened depends. If the API server knows
// rollingUpdate.maxUnavailable, the partition becomes 0 and the controller rolls
// the zone within that budget; only what it would leave stuck is replaced by
// Spillway. Otherwise, or if the group asks for more minReadySeconds than the
// StatefulSet does, its type becomes OnDelete for as long as its turn lasts, and
// Spillway deletes the Pods itself. Lowering the partition instead could not
// replace a broken Pod of a low ordinal first.
//
// A Pod that is broken at the revision that a held zone would bring it back to
// gains nothing from being replaced. It waits for its zone's turn. A held zone
// brings a Pod back to the last revision at which the zone was whole; so a Pod
// that broke at a revision in between is replaced at once. If Pods of several
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
//   - Whoever sees a move of something that has not changed since takes it for
//     gone already. It is withdrawn only when that has changed, or after
//     [WithdrawAfter]; and acted upon only before [ActWithin].
//   - With the lock is written how new the views of Pods and StatefulSets were
//     ([v1alpha1.Seen]). Whose views are older waits. So a decision knows of all
//     that the decisions before it knew.
//   - The lock is given back, or to another zone, only when nothing is permitted
//     any more and no zone is open.
//
// The holder of the lock is named after the group, not after a process, so that
// the next leader goes on where the last one stopped.
package zones
