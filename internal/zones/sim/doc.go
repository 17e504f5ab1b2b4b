// Package sim is a model world in which the plan of the zones ring is tried: an
// API server with resource versions and preconditions; the controller of
// StatefulSets, which observes its sets late, and stays stuck where the real one
// does; Pods that become ready, flap, never get ready, or vanish; users who edit
// templates, scale, pause, revert, delete Pods and zones, and open a zone that was
// held; another client who wants the lock; and two managers at the same time, each with
// views that are out of date for every kind on its own, that crash between any
// two writes, and whose requests take their time.
//
// All of it follows from a seed. After every single write an oracle, which knows
// the rules but nothing of the plan, checks the world as it is. When the storm
// is over the rollout has to come to its end: all Pods at the revision that is
// wanted, every zone held again, the lock free; and then nothing is written any
// more.
//
// A failure prints its seed; play it again, with everything that happened, with
//
//	go test ./internal/zones/sim -run TestSimulation -seed=N -v
//
// and try more worlds with -seeds=N.
//
// That the oracle sees what it has to see is tried as well: each rule in turn is
// broken on purpose, and some world has to notice.
package sim
