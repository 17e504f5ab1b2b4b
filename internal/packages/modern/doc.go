// Package modern rewrites templates of packages for the API versions that Kubernetes still
// serves.
//
// A template is not YAML before it is rendered. Its actions are therefore masked by text of
// the same length, so that the rest can be parsed, and only the lines that must change are
// written again: all others stay as they are, to the byte.
//
// # Invariants
//
//   - An object is changed as a whole or not at all. What cannot be changed with certainty is
//     named, with what to do, and stays as it is.
//   - What was changed needs no change again.
package modern
