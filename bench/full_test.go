//go:build bench

package bench_test

// The worlds that the promises are about.
const (
	workloads = 1000
	rounds    = 3
	secrets   = 10000
	full      = true

	webhookRequests = 20000

	podRounds  = 30
	podsInTurn = 500
)
