package prove

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"slices"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/spillway-dev/spillway/api/spillway/v1alpha1"
	"github.com/spillway-dev/spillway/internal/simulate"
	"github.com/spillway-dev/spillway/internal/simulate/record"
	"github.com/spillway-dev/spillway/internal/simulate/world"
)

// Options are what is explored.
type Options struct {
	simulate.Options

	// Base is what runs, Change what is applied over it.
	Base, Change []*unstructured.Unstructured
	// Rules are those of the user, in addition to [Rules].
	Rules []*UserRule
	// Failures is how many things may go wrong, one after the other. Two and more are explored as
	// far as time allows, which is seldom to the end.
	Failures int
	// Exhaustive explores everything in one world, visits states again, and has each unit fail: what is found without that must be the
	// same.
	Exhaustive bool
	// Over reports whether the exploration is to end before it is complete; nil lets it be.
	Over func() bool
	// Progress receives how many states were visited, often; it may be nil.
	Progress func(states int)

	// stricter is by how much fewer may be unavailable than it says, so that correct code breaks rules.
	stricter int
}

// Report is the result of an exploration.
type Report struct {
	// Complete reports whether every state was visited that the failures reach. Otherwise time has
	// ended the exploration.
	Complete bool `json:"complete"`
	// States is how many different states were visited, and Transitions how often one led to
	// another.
	States      int `json:"states"`
	Transitions int `json:"transitions"`
	// Failures is how many single failures were tried, by what they are.
	Failures map[Failure]int `json:"failures"`
	// Parts is how many parts the change has that have nothing to do with each other, Kinds how many of them differ in more
	// than names: one of each kind is explored.
	Parts int `json:"parts"`
	Kinds int `json:"kinds"`
	// Units is how many units the change updates.
	Units int `json:"units"`
	// Gates are those that the change reaches, and that pass.
	Gates []string `json:"gates,omitempty"`
	// Reach is how far a bad version gets, for each rollout of more than one unit.
	Reach []Reach `json:"reach"`
	// Stops is in how many different final states a rollout waits for a person, by the reason.
	Stops map[string]int `json:"stops,omitempty"`
	// Counterexamples are the rules that are broken, each with the shortest path to it.
	Counterexamples []Counterexample `json:"counterexamples"`
}

// Reach is how far a bad version gets.
type Reach struct {
	Rollout   string `json:"rollout"`
	Namespace string `json:"namespace"`
	// Bad is how it is bad.
	Bad Badness `json:"bad"`
	// Reached is how many of Units get it, until the rollout stops.
	Reached int `json:"reached"`
	Units   int `json:"units"`
}

// Counterexample is a rule that is broken.
type Counterexample struct {
	Rule      string `json:"rule"`
	Object    string `json:"object"`
	Namespace string `json:"namespace"`
	// Sentence says what happens, Action what prevents it.
	Sentence string `json:"sentence"`
	Action   string `json:"action,omitempty"`
	// Verified says what was explored of the action, empty if it was not.
	Verified string `json:"verified,omitempty"`
	// Alike is how many parts of the change are equal to the one that it is about, but for names; that one is among them.
	Alike int `json:"alike,omitempty"`
	// Timeline has everything until then.
	Timeline []Line `json:"timeline"`

	// failures and moments are how long the path is.
	failures, moments int
}

// Line is a line of a timeline.
type Line struct {
	At record.Offset `json:"at"`
	// Failure is true of what goes wrong; everything else is a step.
	Failure bool   `json:"failure,omitempty"`
	Ring    string `json:"ring,omitempty"`
	Text    string `json:"text"`
}

// Run explores a change.
func Run(ctx context.Context, o Options) (*Report, error) {
	if len(o.Change) == 0 {
		o.Base, o.Change = nil, o.Base
	}
	o.OtherGates = cmp.Or(o.OtherGates, simulate.Approved)
	whole := newExplorer(o)
	if err := whole.start(ctx); err != nil {
		return nil, err
	}
	if err := whole.measure(ctx, whole.world); err != nil {
		return nil, err
	}
	parts, err := whole.apart(ctx)
	if err != nil {
		return nil, err
	}
	for _, e := range parts {
		if e != whole {
			e.report, e.found, e.stops = whole.report, whole.found, whole.stops
		}
		if err := e.run(ctx); err != nil {
			return nil, err
		}
	}
	return whole.result(), nil
}

func newExplorer(o Options) *explorer {
	return &explorer{
		Options: o, seen: map[visited]int{}, found: map[string]*Counterexample{}, stops: map[stopped]bool{}, alike: 1,
		report: &Report{Failures: map[Failure]int{}, Stops: map[string]int{}, Complete: true},
	}
}

// start brings the world about, and finds out what the change brings it.
func (e *explorer) start(ctx context.Context) (err error) {
	if e.world, err = simulate.Start(ctx, e.Base, e.Options.Options); err != nil {
		return err
	}
	return e.aim(ctx, e.world)
}

// run explores the world.
func (e *explorer) run(ctx context.Context) error {
	e.exploring = true
	root, err := e.begin(ctx, e.world, e.Failures)
	if err != nil {
		return err
	}
	e.frontier, e.world = []*branch{root}, nil
	err = e.explore(ctx)
	e.seen = nil
	return err
}

