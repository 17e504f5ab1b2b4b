//go:build !bench

package fleet_test

// Small worlds, so that every run of the tests checks what is exact.
const (
	decided  = 1_000
	clusters = 30
)
