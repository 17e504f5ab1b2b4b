// Package decision decides what the plans ring does for one Instance. It is pure.
//
// # Invariants
//
//   - The snapshot does not change, and no clock is read.
//   - Decide is called again with what it needs, until it needs nothing; each object is
//     needed once.
//   - What replaces an execution ends it in the same status.
//   - A status that differs in nothing but the message of what it waits for is kept for
//     a while.
package decision
