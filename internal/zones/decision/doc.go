// Package decision plans what the zones ring does about one group. [Decide] turns what
// was observed into the tree of units that the engine decides on, and the engine's
// answer into writes and a status. [Explain] puts the same decision into words.
//
// What a zone, its turn and its moves are, package zones says.
//
// # Invariants
//
//   - Every function is pure: no I/O, no clock, no state between two calls.
//   - Which Pod is replaced, and which zone is opened, is the engine's decision alone.
//     It is asked once about what is observed; and once more in a plan that permits,
//     about what is so after that, because the status says so.
//   - A plan either permits or writes, never both. A zone that must be held is held
//     before anything is permitted.
//   - What cannot be understood is a [Problem], and nothing of its group moves.
package decision
