//go:build bench

package plans_test

import "time"

// The worlds whose figures docs/measurements.md has.
const (
	manyInstances  = 1000
	stuckInstances = 50
	quietFor       = time.Minute
)
