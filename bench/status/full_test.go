//go:build bench

package status_test

// The world whose figures docs/measurements.md has.
var much = size{workloads: 5_000, groups: 200, instances: 200, clusters: 1_000}

// What the pages of the dashboard show, and how often it changes.
const changes = 10

// How many workloads use one ConfigMap in the story of what is true.
const sharing = 5_000

var seen = size{workloads: 5_000, clusters: 10_000}
