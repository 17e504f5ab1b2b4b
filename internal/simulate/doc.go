// Package simulate works out what a change would do, without a cluster.
//
// It runs the rings themselves, observe, plan and act unchanged, upon an API server
// in memory (package store) and a clock that jumps from one event to the next. What
// is modelled is only what is not Spillway: the controllers of Kubernetes and the
// kubelets, as far as a rollout can tell them from the real ones.
//
// A [Step] is read from what has changed in the API, never from who wrote it. So the
// same [Recorder] reads the steps of a simulation and those of a real control plane;
// the tests of this package do both, scenario by scenario, and compare.
//
// Replicas are scaled by the controller of the zones ring, and its guards decide about
// every write that lowers some. The Pods that both call are modelled too: no call leaves
// the process.
//
// What is not simulated: other admission (a new workload whose config is missing is not
// suspended, and an eviction is not refused), packages that read files of Pods, and
// whatever another controller would do with what is not a kind of Kubernetes or of
// Spillway; such an object is healthy as soon as it exists.
//
// # Why
//
// A downscale that is refused is tried for ever, so a simulation ends once its state comes
// back, unless time ends a wait of the group.
package simulate
