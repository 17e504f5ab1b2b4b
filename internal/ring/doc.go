// Package ring is what every ring does besides deciding: it permits before it acts, it
// remembers what cannot be observed, it retries, and it reports.
//
// A ring is a controller that changes objects one after the other because package
// rollout says so. Two managers may run at the same time, because a lease cannot stop a
// leader that lost it a moment ago. Every view may be old. A manager may crash between
// any two writes. The protocol keeps rollouts safe in spite of that, without any state
// outside the API server. Package rollout/sim tries it with a model of a ring, and the
// simulations of the rings try this package.
//
// # The protocol
//
//  1. Observe the object of the ring first, with what was decided before, and then what
//     the next decision is about, so that the latter is not older ([Loop.Observe]).
//  2. Decide from that alone ([Loop.Plan]). Intents in the status count as done
//     ([Intents.Kept]).
//  3. If the view is older than the one of some earlier decision ([IsBehind]), or if
//     only the API server can say what became of an intent ([Intents.Unverified]), read
//     from the API server itself and decide again. Do nothing else ([Loop.NeedsLive]).
//  4. If something new is to be done, permit it and do nothing else: write intents into
//     the status of the ring's object ([Intents.Permit], [UpdateStatus]), together with
//     how new the views were.
//  5. Otherwise act: make the writes that the observed status permits ([Intents.Due],
//     [Do]), each with the UID and the resourceVersion that the intent names
//     ([Preconditions], [MergePatch]); and change the objects of those that are not
//     wanted any more, with the same preconditions ([Intents.Fences]).
//  6. Report what was written, and nothing else ([Reporter]).
//  7. Remember which writes the cache does not show yet ([Unmade]) and which were
//     refused ([Expectations]), and when to observe again ([Learn]).
//
// # What each precondition prevents
//
//   - The status is written with the resourceVersion that was read (4). Otherwise two
//     managers permit the disruption of two units at the same time, each from a status
//     without the other's intent.
//   - Only what the observed status permits is done (5). Otherwise a crash or a second
//     manager finds a disruption of which no status tells.
//   - An intent that is not wanted any more counts until its object has changed (2), and
//     is withdrawn by changing it: a fence. Otherwise another unit is permitted while a
//     request for the first one is on the wire. No clock ends a request that was sent; only
//     its own preconditions do.
//   - An intent is acted upon only while its object is the one that it names: the same
//     UID and resourceVersion (5). Otherwise a namesake is changed, or the same object
//     twice.
//   - Views older than those of the last decision are not decided from (3). Otherwise
//     what that decision had seen to be over counts as not begun.
//
// An intent that was not acted upon within [ActWithin] is permitted again, with its new
// time, before it is acted upon. This protects nothing; deadlines are counted from it.
//
// The test of the preconditions (preconditions_test.go) removes each of them from the
// source in turn: the simulation of the zones ring, and that of the fleet ring, must
// then find a world in which something goes wrong.
//
// # What is not here
//
// What is wanted, in which order and how many at a time: that is package rollout. What
// objects look like, and which writes change them: that is the ring. The functions of
// [Intents] and [Loop] are where the two meet. They are values and not interfaces, so
// that a ring can be read from top to bottom, and so that one memory may be closed over.
//
// examples/ring is a ring of its own to start from.
package ring
