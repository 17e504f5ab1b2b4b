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
package describe
