//go:build !bench

package plans_test

import "time"

// Small worlds, so that every run of the tests checks what is exact.
const (
	manyInstances  = 10
	stuckInstances = 5
	quietFor       = time.Second
	// installRounds are how often a package is installed beside bare applies.
	installRounds = 1
	// leadersKilled are how often, while killedInstances are installed.
	leadersKilled   = 1
	killedInstances = 20
)
