//go:build !bench

package bench_test

// Small worlds, for every run of the tests.
const (
	workloads = 100
	rounds    = 1
	secrets   = 500
	full      = false

	// large is how many ConfigMaps are as large as they can be.
	large = 60

	webhookRequests = 500

	podRounds  = 1
	podsInTurn = 50
)
