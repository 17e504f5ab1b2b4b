// Package offline holds the commands that work on files: lint, simulate and prove of manifests,
// and those with which packages are written, checked, published and found. Only simulate and
// prove read from a cluster, with --cluster, and none writes to one.
//
// # Invariants
//
//   - A file that a user has written is changed in the lines that the command is about, and
//     nowhere else. What cannot be changed so is named, and nothing is written.
//   - A file is written as a whole, or not at all.
package offline
