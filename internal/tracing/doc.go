// Package tracing writes rollouts as traces.
//
// # Invariants
//
//   - It decides from two states of one object, and keeps nothing: a manager that begins
//     writes once more what ended shortly before, with the same ids.
//   - Times are those of the status. Only the end of what a status no longer says is the
//     moment at which that was seen.
//   - It reads no more than the rings do, and writes nothing to the API server.
//   - A receiver that does not answer holds nothing up, and fills no memory.
package tracing
