package dashboard

import (
	"cmp"
	"slices"
	"time"

	"github.com/spillway-dev/spillway/internal/describe"
	"github.com/spillway-dev/spillway/rollout"
)

// count is how many there are of a ring.
type count struct {
	Ring   string
	Number int
}

func counted(counts []count, ring string) []count {
	i := slices.IndexFunc(counts, func(c count) bool { return c.Ring == ring })
	if i < 0 {
		return append(counts, count{ring, 1})
	}
	counts[i].Number++
	return counts
}

// cause is the unit that keeps others waiting, and those; of those that wait for the same that is no unit, the first.
type cause struct {
	Root *describe.Unit
	// Of is the object that it is a part of.
	Of   describe.Ref
	Held []*describe.Unit
}

// mostHops bounds from one unit to the next that it waits for.
const mostHops = 10

// causes are the units that keep others waiting, the worst first: what has failed before
// what waits, then what keeps most waiting, then what does so for longest.
func causes(units []describe.Unit) []cause {
	rolled := describe.Rolled(units)
	byRef := make(map[describe.Ref]*describe.Unit, len(rolled))
	for i := range rolled {
		byRef[rolled[i].Ref] = &rolled[i]
	}
	var found []cause
	type key struct {
		of, root describe.Ref
		why      rollout.Cause
	}
	at := map[key]int{}
	for i := range rolled {
		u := &rolled[i]
		if !u.IsWaiting() || u.Phase == describe.PhaseReading {
			continue
		}
		of, root := rootOf(u, byRef)
		is := key{of: of, root: root.Ref}
		if root.Why != (rollout.Cause{}) {
			is = key{why: root.Why}
		}
		n, known := at[is]
		if !known {
			n = len(found)
			at[is], found = n, append(found, cause{Root: root, Of: of})
		}
		found[n].Held = append(found[n].Held, u)
	}
	slices.SortStableFunc(found, func(a, b cause) int {
		return cmp.Or(
			cmp.Compare(rank(a.Root.Phase), rank(b.Root.Phase)),
			cmp.Compare(len(b.Held), len(a.Held)),
			since(a.Root).Compare(since(b.Root)),
		)
	})
	return found
}

// rootOf follows what a unit waits for: into its parts, and to other objects.
func rootOf(u *describe.Unit, byRef map[describe.Ref]*describe.Unit) (of describe.Ref, root *describe.Unit) {
	for range mostHops {
		root = deepest(u)
		of = u.Ref
		other := byRef[waitedFor(u, root)]
		if other == nil || other == u || !other.IsWaiting() {
			break
		}
		u = other
	}
	return of, root
}

// waitedFor is what a unit or its part waits for, if that is another object.
func waitedFor(u, part *describe.Unit) describe.Ref {
	for _, ref := range []*describe.Ref{part.WaitsFor, u.WaitsFor} {
		if ref != nil && !slices.Contains(describe.NoObjects, ref.Kind) {
			return *ref
		}
	}
	return describe.Ref{}
}

// deepest is the worst part of a unit that waits, of its worst part, and so on. What waits
// for its turn is no cause.
func deepest(u *describe.Unit) *describe.Unit {
	var worst *describe.Unit
	for i := range u.Units {
		part := &u.Units[i]
		isNext := part.IsWaiting() && part.WaitsFor == nil && part.Reason != rollout.ReasonOrder && part.Reason != rollout.ReasonTurn
		if isNext && (worst == nil || rank(part.Phase) < rank(worst.Phase)) {
			worst = part
		}
	}
	if worst == nil {
		return u
	}
	return deepest(worst)
}

// rank orders phases, the worst first.
func rank(p rollout.Phase) int {
	order := []rollout.Phase{rollout.PhaseFailed, describe.PhaseStalled, rollout.PhaseWaiting, rollout.PhasePaused}
	if i := slices.Index(order, p); i >= 0 {
		return i
	}
	return len(order)
}

func since(u *describe.Unit) time.Time {
	if u.Since == nil {
		return time.Time{}
	}
	return *u.Since
}
