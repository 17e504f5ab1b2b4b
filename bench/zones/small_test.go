//go:build !bench

package zones_test

// Small worlds, so that every run of the tests checks what is exact.
const (
	podsPerZone = 2
	rollouts    = 2
	manyGroups  = 6
	manyGates   = 20
)
