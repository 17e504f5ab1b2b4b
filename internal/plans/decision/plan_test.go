package decision

import (
	"reflect"
	"testing"
)

// As long as something must be read first, nothing is decided: no plan has begun, nothing is
// written, and no content is kept for it.
func TestNothingIsDecidedBeforeEverythingIsRead(t *testing.T) {
	w := newWorld(t, simple)
	reads := 0
	for range 20 {
		o := w.observe()
		for {
			d := Decide(&o)
			if d.Needs.IsEmpty() {
				break
			}
			reads++
			if want := (Decision{Needs: d.Needs, MayPin: d.MayPin, Status: o.Instance.Status}); !reflect.DeepEqual(d, want) {
				t.Fatalf("before it has read %v it decides %+v", d.Needs, d)
			}
			w.look(&o, d.Needs)
		}
		w.pass()
	}
	if reads == 0 || w.plans() != "deploy Complete" {
		t.Errorf("%d reads, plans: %s", reads, w.plans())
	}
}

// Content is kept for a plan that begins, and for nothing else: the status that names it is
// written in the same pass.
func TestContentIsKeptOnlyWithTheStatusThatNamesIt(t *testing.T) {
	w := newWorld(t, simple)
	kept := 0
	for _, color := range []string{"red", "blue", "green"} {
		w.set(parameters("COLOR", color))
		for range 20 {
			_, d := w.decide()
			if d.Pin != nil {
				kept++
				if e := d.Status.Execution; !d.Changes || e == nil || e.ContentHash != d.Pin.Hash {
					t.Fatalf("%s is kept for the execution %+v (the status changes: %t)", d.Pin.Hash, e, d.Changes)
				}
			}
			w.pass()
		}
	}
	if kept != 3 || w.plans() != "deploy Complete, paint Complete, paint Complete" {
		t.Errorf("content was kept %d times, plans: %s", kept, w.plans())
	}
}
