// Package describe is how everything stands, over all rings: one tree of units for
// status and watch, and for explain the chain of causes from whatever a person names
// down to the root.
//
// It decides nothing. Every sentence in it is the one that the engine gave in a ring,
// or, beneath what the rings know of, the word of Kubernetes about a Pod. It reads
// with the caller's own permissions, and writes nothing.
//
// [Look] reads whole lists, so many of them as there are kinds, however many objects
// there are; [Explain] reads single objects as it follows the chain.
package describe
