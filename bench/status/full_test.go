//go:build bench

package status_test

// The world whose figures docs/measurements.md has.
var much = size{workloads: 5_000, groups: 200, instances: 200, clusters: 1_000}
