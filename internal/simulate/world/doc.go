// Package world is a simulated cluster: an API server in memory, a clock that jumps to
// the next moment at which something happens, and actors that act on what has changed.
//
// The order of the actors is fixed, and each acts on one object at a time. So the same
// input gives the same steps.
package world
