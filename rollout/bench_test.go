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

// BenchmarkPerLeaf says what a leaf costs among few and among many: the same, or what is done is
// done for each pair of leaves.
func BenchmarkPerLeaf(b *testing.B) {
	for _, order := range []rollout.Order{rollout.Parallel, rollout.Series, rollout.OneAtATime} {
		for _, n := range []int{1_000, 30_000} {
			o := flat(n, order)

			b.Run(fmt.Sprintf("order-%d-%d", order, n), func(b *testing.B) {
				for b.Loop() {
					rollout.Decide(o)
				}

				b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N*n), "ns/leaf")
			})
		}
	}
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
