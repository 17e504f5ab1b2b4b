// Package rollout is the engine: it decides what may move next, and says of
// everything else why it waits.
//
// A ring describes what it observed as a tree of [Unit]s and gets back a
// [Plan]. A unit is a Pod of a zone, a step of a plan, a cluster of a stage or
// a workload behind a config change; the engine does not know which. Order,
// budget, rate, lock, pause, gate, soak and deadline are decided here and
// nowhere else.
//
// Invariants, each of them a property test:
//
//   - Every unit that is not where it should be, though everything beneath it is
//     or has failed and is borne (so every such leaf), is exactly one [Step] or
//     one [Hold] of the plan, and no other unit is either. A leaf is where it
//     should be when it is at its target and available; any unit when, besides,
//     it has soaked and its gates have passed.
//   - Steps never bring more units down than any budget above them allows,
//     counting what is down already.
//   - Under [OneAtATime] no two children are disrupted by Spillway at once.
//   - Decide is a pure function: it reads no clock, performs no I/O, keeps no
//     state and changes nothing that it was given. The same [Observed] gives
//     the same [Plan].
//   - Wake is the earliest instant at which the same tree would be decided
//     differently merely because time passed; zero if there is none. It is never
//     late, and early in one case alone: a Timeout may run out for a unit in which
//     nothing moves any more, where that changes nothing.
//
// The package imports the standard library alone.
package rollout
