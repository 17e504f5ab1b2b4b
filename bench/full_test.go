//go:build bench

package bench_test

// The worlds that the promises are about.
const (
	workloads = 1000
	rounds    = 3
	secrets   = 10000
	full      = true

	// large is how many ConfigMaps are as large as they can be.
	large = 250

	webhookRequests = 20000

	podRounds  = 30
	podsInTurn = 500
)
