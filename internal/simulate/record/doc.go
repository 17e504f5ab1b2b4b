// Package record reads the steps of a rollout from what changes in an API.
//
// A [Step] is read from the objects, never from who wrote them. So the same [Recorder]
// reads the steps of a simulation and those of a real control plane.
package record
