package ring_test

import (
	"slices"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/spillway-dev/spillway/internal/ring"
)

var noon = time.Date(2026, 1, 1, 12, 0, 0, 0, time.UTC)

// intent is one as simple as can be: its state is part of it.
type intent struct {
	object    string
	at        metav1.MicroTime
	state     ring.State
	putOff    bool
	withdrawn bool
}

// one is an intent of this age.
func one(object string, state ring.State, age time.Duration) intent {
	return intent{object: object, at: metav1.NewMicroTime(noon.Add(-age)), state: state}
}

func intentsOf(live bool, written ...intent) *ring.Intents[intent] {
	return &ring.Intents[intent]{
		Now: noon, Live: live, Written: written,
		At:     func(i *intent) *metav1.MicroTime { return &i.at },
		State:  func(i *intent) ring.State { return i.state },
		PutOff: func(i *intent) bool { return i.putOff },
		Same:   func(a, b *intent) bool { return a.object == b.object },
	}
}

// What becomes of an intent follows from its state, its age, and whether the view is
// live.
func TestIntents(t *testing.T) {
	t.Parallel()
	fresh, late, over := time.Second, ring.ActWithin, ring.WithdrawAfter
	for _, c := range []struct {
		name                        string
		state                       ring.State
		age                         time.Duration
		live                        bool
		kept, due, renewed, unclear bool
	}{
		{name: "ended", state: ring.Ended, age: fresh},
		{name: "underway", state: ring.Underway, age: over, live: true, kept: true},
		{name: "wanted, in time", state: ring.Wanted, age: fresh, kept: true, due: true},
		{name: "wanted, too late to act", state: ring.Wanted, age: late, kept: true, renewed: true},
		{name: "wanted, over", state: ring.Wanted, age: over, live: true, kept: true, renewed: true},
		{name: "wanted, over, by a cache", state: ring.Wanted, age: over, kept: true, renewed: true},
		{name: "underway, over, by a cache", state: ring.Underway, age: over, kept: true},
		{name: "unwanted, in time, by a cache", state: ring.Unwanted, age: fresh, kept: true},
		{name: "unwanted, in time", state: ring.Unwanted, age: fresh, live: true, kept: true},
		{name: "unwanted, a request may be on the wire", state: ring.Unwanted, age: late, live: true, kept: true},
		{name: "unwanted, over, by a cache", state: ring.Unwanted, age: over, kept: true, unclear: true},
		{name: "unwanted, over", state: ring.Unwanted, age: over, live: true},
		{name: "unseen", state: ring.Unseen, age: fresh, kept: true, unclear: true},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			x := intentsOf(c.live, one("a", c.state, c.age))
			_, renewed := x.Permit(nil)
			if got := [4]bool{len(x.Kept()) == 1, len(x.Due()) == 1, renewed, x.Unverified()}; got != [4]bool{c.kept, c.due, c.renewed, c.unclear} {
				t.Errorf("kept, due, renewed, unverified: %v", got)
			}
		})
	}
}

func TestPermitNotesTheTimeOfWhatIsRenewed(t *testing.T) {
	t.Parallel()
	x := intentsOf(false, one("a", ring.Wanted, ring.ActWithin))
	intents, permits := x.Permit(nil)
	if !permits || !intents[0].at.Time.Equal(noon) {
		t.Errorf("renewed: %v at %s", permits, intents[0].at)
	}
	if x.Written[0].at.Time.Equal(noon) {
		t.Error("what was read has changed")
	}
	x.Renew = func(i *intent) { i.object += " of " + i.at.Format(time.TimeOnly) }
	if intents, _ = x.Permit(nil); intents[0].object != "a of "+noon.Format(time.TimeOnly) {
		t.Errorf("renewed: %s", intents[0].object)
	}
}

func TestPermitReplacesAndWithdraws(t *testing.T) {
	t.Parallel()
	x := intentsOf(false, one("a", ring.Underway, time.Hour), one("b", ring.Unwanted, 0))
	x.Withdraw = func(i *intent) { i.withdrawn = i.state == ring.Unwanted }
	intents, permits := x.Permit([]intent{one("a", ring.Wanted, 0)})
	names := make([]string, len(intents))
	for i := range intents {
		names[i] = intents[i].object
	}
	if !permits || !slices.Equal(names, []string{"b", "a"}) || !intents[0].withdrawn || intents[1].state != ring.Wanted {
		t.Errorf("%v: %+v", permits, intents)
	}
}

// One that is put off is neither acted upon nor permitted again.
func TestWhatIsPutOffWaits(t *testing.T) {
	t.Parallel()
	soon, late := one("a", ring.Wanted, 0), one("b", ring.Wanted, ring.ActWithin)
	soon.putOff, late.putOff = true, true
	x := intentsOf(false, soon, late)
	if _, permits := x.Permit(nil); permits || len(x.Due()) > 0 || len(x.Kept()) != 2 {
		t.Errorf("permits: %v, due: %v, kept: %v", permits, x.Due(), x.Kept())
	}
}

func TestIntentsWake(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		intent intent
		want   time.Time
	}{
		{one("a", ring.Wanted, time.Second), noon.Add(ring.ActWithin - time.Second)},
		{one("a", ring.Unwanted, ring.ActWithin), noon.Add(ring.WithdrawAfter - ring.ActWithin)},
		{one("a", ring.Unwanted, ring.WithdrawAfter), time.Time{}},
		{one("a", ring.Underway, time.Second), time.Time{}},
		{one("a", ring.Ended, time.Second), time.Time{}},
	} {
		if got := intentsOf(false, c.intent).Wake(); !got.Equal(c.want) {
			t.Errorf("%+v: %s, want %s", c.intent, got, c.want)
		}
	}
}
