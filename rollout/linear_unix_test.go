//go:build unix

package rollout_test

import (
	"syscall"
	"testing"
	"time"

	"github.com/spillway-dev/spillway/rollout"
)

// TestDecideIsLinear compares thirty times the leaves with thirty times the time,
// and allows for a machine that is busy with something else. What takes its time
// for each pair of leaves would be 900 times as long. It is time of the processor
// that counts, because on a busy machine a short decision waits for none and a long one does.
func TestDecideIsLinear(t *testing.T) {
	for _, order := range []rollout.Order{rollout.Parallel, rollout.Series, rollout.OneAtATime} {
		small, large := flat(1_000, order), flat(30_000, order)

		if ratio := float64(fastest(t, large)) / float64(fastest(t, small)); ratio > 450 {
			t.Errorf("order %d: 30 times the leaves take %.0f times as long", order, ratio)
		}
	}
}

func fastest(t *testing.T, o rollout.Observed) time.Duration {
	t.Helper()

	best := time.Hour

	for range 5 {
		start := processorTime(t)
		rollout.Decide(o)
		best = min(best, processorTime(t)-start)
	}

	return max(best, time.Microsecond)
}

// processorTime is what the process has used of the processor.
func processorTime(t *testing.T) time.Duration {
	t.Helper()

	var used syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &used); err != nil {
		t.Fatal(err)
	}

	return time.Duration(used.Utime.Nano() + used.Stime.Nano())
}