// begin makes the change in a fork of the world.
func (e *explorer) begin(ctx context.Context, start *simulate.Play, failures int) (*branch, error) {
	b, err := e.fork(ctx, &branch{Play: start, left: failures, sick: map[string]bool{}, ready: map[string]record.Offset{}, begun: map[begun]bool{}})
	if err != nil {
		return nil, err
	}
	return b, e.settles(b, b.Apply(ctx, e.Change))
}

// aim plays the change without a failure: what units have in the end is what the change brings them.
// Gates that wait for a person are approved.
func (e *explorer) aim(ctx context.Context, start *simulate.Play) error {
	e.had = unitsOf(start)
	e.goals.from, e.contents = revisions(e.had), contentsOf(start)
	b, err := e.begin(ctx, start, 0)
	if err != nil {
		return err
	}
	for range mostMoments {
		more, err := b.Next(ctx)
		if err := e.settles(b, err); err != nil {
			return err
		}
		if !more {
			break
		}
	}
	e.steps = b.Steps()
	if e.clusters, err = clustersOf(ctx, b.Play); err != nil {
		return err
	}
	units := e.units(b.Play)
	e.goals.to = revisions(units)
	e.report.Units = len(e.goals.ids())
	e.place(b, units)
	for _, obj := range b.Store().Objects(&v1alpha1.RolloutGate{}, "") {
		if gate, ok := obj.(*v1alpha1.RolloutGate); ok && e.Gates[gate.Spec.Gate] == "" && !slices.Contains(e.gates, gate.Spec.Gate) {
			e.gates = append(e.gates, gate.Spec.Gate)
		}
	}
	slices.Sort(e.gates)
	e.report.Gates = e.gates
	return nil
}

// mostMoments bounds a path: what goes on for longer repeats itself.
const mostMoments = 20_000

func (e *explorer) result() *Report {
	r := e.report
	for _, key := range slices.Sorted(maps.Keys(e.found)) {
		r.Counterexamples = append(r.Counterexamples, *e.found[key])
	}
	slices.SortStableFunc(r.Counterexamples, func(a, b Counterexample) int {
		return cmp.Or(cmp.Compare(a.failures, b.failures), cmp.Compare(a.Rule, b.Rule), cmp.Compare(a.Namespace, b.Namespace), cmp.Compare(a.Object, b.Object))
	})
	return r
}

// Badness is how a version is bad.
type Badness string

// How versions are bad.
const (
	// NeverReady is a version whose units never become ready.
	NeverReady Badness = "is never ready"
	// CrashesLater is one whose units crash as soon as they were ready.
	CrashesLater Badness = "crashes once it was ready"
)

// measure finds how far bad versions get. What is new takes nothing from anybody, and does not count.
func (e *explorer) measure(ctx context.Context, start *simulate.Play) error {
	units := map[record.Key][]string{}
	for _, id := range e.goals.ids() {
		if e.goals.from[id] != "" {
			units[e.rollouts[id]] = append(units[e.rollouts[id]], id)
		}
	}
	for _, bad := range []Badness{NeverReady, CrashesLater} {
		reached, b, err := e.reach(ctx, start, bad)
		if err != nil {
			return err
		}
		for _, of := range slices.SortedFunc(maps.Keys(units), record.Key.Compare) {
			e.addReach(b, of, bad, units[of], reached)
		}
	}
	return nil
}

// addReach reports how many units of a rollout a bad version gets to.
func (e *explorer) addReach(b *branch, of record.Key, bad Badness, units []string, reached map[string]bool) {
	if len(units) == 1 {
		return
	}
	r := Reach{Rollout: of.Name, Namespace: of.Namespace, Bad: bad, Units: len(units)}
	for _, id := range units {
		if reached[id] {
			r.Reached++
		}
	}
	e.report.Reach = append(e.report.Reach, r)
	if r.Reached == r.Units {
		e.broken(b, RuleBadStops, of, fmt.Sprintf("a version that %s gets to all %d units", bad, r.Units))
	}
}

// reach plays the change with a bad version, and returns the units that get it.
func (e *explorer) reach(ctx context.Context, start *simulate.Play, bad Badness) (map[string]bool, *branch, error) {
	if bad == NeverReady { // the world must know from the beginning which versions run
		o := e.Options.Options
		o.Readiness = o.Readiness.Clone()
		o.Readiness.New = new(world.Never)
		var err error
		if start, err = simulate.Start(ctx, e.Base, o); err != nil {
			return nil, nil, err
		}
	}
	b, err := e.begin(ctx, start, 0)
	if err != nil {
		return nil, nil, err
	}
	reached, crashed := map[string]bool{}, map[string]bool{}
	for range mostMoments {
		units := slices.DeleteFunc(e.units(b.Play), func(u Unit) bool { return !e.goals.has(&u) })
		for i := range units {
			reached[units[i].id()] = true
		}
		if bad == CrashesLater {
			if err := e.crash(ctx, b, units, crashed); err != nil {
				return nil, nil, err
			}
		}
		more, err := b.Next(ctx)
		if err != nil || !more {
			return reached, b, err
		}
	}
	return reached, b, nil
}

// crash has each of some units crash once that is ready.
func (e *explorer) crash(ctx context.Context, b *branch, units []Unit, crashed map[string]bool) error {
	for i := range units {
		u := &units[i]
		if !u.Ready || crashed[u.id()] {
			continue
		}
		crashed[u.id()] = true
		if err := b.Afflict(ctx, u.struck(), world.Crashing); err != nil {
			return err
		}
	}
	return nil
}
