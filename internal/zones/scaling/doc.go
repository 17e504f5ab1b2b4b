// Package scaling keeps the replicas of StatefulSets where their annotations say:
// those of a leader, or those of another object; and it settles what the guards have
// written down about downscales and evictions.
//
// Invariants:
//
//   - Replicas are written only while the StatefulSet is the one that was seen, by its
//     resourceVersion.
//   - What takes replicas away is done for one StatefulSet of a group at a time, under
//     the lock of the group. What adds some waits for its leader alone.
//   - With a delayed downscale no Pod goes that did not say, just before, that it has
//     been prepared for as long as was asked; and no Pod that stays remains prepared.
//     What the Pods say is the only state. Memory saves calls: losing it repeats some.
//   - Pods that no node ever had are scaled away without the lock, as nothing goes down; that
//     is written down before, by compare-and-swap, and until they are gone they count as down.
//     See [lock.TakesBack].
//   - What a StatefulSet's annotations make impossible concerns that one alone, and is
//     said.
//   - Where a downscale was written down and does not happen, its Pods are called
//     otherwise, and the lock is given back.
package scaling
