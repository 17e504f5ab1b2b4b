// Package models holds the controllers of Kubernetes, the kubelets and the clusters of
// a fleet, as far as a rollout can tell them from the real ones.
//
// The tests of package simulate run each scenario on the models and on a real control
// plane, and compare.
package models
