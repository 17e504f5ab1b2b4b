package rollout_test

import (
	"fmt"
	"time"

	"github.com/spillway-dev/spillway/rollout"
)

// A fleet of five clusters: the canary first, and then two at a time.
func Example() {
	cluster := func(name, runs string, h rollout.Health) rollout.Unit {
		return rollout.Unit{Name: name, Leaf: rollout.Leaf{Current: runs, Target: "v2", Health: h}}
	}
	plan := rollout.Decide(rollout.Observed{Now: time.Date(2026, time.May, 4, 12, 0, 0, 0, time.UTC), Root: rollout.Unit{
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
		fmt.Println(step.Path, "goes to", step.To)
	}
	for _, hold := range plan.Holds {
		fmt.Println(hold.Message)
	}
	// Output:
	// Progressing
	// rest/c goes to v2
	// b is updating: not ready
	// d is queued (position 1): 2 of 2 allowed unavailable in rest (b is not ready)
}
