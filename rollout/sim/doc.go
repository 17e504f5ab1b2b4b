// Package sim is a model world in which the engine is tried: units that take
// their time to become healthy, fail and flap; users who change their minds;
// several actors that carry out plans at the same time, from stale views, and crash
// between any two writes; and another client who wants the same lock.
//
// Users also want leaves removed, and back, and approve that; and some groups start as a
// whole. Rules that are broken on purpose show that the worlds notice.
//
// All of it follows from a seed. After every single write an oracle, which knows
// the rules but nothing of the engine, reads the world. When the storm is over
// the rollout must come to its end, give back the lock, and write nothing more.
//
// A failure prints its seed; play it again, with everything that happened, with
//
//	go test ./rollout/sim -run TestSimulation -seed=N -v
//
// and try more worlds with -seeds=N.
//
// # How an actor keeps to the rules
//
// The engine decides from one consistent view. What makes that safe in a world
// with crashes and stale caches is what the actors of the simulation do, and what
// those of the rings must do as well:
//
//   - Before it moves anything an actor writes what it is going to move into the
//     one object that holds the lock, by compare-and-swap on the version that its
//     view shows. A view that misses an earlier such write cannot win.
//   - An actor that reads such an intent of which the leaf has not changed since
//     takes the leaf for down, or for being removed if that is what is intended,
//     until the intent is so old that its writer has given up. That must be longer
//     than an actor goes on with what it once decided, and longer by as much as a
//     view may be out of date.
//   - A leaf is moved only if it is still as the view showed it (resourceVersion). It
//     is removed only if that is still wanted at that moment.
package sim
