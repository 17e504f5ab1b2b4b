// Package ask is how a ring asks about the gates of its rollouts.
//
// # Invariants
//
//   - What it decides is pure.
//   - A RolloutGate counts only if the object that rolls out controls it, so that one of a
//     former object of the name is none.
//   - What was not observed is pending.
//   - A RolloutGate has a name that follows from what it asks: created twice, it is a conflict.
package ask
