// Package tracing writes rollouts as traces.
//
// # Invariants
//
//   - It decides from two states of one object, and keeps nothing: what had no end before a
//     write and has one after it is a span that ended. So it is in one place for all rings.
//   - Ids are digests: that of a trace of the UID of its object, the rollout and its beginning,
//     that of a span of its path in the trace. A manager that is restarted continues the trace,
//     and the history and messages have the id without storing it.
//   - Spans are sent at least once: a manager that begins to lead sends again what ended
//     shortly before, with the same ids. What no status says any more by then is lost.
//   - A reason is a span without length below the part that is under way. As an event of the
//     span around it, it would be sent only when that ends, and be lost with the manager.
//   - The last rollout of an object that failed has not ended, for it may go on: its root is
//     sent when it is complete or another one replaces it.
//   - Times are those of the status. Only the end of what a status no longer says is the
//     moment at which that was seen.
//   - It reads no more than the rings do, and writes nothing to the API server.
//   - A receiver that does not answer holds nothing up, and fills no memory.
package tracing
