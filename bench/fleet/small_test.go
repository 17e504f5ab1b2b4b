//go:build !bench

package fleet_test

import "time"

// Small worlds, so that every run of the tests checks what is exact.
const (
	clusters     = 200
	fewClusters  = 50
	connected    = 40
	fewConnected = 20
	slowest      = 200 * time.Millisecond
	quietFor     = time.Second
)
