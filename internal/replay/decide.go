package replay

import (
	"slices"
	"sync/atomic"
	"time"

	"github.com/spillway-dev/spillway/rollout"
)

// Decision is one that was recorded.
type Decision struct {
	// Version is that of the program that has decided.
	Version string
	// Of is what it is about, in the words of its ring: "Module clusters/shop".
	Of string
	// Observed is what it was decided from.
	Observed rollout.Observed
	Decided
}

// Decided is what was decided: a plan without its sentences, which a version may word in another way, and without what sums
// it up.
type Decided struct {
	Phase   rollout.Phase
	Steps   []rollout.Step
	Waits   []Wait
	Wake    time.Time
	Acquire *rollout.Lock
	Release bool
}

// Wait is that a unit is not moved.
type Wait struct {
	Path   rollout.Path
	Reason rollout.Reason
	Until  time.Time
}

// decided is what a plan decides.
func decided(p *rollout.Plan) Decided {
	d := Decided{Phase: p.Phase, Steps: p.Steps, Waits: make([]Wait, 0, len(p.Holds)), Wake: p.Wake, Acquire: p.Acquire, Release: p.Release}
	for i := range p.Holds {
		d.Waits = append(d.Waits, Wait{p.Holds[i].Path, p.Holds[i].Reason, p.Holds[i].Until})
	}
	return d
}

// equals reports whether the same was decided.
func (d *Decided) equals(o *Decided) bool {
	lock := func(l *rollout.Lock) rollout.Lock {
		if l == nil {
			return rollout.Lock{}
		}
		return rollout.Lock{Holder: l.Holder, Purpose: l.Purpose, Unit: l.Unit}
	}
	return d.Phase == o.Phase && d.Release == o.Release && d.Wake.Equal(o.Wake) && lock(d.Acquire) == lock(o.Acquire) &&
		slices.EqualFunc(d.Steps, o.Steps, func(a, b rollout.Step) bool {
			return slices.Equal(a.Path, b.Path) && a.From == b.From && a.To == b.To && a.Repair == b.Repair && a.Start == b.Start
		}) &&
		slices.EqualFunc(d.Waits, o.Waits, func(a, b Wait) bool {
			return a.Reason == b.Reason && slices.Equal(a.Path, b.Path) && a.Until.Equal(b.Until)
		})
}

// recording is what records in this process, nil if nothing does.
var recording atomic.Pointer[Recorder]

// Decide is [rollout.Decide] about something, and records it in a manager that records.
func Decide(of string, o rollout.Observed) rollout.Plan {
	r := recording.Load()
	if r == nil {
		return rollout.Decide(o)
	}
	o.Now = o.Now.Round(0) // a record has no monotonic clock, by which times may differ from those of the clock on the wall
	plan := rollout.Decide(o)
	r.add(&Decision{Version: r.options.Version, Of: of, Observed: o, Decided: decided(&plan)})
	return plan
}

// isNews reports whether a decision is another one than the last about the same: one that waits for the same is made in every pass.
func (r *Recorder) isNews(d *Decision) bool {
	if last, known := r.last[d.Of]; known && last.equals(&d.Decided) {
		return false
	}
	r.last[d.Of] = d.Decided
	return true
}
