//go:build bench

package bench_test

// The worlds that the promises are about.
const (
	workloads = 1000
	rounds    = 5
	secrets   = 10000
	full      = true
)
