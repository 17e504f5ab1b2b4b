package decision

import (
	"reflect"
	"strings"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/types"

	"github.com/spillway-dev/spillway/internal/plans/account"
	"github.com/spillway-dev/spillway/internal/plans/execution"
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

// What nothing watches is read again soon after a step has begun, then ever later, and seldom
// while no plan is running.
func TestWhatNothingWatchesIsReadAgain(t *testing.T) {
	w := newWorld(t, simple)
	w.unhealthy["app"] = true
	for range 20 {
		w.pass()
	}
	for after, want := range map[time.Duration]time.Duration{0: 2 * time.Second, time.Minute: 30 * time.Second, time.Hour: 5 * time.Minute} {
		o, d := w.decide()
		o.Now = execution.LastStart(d.Status.PlanStatus["deploy"].Phases).Add(after)
		if d = Decide(&o); after > 0 && !d.Wake.IsZero() {
			t.Errorf("%s after the step has begun what is watched is read again at %s", after, d.Wake)
		}
		o.Unwatched = true
		if d = Decide(&o); d.Wake.Sub(o.Now) != want {
			t.Errorf("%s after the step has begun it is read again after %s, want %s", after, d.Wake.Sub(o.Now), want)
		}
	}
	w = newWorld(t, simple)
	for range 20 {
		w.pass()
	}
	o, _ := w.decide()
	if o.Unwatched = true; Decide(&o).Wake.Sub(o.Now) != 5*time.Minute || w.plans() != "deploy Complete" {
		t.Errorf("%s, and it is read again after %s", w.plans(), Decide(&o).Wake.Sub(o.Now))
	}
}

// An account that cannot exist stalls the Instance, or blocks its plan: nothing is asked for as it.
func TestAnAccountThatCannotExist(t *testing.T) {
	w := newWorld(t, simple)
	for range 20 {
		o := w.observe()
		o.Account = account.Account{NamespacedName: types.NamespacedName{Namespace: "shop", Name: "default:default"}}
		d := Decide(&o)
		if !d.Needs.IsEmpty() || len(d.Writes) > 0 || d.Status.Execution != nil && d.Status.Execution.Touched {
			t.Fatalf("it reads %v, and writes %v", d.Needs, d.Writes)
		}
		if got := d.Status.WaitingFor; !strings.Contains(got, `spec.serviceAccountName: invalid value "default:default"`) {
			t.Fatal(got)
		}
	}
	w.unhealthy["app"] = true
	for range 2 { // and while a plan runs
		w.pass()
	}
	o := w.observe()
	o.Account.Name = "a/b"
	if d := Decide(&o); o.Instance.Status.Running() == nil || len(d.Writes) > 0 || !strings.Contains(d.Status.WaitingFor, `spec.serviceAccountName: invalid value "a/b"`) {
		t.Errorf("%+v", d)
	}
}
