// Package manifests says what a cluster needs to run Spillway: it turns options into values of the
// chart in charts/spillway, which is the only source of what is installed, and renders it with
// Helm's library.
//
// What the chart reads from its folder generated is written by make generate: the kinds, and the
// permissions from the markers beside the code that uses them, by controller-gen; the webhooks and
// policies that rings declare, by hack/chart.
package manifests
