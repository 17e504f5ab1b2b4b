// Package tools has the tools that bring manifests to a cluster, Helm and Flux, update a tracked
// workload again and again: neither removes the hash, and none of the two fights with Spillway.
//
// Helm is its program, and Flux its kustomize-controller; source-controller is played. Argo CD
// is not among them: how it applies is played by a test of the config ring.
//
// Both are compiled for minutes the first time, so the tests have a build tag: make tools-test.
package tools
