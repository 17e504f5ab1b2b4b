package sim

import (
	"testing"

	"github.com/spillway-dev/spillway/rollout"
)

// rules are those that an actor keeps to; the others than allRules are broken on purpose.
type rules struct {
	// change is what an actor believes instead of what it has observed.
	change func(v state, o *rollout.Observed)
	// unconditional writes carry no version.
	unconditional bool
	// overwrites the status even if another actor has written it meanwhile.
	overwrites bool
}

func allRules() *rules { return &rules{change: func(state, *rollout.Observed) {}} }

// blind sees each unit as the change makes it.
func blind(change func(u *rollout.Unit)) *rules {
	var each func(u *rollout.Unit)
	each = func(u *rollout.Unit) {
		change(u)

		for i := range u.Children {
			each(&u.Children[i])
		}
	}

	return &rules{change: func(_ state, o *rollout.Observed) { each(&o.Root) }}
}

// broken are all rules but one.
func broken() map[string]*rules {
	none := allRules().change

	return map[string]*rules{
		"writes carry no version":                {change: none, unconditional: true},
		"the status is written unconditionally":  {change: none, overwrites: true},
		"intents are not seen":                   {change: forgetIntents},
		"a removal that is intended counts not":  {change: forgetRemovals},
		"every unit is taken for healthy":        blind(func(u *rollout.Unit) { u.Leaf.Health = rollout.Healthy }),
		"what is being removed counts as gone":   blind(takeForGone),
		"removals need no approval":              blind(func(u *rollout.Unit) { u.Policy.MaxRemoved = rollout.Limit{} }),
		"any approval is for all":                blind(approveAll),
		"what is removed counts against nothing": blind(takeRemovalsForUpdates),
		"one more may be down":                   blind(widen),
		"budgets are not shared":                 blind(func(u *rollout.Unit) { u.Policy.Budget = "" }),
		"nothing starts as a whole":              blind(func(u *rollout.Unit) { u.Whole = nil }),
		"a pause is none":                        blind(func(u *rollout.Unit) { u.Pause = nil }),
		"a block is none":                        blind(func(u *rollout.Unit) { u.Block = nil }),
		"gates are open":                         blind(func(u *rollout.Unit) { u.Gates = nil }),
		"nothing soaks":                          blind(func(u *rollout.Unit) { u.Policy.Soak = 0 }),
		"there is no rate":                       blind(func(u *rollout.Unit) { u.Policy.Rate = rollout.Rate{} }),
		"there is no order":                      blind(func(u *rollout.Unit) { u.Policy.Order = rollout.Parallel }),
		"the lock is free":                       blind(freeLock),
	}
}

// forgetIntents sees the leaves as they are, whatever is about to be done to them.
func forgetIntents(v state, o *rollout.Observed) {
	v.status.intents = nil
	*o = observe(v)
}

// forgetRemovals sees a leaf of which a removal is intended as one that is down alone.
func forgetRemovals(v state, o *rollout.Observed) {
	shown := state{root: o.Root}
	shown.eachLeaf(func(path string, u *rollout.Unit) { u.Leaf.Current = v.leaf(path).Leaf.Current })
}

func takeForGone(u *rollout.Unit) {
	if u.Leaf.Current == rollout.Removed {
		u.Leaf.Health = rollout.Healthy
	}
}

func approveAll(u *rollout.Unit) {
	if u.Policy.RemovalsApproved > 0 {
		u.Policy.RemovalsApproved = 100
	}
}

// takeRemovalsForUpdates makes the name of the removed one of a revision.
func takeRemovalsForUpdates(u *rollout.Unit) {
	if u.Leaf.Target == rollout.Removed && u.Leaf.Current != rollout.Removed {
		u.Leaf.Health = rollout.Degraded
	}
}

func widen(u *rollout.Unit) {
	if limit := &u.Policy.MaxUnavailable; limit.Set && !limit.Percent {
		limit.Value++
	}
}

func freeLock(u *rollout.Unit) {
	if u.Lock != nil {
		*u.Lock = rollout.Lock{}
	}
}

// noticed are worlds that have noticed before that a rule was broken which most do not
// notice.
var noticed = map[string]uint64{"a removal that is intended counts not": 2650}

// TestBrokenRulesAreSeen breaks each rule in turn. If no world notices, either the oracle
// is blind, or the worlds too tame, or the rule is none.
func TestBrokenRulesAreSeen(t *testing.T) {
	const worlds = 4000

	for name, r := range broken() {
		t.Run(name, func(t *testing.T) {
			t.Parallel()

			for seed := noticed[name]; seed <= worlds; seed++ {
				if s := playBy(seed, r); len(s.oracle.violations) > 0 {
					t.Logf("seed %d: %s", seed, s.oracle.violations[0])

					return
				}
			}

			t.Errorf("none of %d worlds notices", worlds)
		})
	}
}
