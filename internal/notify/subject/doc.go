// Package subject reads from statuses which rollouts there are, and how they go.
//
// # Invariants
//
//   - It is pure, and reads nothing but statuses: what a message says, the status says.
//   - Of an object of the whole cluster it reads only what is about one namespace.
//   - A rollout is stopped if its object is Stalled, and it is the last one.
package subject
