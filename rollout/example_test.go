package rollout_test

import (
	"fmt"
	"time"

	"github.com/spillway-dev/spillway/rollout"
)

var aMonday = time.Date(2026, time.May, 4, 12, 0, 0, 0, time.UTC)

// cluster is a leaf that is to get to v2.
func cluster(name, current string, h rollout.Health) rollout.Unit {
	return rollout.Unit{Name: name, Leaf: rollout.Leaf{Current: current, Target: "v2", Health: h}}
}

// A fleet of four clusters: the canary first, then the rest, two at a time.
func ExampleDecide() {
	plan := rollout.Decide(rollout.Observed{Now: aMonday, Root: rollout.Unit{
		Policy: rollout.Policy{Order: rollout.Series},
		Children: []rollout.Unit{
			{Name: "canary", Children: []rollout.Unit{cluster("a", "v2", rollout.Healthy)}},
			{Name: "rest", Policy: rollout.Policy{MaxUnavailable: rollout.Number(2)}, Children: []rollout.Unit{
				cluster("b", "v2", rollout.Progressing), cluster("c", "v1", rollout.Healthy), cluster("d", "v1", rollout.Healthy),
			}},
		},
	}})
	fmt.Println(plan.Phase)

	for _, step := range plan.Steps {
		fmt.Println("step:", step.Path, "to", step.To)
	}

	for _, hold := range plan.Holds {
		fmt.Println(hold.Message)
	}
	// Output:
	// Progressing
	// step: rest/c to v2
	// b is updating: not ready
	// d is queued (position 1): 2 of 2 allowed unavailable in rest (b is not ready)
}

// What a plan says of one unit.
func ExamplePlan_Group() {
	plan := rollout.Decide(rollout.Observed{Now: aMonday, Root: rollout.Unit{Children: []rollout.Unit{
		{Name: "canary", Children: []rollout.Unit{cluster("a", "v2", rollout.Healthy)}},
		{Name: "rest", Children: []rollout.Unit{cluster("b", "v2", rollout.Progressing), cluster("c", "v2", rollout.Healthy)}},
	}}})
	rest := plan.Group("rest")

	fmt.Println(plan.Group("canary").Complete, plan.PhaseOf("canary"))
	fmt.Println(rest.Complete, rest.Phase, rest.Counts.Ready, "of", rest.Counts.Total)
	// Output:
	// true Complete
	// false Progressing 1 of 2
}

// Percentages are rounded down, to at least 1 unless they are 0%.
func ExampleLimit_Of() {
	fmt.Println(rollout.Number(3).Of(10), rollout.Percentage(25).Of(10), rollout.Percentage(1).Of(10), rollout.Percentage(0).Of(10))
	// Output: 3 2 1 0
}

// A gate stands before production until a user has passed it.
func ExampleGate() {
	plan := rollout.Decide(rollout.Observed{Now: aMonday, Root: rollout.Unit{Children: []rollout.Unit{{
		Name:     "production",
		Gates:    []rollout.Gate{{Name: "approve", When: rollout.Before, Message: "ask alice"}},
		Children: []rollout.Unit{cluster("a", "v1", rollout.Healthy)},
	}}}})
	hold := plan.At("production").Hold

	fmt.Println(hold.Reason, "-", hold.Message)
	// Output: GatePending - production is waiting: gate approve is pending: ask alice
}

// Two of four clusters are to be removed; more than one needs an approval.
func ExampleRemoved() {
	removed := func(name string) rollout.Unit {
		return rollout.Unit{Name: name, Leaf: rollout.Leaf{Current: "v2", Target: rollout.Removed, Health: rollout.Healthy}}
	}
	root := rollout.Unit{
		Policy:   rollout.Policy{MaxUnavailable: rollout.Number(1), MaxRemoved: rollout.Percentage(25)},
		Children: []rollout.Unit{removed("a"), removed("b"), cluster("c", "v2", rollout.Healthy), cluster("d", "v2", rollout.Healthy)},
	}
	fmt.Println(rollout.Decide(rollout.Observed{Now: aMonday, Root: root}).At().Message())

	root.Policy.RemovalsApproved = 2
	plan := rollout.Decide(rollout.Observed{Now: aMonday, Root: root})
	fmt.Println(plan.At("a").Message())
	fmt.Println(plan.At("b").Message())
	// Output:
	// a is waiting: 2 of 4 are to be removed, more than 1 (maxRemoved); approve 2 to continue
	// a is being removed
	// b is queued (position 1): 1 of 1 allowed unavailable
}

// Count counts without deciding.
func ExampleCount() {
	counts := rollout.Count(rollout.Observed{Now: aMonday, Root: rollout.Unit{Children: []rollout.Unit{
		cluster("a", "v2", rollout.Healthy), cluster("b", "v1", rollout.Healthy), cluster("c", "v2", rollout.Failed),
	}}})
	fmt.Println(counts.Updated, "updated,", counts.Available, "available,", counts.Failed, "failed of", counts.Total)
	// Output: 2 updated, 2 available, 1 failed of 3
}

// A history of revisions, newest first.
func ExampleAdvance() {
	history := rollout.Advance(nil, "v1", rollout.PhaseComplete, aMonday, 10)
	history = rollout.Advance(history, "v2", rollout.PhaseProgressing, aMonday.Add(time.Hour), 10)

	for _, entry := range history {
		fmt.Println(entry.Revision, entry.Outcome)
	}
	// Output:
	// v2 Running
	// v1 Complete
}
