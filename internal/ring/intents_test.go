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
	object string
	at     metav1.MicroTime
	state  ring.State
	putOff bool
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
	fresh, late, never := time.Second, ring.ActWithin, 1000*time.Hour
	for _, c := range []struct {
		name                                string
		state                               ring.State
		age                                 time.Duration
		live                                bool
		kept, due, renewed, unclear, fenced bool
	}{
		{name: "ended", state: ring.Ended, age: fresh},
		{name: "underway", state: ring.Underway, age: never, live: true, kept: true},
		{name: "wanted, in time", state: ring.Wanted, age: fresh, kept: true, due: true},
		{name: "wanted, too late to act", state: ring.Wanted, age: late, kept: true, renewed: true},
		{name: "wanted, long ago", state: ring.Wanted, age: never, live: true, kept: true, renewed: true},
		{name: "underway, by a cache", state: ring.Underway, age: never, kept: true},
		{name: "unwanted, by a cache", state: ring.Unwanted, age: fresh, kept: true, fenced: true},
		{name: "unwanted", state: ring.Unwanted, age: fresh, live: true, kept: true, fenced: true},
		{name: "unwanted, long ago: a request may be on the wire", state: ring.Unwanted, age: never, live: true, kept: true, fenced: true},
		{name: "unseen", state: ring.Unseen, age: never, kept: true, unclear: true},
		{name: "unseen, live", state: ring.Unseen, age: fresh, live: true},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			x := intentsOf(c.live, one("a", c.state, c.age))
			_, renewed := x.Permit(nil)
			got := [5]bool{len(x.Kept()) == 1, len(x.Due()) == 1, renewed, x.Unverified(), len(x.Fences()) == 1}
			if got != [5]bool{c.kept, c.due, c.renewed, c.unclear, c.fenced} {
				t.Errorf("kept, due, renewed, unverified, fenced: %v", got)
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

func TestPermitReplaces(t *testing.T) {
	t.Parallel()
	x := intentsOf(false, one("a", ring.Underway, time.Hour), one("b", ring.Unwanted, 0))
	intents, permits := x.Permit([]intent{one("a", ring.Wanted, 0)})
	names := make([]string, len(intents))
	for i := range intents {
		names[i] = intents[i].object
	}
	if !permits || !slices.Equal(names, []string{"b", "a"}) || intents[1].state != ring.Wanted {
		t.Errorf("%v: %+v", permits, intents)
	}
}

// One that is put off is neither acted upon nor permitted again. Nor is it withdrawn, and
// until it is, it counts.
func TestWhatIsPutOffWaits(t *testing.T) {
	t.Parallel()
	soon, late, unwanted := one("a", ring.Wanted, 0), one("b", ring.Wanted, ring.ActWithin), one("c", ring.Unwanted, time.Hour)
	soon.putOff, late.putOff, unwanted.putOff = true, true, true
	x := intentsOf(true, soon, late, unwanted)
	if _, permits := x.Permit(nil); permits || len(x.Due()) > 0 || len(x.Fences()) > 0 || len(x.Kept()) != 3 {
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
		{one("a", ring.Wanted, ring.ActWithin), time.Time{}},
		{one("a", ring.Unwanted, ring.ActWithin), time.Time{}},
		{one("a", ring.Underway, time.Second), time.Time{}},
		{one("a", ring.Ended, time.Second), time.Time{}},
	} {
		if got := intentsOf(false, c.intent).Wake(); !got.Equal(c.want) {
			t.Errorf("%+v: %s, want %s", c.intent, got, c.want)
		}
	}
}
