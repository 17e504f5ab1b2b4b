// Package model is what the hub has observed of a module, as plain values: the module,
// the clusters of its namespace, what their assemblages record of it, its revisions and
// its gates. It also names what the hub writes.
//
// # Invariants
//
//   - An [Observed] is not changed after it was read.
//   - The name of a revision follows from what the module says, and from nothing else.
//   - Nothing here does I/O or reads a clock.
package model
