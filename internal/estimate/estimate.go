// Package estimate says how long something takes by how long it took before.
//
// # Why
//
// A forecast in a status follows from the recorded times of earlier rollouts. A simulation
// with each step would cost the manager as many simulations as a group has Pods, and one that
// is kept up to date would be a write a minute. It is part of a write that is made anyway.
package estimate

import (
	"slices"
	"time"
)

// Estimate is how long something takes: as short or as long as it may, and what is expected.
type Estimate struct{ Shortest, Expected, Longest time.Duration }

// Of is an estimate from times that were seen, at least one. It is their median; the fewer
// there are, the further the next one may lie beyond those that were seen. By a single one it
// takes half to double of that.
func Of(seen []time.Duration) Estimate {
	times := slices.Sorted(slices.Values(seen))
	n := len(times)
	least, most := times[0], times[n-1]
	if n == 1 {
		return Estimate{least / 2, least, 2 * most}
	}
	beyond := (most - least) / time.Duration(n)
	return Estimate{max(0, least-beyond), times[n/2], most + beyond}
}
