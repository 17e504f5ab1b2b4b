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
//
// # Why
//
// The status of an Instance keeps the specs of its last executions, so that an Instance can
// return to one. Parameters may be secrets: in a ControllerRevision those who may not read the
// Instance could read them, and a Secret is one more object to write. They move in the write
// that ends an execution, and have at most 64 KiB together, because an object may have 1.5
// MiB.
package execution
