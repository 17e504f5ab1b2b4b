//go:build bench

package fleet_test

// The worlds whose figures docs/measurements.md has.
const (
	decided  = 10_000
	clusters = 1_000
)
