// Package sim is a model world in which the plan of the fleet ring is tried: an
// API server with resource versions and preconditions; clusters that join, leave,
// are not ready for a while, do not answer, or are unknown for a while; a client that carries out what they are
// assigned, late, and fails at bad revisions; readiness that flaps; users who edit
// templates and selectors, move tags, suspend, pin clusters and edit what they have, go back, and decide gates; and two managers at
// the same time, each with views that are out of date for every kind on its own, that crash
// between any two writes, whose requests take their time, and whose clocks may be wrong.
//
// All of it follows from a seed. After every single write an oracle, which knows
// the rules but nothing of the plan, checks the world as it is. When the storm
// is over the rollout has to come to its end: every selected cluster at the revision
// that is wanted; and then nothing is written any more.
//
// A failure prints its seed; play it again, with everything that happened, with
//
//	go test ./internal/fleet/sim -run TestSimulation -seed=N -v
//
// and try more worlds with -seeds=N.
//
// What takes more coincidences than random worlds have is a story: a world in
// which everything happens on purpose. All stories are played before the worlds.
//
// That the oracle sees what it has to see is tried as well: each rule in turn is
// broken on purpose, and some world has to notice.
package sim
