//go:build !bench

package plans_test

import "time"

// Small worlds, so that every run of the tests checks what is exact.
const (
	manyInstances  = 10
	stuckInstances = 5
	quietFor       = time.Second
)
