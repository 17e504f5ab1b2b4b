// Package preconditions has no code, but the test of package ring: each of its
// preconditions is removed from the source in turn, and the simulations of the rings must
// notice.
//
// The removal is an overlay of the go command, so production code has no switch for it.
// Each line of the test says which text of which file is replaced; the test fails if the
// text is not found, so that it cannot go out of date in silence.
package preconditions
