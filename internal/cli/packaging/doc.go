// Package packaging holds the commands with which packages are written, changed, published
// and found. They need no cluster.
//
// # Invariants
//
//   - A file that a user has written is changed in the lines that the command is about, and
//     nowhere else. What cannot be changed so is named, and nothing is written.
//   - A file is written as a whole, or not at all.
package packaging
