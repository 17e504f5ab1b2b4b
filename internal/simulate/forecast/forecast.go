// Package forecast says how the rollouts go on that are under way, by running the rings on the
// present state, and how they would if something happened.
package forecast

import (
	"cmp"
	"context"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/spillway-dev/spillway/internal/config/workload"
	"github.com/spillway-dev/spillway/internal/describe"
	"github.com/spillway-dev/spillway/internal/simulate"
	"github.com/spillway-dev/spillway/internal/simulate/record"
	"github.com/spillway-dev/spillway/internal/simulate/world"
)

// Outlook is how the rollouts that are under way go on.
type Outlook struct {
	// At is the moment from which on they are foreseen.
	At time.Time `json:"at"`
	// Rollouts are by ring, namespace and object.
	Rollouts []Course `json:"rollouts"`
}

// Course is how one rollout goes on.
type Course struct {
	Ring      string `json:"ring"`
	Namespace string `json:"namespace"`
	// Object is what is rolled out, "rolloutgroup/ingester".
	Object string `json:"object"`
	// Steps are those that remain, in the order in which they are expected.
	Steps []Coming `json:"steps"`
	// Ends is when it is complete; nil if it does not come to its end.
	Ends *describe.Range `json:"ends,omitempty"`
	// Decides is the unit that takes longest of those that come last; empty if none moves.
	Decides string `json:"decides,omitempty"`
	// Waits is for what it waits that nothing ends; nil if it comes to its end.
	Waits *record.Wait `json:"waits,omitempty"`
}

// Coming is a step that is expected.
type Coming struct {
	record.Step

	// When is when it begins.
	When describe.Range `json:"when"`
}

// Of says how the rollouts go on that are under way in o.Present, by running the rings
// on it. Pods take as long as the present ones took; where there are none, as long as
// o.Readiness says. Nothing is written to a cluster.
//
// The rings run three times: as expected, with the shortest of these times, and with the
// longest.
func Of(ctx context.Context, o simulate.Options, suppositions ...Supposition) (Outlook, error) {
	seen := durationsIn(o.Present)
	var runs [3]*played
	for i, p := range [...]pick{expected, shortest, longest} {
		this := o
		this.Readiness = seen.readiness(o.Readiness, p)
		if p == shortest && o.Stop == nil {
			this.Stop = new(time.Duration)
		}
		run, err := play(ctx, this, suppositions)
		if err != nil {
			return Outlook{}, err
		}
		runs[i] = run
	}
	return outlook(runs[0], runs[1], runs[2]), nil
}

// Answer is a forecast, and beside it another one for what may happen.
type Answer struct {
	Outlook

	// If is what would happen with what is supposed; nil if nothing is.
	If *Alternative `json:"if,omitempty"`
}

// Alternative is how rollouts would go on.
type Alternative struct {
	Suppositions []string `json:"suppositions"`
	Rollouts     []Course `json:"rollouts"`
}

// Compare foresees one object, or all if it is empty, as [Of] does: as things are, and if
// something happened that is supposed.
func Compare(ctx context.Context, o simulate.Options, object string, suppositions []Supposition) (Answer, error) {
	plain, err := Of(ctx, o)
	if err != nil {
		return Answer{}, err
	}
	answer := Answer{Outlook: plain}
	answer.Rollouts = about(object, plain.Rollouts)
	if len(suppositions) == 0 {
		return answer, nil
	}
	other, err := Of(ctx, o, suppositions...)
	if err != nil {
		return answer, err
	}
	answer.If = &Alternative{Rollouts: about(object, other.Rollouts)}
	for _, s := range suppositions {
		answer.If.Suppositions = append(answer.If.Suppositions, s.String())
	}
	return answer, nil
}

// about are the rollouts of an object, all if it is empty.
func about(object string, all []Course) []Course {
	return slices.DeleteFunc(all, func(c Course) bool { return object != "" && c.Object != object })
}

// played is a simulation that has come to its end.
type played struct {
	simulate.Continued

	readiness world.Readiness
	// steps are those of each rollout, and moments when those with the same text begin.
	steps   map[simulate.Rollout][]record.Step
	moments map[occasion][]time.Time
}

// occasion is a step of a rollout, by its text.
type occasion struct {
	simulate.Rollout

	text string
}

