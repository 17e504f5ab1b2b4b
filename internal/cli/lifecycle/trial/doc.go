// Package trial shows what a plan would do to the objects of an Instance, by server-side dry
// run, before anything is written.
//
// # Invariants
//
//   - Nothing is written.
//   - Objects are rendered by the functions that the controller applies them with.
//   - Of Secrets no value is shown, only which ones differ.
package trial
