// Package write says what a write to the cluster is, which writes may be made at the same
// time, and what it means that the API server refuses one.
//
// # Invariants
//
//   - A write names what it relies on: the UID and the resourceVersion of what was read.
//   - A refusal never contains the value of a Secret.
//   - What is not known to be refused for good is tried again.
package write
