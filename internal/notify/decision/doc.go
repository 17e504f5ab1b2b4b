// Package decision compares what statuses say of rollouts with what a Notifier has told, and
// decides which messages to send.
//
// # Invariants
//
//   - It is pure, and knows neither kinds nor transports.
//   - It decides from state, never from an event: whatever was missed meanwhile is found in the
//     difference, as far as the statuses still say it.
//   - What is reported is recorded, with the message in the queue, before it is sent ([Plan.Persist]).
//     So a restart repeats a message at most, and it has the same identity.
//   - The messages of a rollout have an order: Started, then Stopped any number of times, then
//     one of Ended and Returned.
//   - The record, the queue and each sentence are bounded. Of a queue that is full, the oldest
//     message is dropped and counted.
//   - What is not known has not ended: an object of a kind that is not read keeps its record.
package decision