func play(ctx context.Context, o simulate.Options, suppositions []Supposition) (*played, error) {
	if err := suppose(&o, suppositions); err != nil {
		return nil, err
	}
	c, err := simulate.Continue(ctx, o)
	if err != nil {
		return nil, err
	}
	p := &played{Continued: c, readiness: o.Readiness, steps: map[simulate.Rollout][]record.Step{}, moments: map[occasion][]time.Time{}}
	for _, step := range c.Steps {
		r := simulate.Rollout{Ring: step.Ring, Namespace: step.Namespace, Object: step.Object}
		p.steps[r] = append(p.steps[r], step)
		of := occasion{r, step.String()}
		p.moments[of] = append(p.moments[of], p.at(step))
	}
	return p, checkSupposed(&c, suppositions)
}

func outlook(p, early, late *played) Outlook {
	o := Outlook{At: p.Started, Rollouts: []Course{}}
	for c := range p.courses() {
		o.Rollouts = append(o.Rollouts, p.foresee(c, early, late))
	}
	slices.SortFunc(o.Rollouts, func(a, b Course) int {
		return cmp.Or(cmp.Compare(a.Ring, b.Ring), cmp.Compare(a.Namespace, b.Namespace), cmp.Compare(a.Object, b.Object))
	})
	return o
}

// courses are the rollouts of the rings that were under way, or begin.
func (p *played) courses() map[simulate.Rollout]bool {
	all := map[simulate.Rollout]bool{}
	for at := range p.Ends {
		all[at] = true
	}
	for at := range p.steps {
		all[at] = true
	}
	for i := range p.Waiting {
		all[simulate.RolloutOf(&p.Waiting[i])] = true
	}
	maps.DeleteFunc(all, func(c simulate.Rollout, _ bool) bool { return c.Ring == record.Kubernetes })
	return all
}

func (p *played) foresee(c simulate.Rollout, early, late *played) Course {
	known := Course{Ring: c.Ring, Namespace: c.Namespace, Object: c.Object, Steps: []Coming{}}
	count, last := map[string]int{}, time.Time{}
	for _, step := range p.steps[c] {
		of := occasion{c, step.String()}
		when := rangeOf(p.at(step), early.when(of, count[of.text]), late.when(of, count[of.text]))
		count[of.text]++
		known.Steps = append(known.Steps, Coming{Step: step, When: when})
		if until := p.at(step).Add(p.takes(&step)); !until.Before(last) {
			known.Decides, last = cmp.Or(step.Unit, step.Object), until
		}
	}
	ends, ok := p.Ends[c]
	if i := slices.IndexFunc(p.Waiting, func(w record.Wait) bool { return simulate.RolloutOf(&w) == c }); i >= 0 {
		known.Waits = &p.Waiting[i]
	} else if ok {
		known.Ends = new(rangeOf(ends, early.Ends[c], late.Ends[c]))
	}
	return known
}

func (p *played) at(s record.Step) time.Time { return p.Started.Add(time.Duration(s.At)) }

// when is the moment of the n-th such step, zero if there is none.
func (p *played) when(of occasion, n int) time.Time {
	if moments := p.moments[of]; n < len(moments) {
		return moments[n]
	}
	return time.Time{}
}

// takes is how long what a step moves takes until it is ready.
func (p *played) takes(s *record.Step) time.Duration {
	return max(0, p.readiness.For(movedBy(s)))
}

// rangeOf is a range from moments of which zero is not known.
func rangeOf(expected, early, late time.Time) describe.Range {
	r := describe.Range{Earliest: expected, Expected: expected, Latest: expected}
	for _, at := range []time.Time{early, late} {
		if !at.IsZero() && at.Before(r.Earliest) {
			r.Earliest = at
		}
		if at.After(r.Latest) {
			r.Latest = at
		}
	}
	return r
}

// movedBy is what a step makes take its time: the workload of a Pod, a workload, a cluster.
func movedBy(s *record.Step) (kind, name string) {
	switch zone, _, _ := strings.Cut(s.Unit, "/"); s.Ring {
	case record.RingZones:
		return workload.StatefulSet, zone
	case record.RingFleet:
		return "cluster", s.Unit
	default:
		kind, name, _ := strings.Cut(s.Object, "/")
		return kind, name
	}
}
