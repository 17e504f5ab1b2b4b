package rollout_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/spillway-dev/spillway/rollout"
)

// fleetOf is a tree of n leaves in groups of a hundred, under budgets and a rate.
func fleetOf(n int) rollout.Observed {
	root := rollout.Unit{Policy: rollout.Policy{
		MaxUnavailable: rollout.Percentage(10),
		Rate:           rollout.Rate{Every: time.Second, Burst: n / 20},
	}}

	for g := range n / 100 {
		group := rollout.Unit{Name: fmt.Sprintf("group-%d", g), Policy: rollout.Policy{MaxUnavailable: rollout.Number(20)}}
		for i := range 100 {
			leaf := rollout.Leaf{Current: "v1", Target: "v2", Health: rollout.Healthy, Priority: i % 7}
			group.Children = append(group.Children, rollout.Unit{Name: fmt.Sprintf("leaf-%d-%d", g, i), Leaf: leaf})
		}

		root.Children = append(root.Children, group)
	}

	return rollout.Observed{Now: noon, Root: root}
}

func flat(n int, order rollout.Order) rollout.Observed {
	root := rollout.Unit{Policy: rollout.Policy{Order: order, MaxUnavailable: rollout.Percentage(10)}}
	for i := range n {
		leaf := rollout.Leaf{Current: "v1", Target: "v2", Health: rollout.Healthy}
		root.Children = append(root.Children, rollout.Unit{Name: fmt.Sprintf("leaf-%d", i), Leaf: leaf})
	}

	return rollout.Observed{Now: noon, Root: root}
}

func BenchmarkDecide(b *testing.B) {
	for name, o := range map[string]rollout.Observed{
		"parallel-10000":      flat(10_000, rollout.Parallel),
		"series-10000":        flat(10_000, rollout.Series),
		"one-at-a-time-10000": flat(10_000, rollout.OneAtATime),
		"groups-10000":        fleetOf(10_000),
		"groups-1000":         fleetOf(1_000),
	} {
		b.Run(name, func(b *testing.B) {
			b.ReportAllocs()

			for b.Loop() {
				rollout.Decide(o)
			}
		})
	}
}

// TestDecideIsLinear compares thirty times the leaves with thirty times the time,
// generously, since others may be using the machine: a square would take nine
// hundred times as long.
func TestDecideIsLinear(t *testing.T) {
	for _, order := range []rollout.Order{rollout.Parallel, rollout.Series, rollout.OneAtATime} {
		small, large := flat(1_000, order), flat(30_000, order)

		if ratio := float64(fastest(large)) / float64(fastest(small)); ratio > 450 {
			t.Errorf("order %d: 30 times the leaves take %.0f times as long", order, ratio)
		}
	}
}

func fastest(o rollout.Observed) time.Duration {
	best := time.Hour

	for range 15 {
		start := time.Now()
		rollout.Decide(o)
		best = min(best, time.Since(start))
	}

	return best
}
