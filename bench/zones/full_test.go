//go:build bench

package zones_test

// The worlds whose figures docs/measurements.md has.
const (
	podsPerZone = 20
	rollouts    = 30
	manyGroups  = 200
	manyGates   = 500
)
