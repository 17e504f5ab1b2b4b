// Package describe has one description a ring: the tree of units that status and watch
// show, and the facts that explain adds to it. One file a ring reads what the ring
// explains; no other package reads those fields to show them.
//
// It decides nothing. Every sentence is the one that the engine gave in a ring, or,
// beneath what the rings observe, the message of Kubernetes about an object. It reads
// with the caller's own permissions, and writes nothing.
//
// Package snapshot reads whole lists, as many as there are kinds, however many objects
// there are. Package explain follows one object down to the root cause, reading single
// objects. Package history reads what was rolled out before, and the Events about it.
//
// # Why
//
//   - A person is shown what is known before everything is read, and never a guess that turns
//     into something else: a workload whose ring is not described has the phase Reading.
//     Programs wait for the whole.
//   - A ring keeps its description ([Memory]) while no object of a kind that it has read has
//     changed, it has asked the API server for nothing, and the first moment has not come at
//     which time alone may change a word. When it describes again it decides about everything,
//     and reads only what has changed. Explanations of single workloads cannot be kept: their
//     inputs are all workloads of a queue or a budget.
package describe
