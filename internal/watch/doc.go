// Package watch wakes a request of a controller when an object changes that its last
// decision has read.
//
// Which kinds a ring reads is not known when it starts: a plan applies objects of any
// kind, and a binding refers to them. So a kind is watched, by the metadata of its objects
// alone, from when the first of them is read.
//
// # Invariants
//
//   - A kind is watched before the first object of it is read, so no change after that
//     read is missed.
//   - Watches only say when to read. What they deliver is metadata, and is not decided
//     upon.
//   - What was not read in the last complete pass wakes nothing.
//   - A kind that must not be watched is an error, and no watch that fails in silence. The
//     next read of an object of it tries again.
package watch
