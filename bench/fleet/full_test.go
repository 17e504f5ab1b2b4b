//go:build bench

package fleet_test

import "time"

// The worlds whose figures docs/measurements.md has.
const (
	clusters     = 10_000
	fewClusters  = 1_000
	connected    = 1_000
	fewConnected = 100
	slowest      = 2 * time.Second
	quietFor     = 30 * time.Second
)
