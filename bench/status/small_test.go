//go:build !bench

package status_test

// A small world, so that every run of the tests checks what is exact.
var much = size{workloads: 300, groups: 30, instances: 60, clusters: 100}

// What the pages of the dashboard show, and how often it changes.
const changes = 2

// How many workloads use one ConfigMap in the story of what is true.
const sharing = 399

var seen = size{workloads: 200, clusters: 150}
