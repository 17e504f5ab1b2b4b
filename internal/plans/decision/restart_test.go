package decision

import (
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// stopping is a manager that stops at its n-th write: before it is made, or after.
type stopping struct {
	*world

	left  int
	after bool
}

// write makes a write unless the manager stops at it; true if it stops there.
func (s *stopping) write(do func()) bool {
	s.left--
	if s.left == 0 && !s.after {
		return true
	}
	do()
	return s.left == 0
}

// pass is a pass of a manager that may stop in it. What it had in memory is then
// lost.
func (s *stopping) pass() bool {
	o, p := s.decide()
	stops := false
	if p.Changes {
		stops = s.write(func() { s.writeStatus(o, p) })
	}
	for _, write := range p.Writes {
		if !stops {
			stops = s.write(func() { s.do(write) })
		}
	}
	if stops {
		clear(s.refusals)
	}
	ripen(s.world)
	return p.Changes || len(p.Writes) > 0
}

func ripen(w *world) { (&simulation{world: w}).ripen() }

// deployed lets a manager deploy the package of twelve steps, and stop once.
func deployed(t *testing.T, stopAt int, after bool) (*stopping, int) {
	t.Helper()
	s := &stopping{world: newWorld(t, fmt.Sprintf(twelve, "1")), left: stopAt, after: after}
	s.install(t, "db-1", simple)
	for range 200 {
		if !s.pass() {
			return s, stopAt - s.left
		}
	}
	t.Fatalf("stopped at write %d, it never comes to rest: %s", stopAt, s.waitsFor())
	return nil, 0
}

// TestStoppedAtEveryWrite: the end is the same, and each object was created once.
func TestStoppedAtEveryWrite(t *testing.T) {
	undisturbed, writes := deployed(t, 1_000_000, false)
	if undisturbed.plans() != "deploy Complete" || writes < 20 {
		t.Fatalf("%d writes: %s; %s", writes, undisturbed.plans(), undisturbed.waitsFor())
	}
	for n := 1; n <= writes; n++ {
		for _, after := range []bool{false, true} {
			s, _ := deployed(t, n, after)
			if diff := cmp.Diff(contents(undisturbed.world), contents(s.world)); diff != "" {
				t.Errorf("stopped at write %d, after it: %v: the end differs:\n%s", n, after, diff)
			}
			if diff := cmp.Diff(created(undisturbed.story), created(s.story)); diff != "" {
				t.Errorf("stopped at write %d, after it: %v: created differs:\n%s", n, after, diff)
			}
			if s.plans() != "deploy Complete" {
				t.Errorf("stopped at write %d, after it: %v: ran %s", n, after, s.plans())
			}
		}
	}
}

// created are the objects that were created, and how often.
func created(story []string) map[string]int {
	all := map[string]int{}
	for _, line := range story {
		if strings.HasPrefix(line, "create ") {
			all[line]++
		}
	}
	return all
}

// TestStatusThatCannotBeWritten: while it cannot, nothing is done; then everything.
func TestStatusThatCannotBeWritten(t *testing.T) {
	w := newWorld(t, simple)
	w.sealed = true
	for range 5 {
		w.pass()
	}
	if len(w.objects) > 0 {
		t.Error("something was done that no status permits")
	}
	w.sealed = false
	w.settle(t)
	if w.plans() != "deploy Complete" {
		t.Error(w.plans())
	}
}

// TestWhatAPlanCosts: one apply for each object, one status for each transition.
func TestWhatAPlanCosts(t *testing.T) {
	w := newWorld(t, fourSteps("serial", "serial", ""))
	w.settle(t)
	if len(w.story) != 4 || w.statuses != 5 {
		t.Errorf("%d applies and %d statuses for 4 steps", len(w.story), w.statuses)
	}
}
