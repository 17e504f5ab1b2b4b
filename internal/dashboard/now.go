package dashboard

import (
	"cmp"
	"html/template"
	"net/http"
	"slices"
	"strings"
	"time"

	"github.com/spillway-dev/spillway/internal/describe"
	"github.com/spillway-dev/spillway/rollout"
)

// nowView is what moves and what waits.
type nowView struct {
	seen
	*sorted

	// ListsAll is true if everything was asked for, however much it is.
	ListsAll bool
}

// now is the page of all rollouts.
func (p *viewer) now(r *http.Request) (*view, error) {
	s := p.all(r)
	if s.At.IsZero() && s.Err != nil { // there is nothing to show yet
		return nil, s.Err
	}
	v := nowView{seen: s, sorted: p.sorted(&s), ListsAll: r.URL.Query().Has("all")}
	shared := "first"
	if v.ListsAll {
		shared = "all"
	}
	return &view{file: "now", Title: "Now", Version: s.Version, NoManager: s.Description.NoManager, value: s.Description, shared: shared, Of: &v}, nil
}

// all is what was seen, for a page that lists all of it: a program gets it once that is whole, a
// person also before.
func (p *viewer) all(r *http.Request) seen {
	if p.showsParts(r) {
		return p.live.soon()
	}
	return p.live.current()
}

// sorted is what was seen, by whether it moves.
type sorted struct {
	// version is that of what was seen.
	version int

	Waiting []cause
	Moving  []describe.Unit
	// Complete is how many are complete, by ring; All are they.
	Complete []count
	All      []describe.Unit
	// Paused are complete, and their next change waits until they are resumed.
	Paused []describe.Unit
	// Unread are those that are known to exist, and whose state is not known yet.
	Unread []describe.Unit
}

// sorted sorts what was seen: once for all windows.
func (p *viewer) sorted(s *seen) *sorted {
	p.sorting.Lock()
	defer p.sorting.Unlock()
	if p.last == nil || p.last.version != s.Version {
		p.last = sortOut(s)
	}
	return p.last
}

func sortOut(s *seen) *sorted {
	of := &sorted{version: s.Version, Waiting: causes(s.Description.Units)}
	for _, u := range describe.Rolled(s.Description.Units) {
		switch {
		case u.Phase == describe.PhaseReading:
			of.Unread = append(of.Unread, u)
		case u.IsComplete():
			of.Complete, of.All = counted(of.Complete, u.Ring), append(of.All, u)
		case !u.IsWaiting():
			of.Moving = append(of.Moving, u)
		}
	}
	for _, u := range s.Description.Units {
		if u.Paused {
			of.Paused = append(of.Paused, u)
		}
	}
	return of
}

// Path is the address of the page.
func (v *nowView) Path() string {
	if v.ListsAll {
		return "/?all"
	}
	return "/"
}

// listed is how much of a kind is listed, unless all is asked for.
const listed = 100

// First returns how many of n are listed.
func (v *nowView) First(n int) int { return n - v.More(n) }

// More returns how many of n are not listed.
func (v *nowView) More(n int) int {
	if v.ListsAll {
		return 0
	}
	return max(0, n-listed)
}

// waiting is a cause as the page shows it, with those that it keeps waiting besides itself.
type waiting struct {
	Phase     template.HTML
	Sentence  string
	Object    link
	Namespace string
	Since     template.HTML
	// ID tells it apart on the page.
	ID string
	// Held are the first of Number; More are not among them.
	Held         []link
	Number, More int
}

// heldListed is how much of what a cause keeps waiting is listed.
const heldListed = 20

func waitingOf(now time.Time, all []cause) []waiting {
	shown := make([]waiting, len(all))
	for i := range all {
		c := &all[i]
		w := waiting{Phase: badge(c.Root.Phase), Sentence: sentence(c.Root), Object: linkTo("why", c.Of), Namespace: c.Of.Namespace, Since: ago(now, c.Root.Since)}
		if len(c.Held) > 1 || c.Held[0].Ref != c.Of {
			w.ID, w.Number, w.More = c.Of.Namespace+"-"+c.Of.String()+"-"+c.Root.Name, len(c.Held), max(0, len(c.Held)-heldListed)
			for _, u := range c.Held[:w.Number-w.More] {
				w.Held = append(w.Held, linkTo("why", u.Ref))
			}
		}
		shown[i] = w
	}
	return shown
}

// sentence is what is said of a unit, of the first of its parts that waits if it says nothing.
func sentence(u *describe.Unit) string {
	if u.Sentence != "" {
		return u.Sentence
	}
	for i := range u.Units {
		if u.Units[i].IsWaiting() {
			return sentence(&u.Units[i])
		}
	}
	return u.String() + " is " + strings.ToLower(string(u.Phase))
}

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
