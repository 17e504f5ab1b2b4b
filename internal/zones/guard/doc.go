// Package guard answers the API server when a client is about to take Pods away
// from a group: by lowering the replicas of a StatefulSet, or by an eviction.
//
// Paths, messages, status codes and the order of the checks are rollout-operator's.
//
// Invariants:
//
//   - Of all that may take Pods of a group away, one thing is admitted at a time. The
//     lock of the group is taken by compare-and-swap on what was seen, and both were
//     read from the API server itself.
//   - No Pod is asked to prepare before that was written down; so the next manager
//     a crash knows which Pods to tell otherwise.
//   - A downscale is admitted only if all Pods that go have been told, and the lock is
//     still held for it. Otherwise all of them are called to stay, whatever became of
//     the request.
//   - A downscale that removes nothing but Pods that no node ever had is written down and admitted
//     though another client has the lock; see [lock.TakesBack].
//   - They are called to stay once no call that prepares them is under way. A downscale
//     stays written down while one of them may still obey such a call, because it was
//     given up: the scaling ring calls it once more when it cannot any longer.
//   - The object under admission is never written, so the write that is admitted does
//     not conflict with its own admission.
//   - An eviction that was admitted counts until it is seen or can no longer come.
//   - A dry run is answered and leaves no trace.
//
// # Why
//
//   - A request that the API server refuses is never seen, and would keep the group locked for
//     longer than its back-off. So scaling gives the lock back when its own write was refused,
//     and the guard when it refuses. What another client may still write is waited for.
//   - A dry run before the lock is taken would be made by the manager, and a policy may refuse
//     the manager and admit the client.
package guard
