// Package outcome says what became of the syncs of an assemblage: the reasons, the status
// with its conditions, and the Events and metrics. The agent and the hub's proxy report in
// the same way, so that a user reads one language wherever Flux applies.
//
// # Invariants
//
//   - A status that has not changed stays as it was, with its times.
//   - An Event is sent only after the status that it reports was written.
//   - What the API server refuses for now is waiting; what is invalid has failed.
package outcome
