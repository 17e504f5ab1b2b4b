// Package fluxspec hands what users say in the words of Flux through to the objects of Flux
// that a sync is made into. What it knows of these kinds are Flux's own Go types, so that a
// field which a later Flux adds is known with its next version.
//
// What Spillway decides itself has one place in a sync, and is refused here by name: two
// places for one setting would contradict each other, and what a rollout is judged by (the
// source, the deadline, the health of what was applied) must be what the manager has read.
package fluxspec
