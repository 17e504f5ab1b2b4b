// Package rollout decides what may be updated next, and says of everything else
// why it waits.
//
// Describe what you observed as a tree of [Unit]s and hand it to [Decide]: it returns
// a [Plan] with the [Step]s to take now, a [Hold] with one reason and one sentence for
// each unit that waits, and when to look again. A unit is a Pod of a zone, a step of a
// plan, a cluster of a stage or a workload behind a config change; the engine does not
// know which. Order, budget, rate, lock, pause, gate, soak, deadline and removal are
// decided here and nowhere else. Decide reads and writes nothing, so tests need no API
// server:
//
//	plan := rollout.Decide(rollout.Observed{Now: now, Root: tree})
//	for _, step := range plan.Steps {
//		// persist that it is permitted, then move step.Path to step.To
//	}
//
// [Plan.At] and [Plan.Group] say what a plan means for one unit, [Count] counts without
// deciding, and [Advance] keeps a history of revisions.
//
// # Invariants
//
// Each of them is a property test:
//
//   - Every unit that is not where it should be, though everything beneath it is
//     or has failed and is tolerated, or gives no evidence (so every such leaf), is exactly
//     one [Step] or one [Hold] of the plan, and no other unit is either. A leaf is where it
//     should be when it is at its target and available; any unit when, besides,
//     enough shows that the target is good, it has soaked and its gates have passed.
//   - Steps never bring more units down than any budget above them allows,
//     counting what is down already.
//   - Never are more leaves being removed than any budget above them allows, and none
//     is where more are to be removed than MaxRemoved and the number approved.
//   - What gives no evidence is no failure, moves after what does, and completes no unit
//     that asks for evidence.
//   - Under [OneAtATime] no two children are disrupted by Spillway at the same time.
//   - Decide is a pure function: it reads no clock, performs no I/O, keeps no
//     state and changes nothing that it was given. The same [Observed] gives
//     the same [Plan].
//   - Wake is the earliest instant at which the same tree would be decided
//     differently merely because time passed; zero if there is none. It is never
//     late, and early in one case alone: a Timeout may run out for a unit in which
//     nothing moves any more, where that changes nothing.
//
// # Compatibility
//
// Names may be added in any release. One that exists is removed, or means something
// else, only with a release whose notes say so. The [Reason]s and [Phase]s are part of
// that, the sentences of holds are not: read Reason, On and Until instead. The file
// testdata/api.txt has all that is promised, and a test compares it.
//
// The package imports the standard library alone.
package rollout
