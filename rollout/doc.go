// Package rollout is Spillway's engine, for rollouts of one's own: it decides what may
// move next, and says of everything else why it waits.
//
// Describe what you observed as a tree of [Unit]s, give it to [Decide], do the
// [Plan.Steps], tell people the [Plan.Holds], and decide anew when something has
// changed or at [Plan.Wake]. Decide performs no I/O, reads no clock and keeps no state,
// so that a rollout is as good as the view it was decided from: write with a
// precondition each, and persist what cannot be observed again before the act that it
// permits.
//
// The names are those of the engine that the rings of Spillway run on, and stand for the
// same types. Names may be added in any release. One that is here goes, or means
// something else, only with a release that says so.
package rollout
