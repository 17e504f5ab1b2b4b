//go:build bench

package plans_test

import "time"

// The worlds whose figures docs/measurements.md has.
const (
	manyInstances  = 1000
	stuckInstances = 50
	quietFor       = time.Minute
	// installRounds are how often a package is installed beside bare applies.
	installRounds = 9
	// leadersKilled are how often, while killedInstances are installed.
	leadersKilled   = 5
	killedInstances = 500
)
