// Package execution advances one execution of a plan: it assesses the tasks of the
// steps in progress, asks the engine which steps may start, and records both in the
// status.
//
// # Invariants
//
//   - It is pure.
//   - Order, timeouts, retries and pauses are the engine's decisions; the units that it
//     decides on are the plan, its phases, their steps and their tasks.
//   - A step that is complete is never started again.
//   - An object is in the inventory before it is applied, and until it is deleted.
//   - A failure is counted, with the time of the next try, before that try.
package execution
