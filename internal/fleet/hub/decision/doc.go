// Package decision plans what the hub does about one module. [Decide] turns what was
// observed into the tree of units that the engine decides on, and the engine's answer
// into writes and a status. [Explain] puts the same decision into words.
//
// # Invariants
//
//   - Every function is pure: no I/O, no clock, no state between two calls.
//   - Which cluster is updated, and when, is the engine's decision alone.
//   - A plan either permits or writes, never both.
//   - The size of the status does not grow with the number of clusters.
package decision
