package prove

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/types"

	"github.com/spillway-dev/spillway/internal/reasons"
	"github.com/spillway-dev/spillway/internal/simulate"
	"github.com/spillway-dev/spillway/internal/simulate/record"
	"github.com/spillway-dev/spillway/internal/simulate/world"
	"github.com/spillway-dev/spillway/rollout"
)

// Failure is something that goes wrong.
type Failure string

// The failures.
const (
	// Slow is that a unit does not become ready; it may do so later.
	Slow Failure = "is not ready"
	// Crash is that a unit that was ready crashes; it may recover later.
	Crash Failure = "crashes"
	// Lost is that a Pod goes with its node, and another one takes its place.
	Lost Failure = "is lost with its node"
	// Denied is that a gate is refused, by a user or by what is measured.
	Denied Failure = "is refused"
	// Stopped is that the manager stops instead of making a write, and another one starts.
	Stopped Failure = "the manager stops before a write"
	// StoppedAfter is the same immediately after the write.
	StoppedAfter Failure = "the manager stops after a write"
	// Refused is that a write is refused, once.
	Refused Failure = "a write is refused"
	// Unanswered is that a write is made, and the manager does not learn it.
	Unanswered Failure = "a write is made without an answer"
)

// interruption is the failure of a write.
type interruption struct {
	failure Failure
	simulate.Interruption
}

// interruptions are the failures of writes, in the order in which they are tried.
var interruptions = []interruption{
	{Stopped, simulate.Interruption{Stop: true}}, {StoppedAfter, simulate.Interruption{Stop: true, Unanswered: true}},
	{Refused, simulate.Interruption{}}, {Unanswered, simulate.Interruption{Unanswered: true}},
}

type explorer struct {
	Options

	// exploring reports whether rules are checked: it is known what the change brings.
	exploring bool
	report    *Report
	// world is the one before the change, steps what is done without a failure.
	world *simulate.Play
	steps []record.Step
	// alike is how many parts are equal to this one.
	alike int
	// seen is how many more things could go wrong in the states that were visited, and one more.
	seen map[visited]int
	// frontier is what is to be visited at the next moment.
	frontier []*branch
	found    map[string]*Counterexample
	// stops are the final states that were counted.
	stops map[stopped]bool
	goals goals
	// had are the units when the change was made.
	had      []Unit
	rollouts map[string]record.Key
	// gates are those that the change reaches, and that pass.
	gates []string
	// contents are the ConfigMaps and Secrets when the change was made.
	contents map[record.Key]string
	// clusters are the labels of the clusters with the change.
	clusters map[types.NamespacedName]map[string]string
	policies policies
}

// branch is a world, and how it has come about.
type branch struct {
	*simulate.Play

	events []event
	// open is the unit that fails, as long as it does; struck is the last one that has.
	open   *record.Key
	struck record.Key
	// denied is the gate that is refused, empty if none is.
	denied string
	// left is how many things may yet go wrong, moments how long the path is.
	left, moments int
	// unsettled reports whether it does not come to rest: what it would do next is not known.
	unsettled bool
	// sick are units that were not ready when they got the change: that they are not ready now is not
	// because of it.
	sick map[string]bool
	// ready is since when units are ready with what the change brings.
	ready map[string]record.Offset
	// begun are the stages that have begun.
	begun map[begun]bool
}

// event is something that has gone wrong, or has ended that.
type event struct {
	at   record.Offset
	text string
}

// fork returns the same world once more.
func (e *explorer) fork(ctx context.Context, b *branch) (*branch, error) {
	p, err := b.Fork(ctx)
	if err != nil {
		return nil, err
	}
	return e.watched(b, p), nil
}

func (e *explorer) watched(b *branch, p *simulate.Play) *branch {
	f := &branch{Play: p, events: slices.Clip(b.events), open: b.open, struck: b.struck, denied: b.denied, left: b.left, moments: b.moments, sick: maps.Clone(b.sick), ready: maps.Clone(b.ready), begun: maps.Clone(b.begun)}
	p.Watch(func(by string, changes []simulate.Change) { e.see(f, by, changes) })
	return f
}

// settles finds a world that does not come to rest.
func (e *explorer) settles(b *branch, err error) error {
	if _, ok := errors.AsType[*world.UnsettledError](err); !ok || !e.exploring {
		return err
	}
	e.broken(b, RuleSettles, record.Key{}, err.Error())
	b.unsettled = true
	return nil
}

// explore visits all states that can be reached, the nearest first.
func (e *explorer) explore(ctx context.Context) error {
	for len(e.frontier) > 0 {
		level := e.frontier
		e.frontier = nil
		for len(level) > 0 { // what fails at a moment is as far as what does not
			b := level[0]
			level[0], level = nil, level[1:]
			if e.isOver(ctx) {
				return ctx.Err() //nolint:wrapcheck // it ends the command
			}
			beside, err := e.visit(ctx, b)
			if err != nil {
				return err
			}
			level = append(level, beside...)
		}
	}
	return nil
}

// visit checks a state and goes on from it. It returns the states of the same moment that it leads to.
func (e *explorer) visit(ctx context.Context, b *branch) (beside []*branch, err error) {
	state := b.State()
	if b.unsettled || e.isSeen(b, state) || b.moments > mostMoments {
		return nil, nil
	}
	e.report.States++
	if err := e.checkState(ctx, b); err != nil {
		return nil, err
	}
	beside, err = e.failures(ctx, b)
	if err != nil {
		return nil, err
	}
	f, err := e.fork(ctx, b)
	if err != nil {
		return nil, err
	}
	more, err := e.next(ctx, f)
	switch {
	case err != nil:
		return nil, err
	case !more:
		return beside, e.checkEnd(ctx, f, state)
	}
	writes := f.Writes()
	e.later(f) // before those in which less can go wrong yet
	return beside, e.interrupt(ctx, b, writes)
}

// later adds a world to those of the next moment.
func (e *explorer) later(b *branch) {
	b.Sleep()
	e.frontier = append(e.frontier, b)
}

// isOver reports whether time has ended the exploration.
func (e *explorer) isOver(ctx context.Context) bool {
	if e.Progress != nil {
		e.Progress(e.report.States)
	}
	over := ctx.Err() != nil || e.Over != nil && e.Over()
	e.report.Complete = e.report.Complete && !over
	return over
}

// visited is a state, and what else matters in it to what follows and to the rules.
type visited struct {
	state uint64
	open  record.Key
	sick  string
	// denied is the gate that is refused.
	denied string
	// told is what a rule of the user may ask for.
	told string
}

// isSeen reports whether a state was visited in which as much could go wrong yet, and notes that it is.
func (e *explorer) isSeen(b *branch, state uint64) bool {
	v := visited{state: state, denied: b.denied, sick: strings.Join(slices.Sorted(maps.Keys(b.sick)), " ")}
	if b.open != nil {
		v.open = *b.open
	}
	if len(e.Rules) > 0 {
		v.told = fmt.Sprint(b.struck, len(b.events), b.left)
	}
	was := e.seen[v] > b.left && !e.Exhaustive
	e.seen[v] = max(e.seen[v], b.left+1)
	return was
}

// next lets time go on.
func (e *explorer) next(ctx context.Context, b *branch) (bool, error) {
	b.moments++
	e.report.Transitions++
	more, err := b.Next(ctx)
	return more, e.settles(b, err)
}

// failures returns the worlds in which something goes wrong with a unit at this moment, or no longer does.
func (e *explorer) failures(ctx context.Context, b *branch) (beside []*branch, err error) {
	if b.open != nil {
		f, err := e.recovers(ctx, b)
		if err != nil {
			return nil, err
		}
		beside = append(beside, f)
	}
	if b.left == 0 {
		return beside, nil
	}
	for _, s := range e.strikes(b) {
		f, err := e.strike(ctx, b, s)
		if err != nil {
			return nil, err
		}
		beside = append(beside, f)
	}
	for _, gate := range e.gates {
		f, err := e.fork(ctx, b)
		if err != nil {
			return nil, err
		}
		f.left--
		f.denied = gate
		f.events = append(f.events, event{f.At(), "gate " + gate + " " + string(Denied) + " from now on"})
		e.report.Transitions++
		e.report.Failures[Denied]++
		f.Refuse(gate)
		beside = append(beside, f)
	}
	return beside, nil
}

// recovers returns the world in which the unit that fails does so no longer.
func (e *explorer) recovers(ctx context.Context, b *branch) (*branch, error) {
	f, err := e.fork(ctx, b)
	if err != nil {
		return nil, err
	}
	e.report.Transitions++
	f.events = append(f.events, event{f.At(), nameOf(*f.open) + " recovers"})
	of := *f.open
	f.open = nil
	return f, e.settles(f, f.Relieve(ctx, of))
}

// strike is a failure of a unit.
type strike struct {
	of      record.Key
	failure Failure
}

// strikes returns what can go wrong with units: those that have what the change brings fail before
// they are ready, or after; those that have it not yet only after. Of units that are alike the first
// and the last one fail.
func (e *explorer) strikes(b *branch) []strike {
	type class struct {
		rollout    record.Key
		part       string
		has, ready bool
	}
	units := e.units(b.Play)
	alike, order := map[class][]*Unit{}, []class(nil)
	for i := range units {
		u := &units[i]
		if !e.goals.moves(u) || u.Revision == "" {
			continue
		}
		c := class{e.rollouts[u.id()], u.Part, e.goals.has(u), u.Ready}
		if len(alike[c]) == 0 {
			order = append(order, c)
		}
		alike[c] = append(alike[c], u)
	}
	var all []strike
	for _, c := range order {
		members := alike[c]
		if !e.Exhaustive {
			members = slices.Compact([]*Unit{members[0], members[len(members)-1]})
		}
		for _, u := range members {
			all = append(all, strikesOf(u, c.has)...)
		}
	}
	return all
}

func strikesOf(u *Unit, has bool) []strike {
	switch of := u.struck(); {
	case !u.Ready && !has:
		return nil
	case !u.Ready:
		return []strike{{of, Slow}}
	case of.Kind == clusterKind:
		return []strike{{of, Crash}}
	default:
		return []strike{{of, Crash}, {of, Lost}}
	}
}

// strike returns the world in which a unit fails.
func (e *explorer) strike(ctx context.Context, b *branch, s strike) (*branch, error) {
	f, err := e.fork(ctx, b)
	if err != nil {
		return nil, err
	}
	f.left--
	f.events = append(f.events, event{f.At(), nameOf(s.of) + " " + string(s.failure)})
	f.struck = s.of
	e.report.Transitions++
	e.report.Failures[s.failure]++
	switch s.failure {
	case Lost:
		return f, e.settles(f, f.Lose(ctx, s.of))
	case Crash:
		f.open = &s.of
		return f, e.settles(f, f.Afflict(ctx, s.of, world.Crashing))
	default:
		f.open = &s.of
		return f, e.settles(f, f.Afflict(ctx, s.of, world.Slow))
	}
}

// interrupt adds the worlds in which one of the next writes of the manager fails, or the manager with
// it.
func (e *explorer) interrupt(ctx context.Context, b *branch, writes []string) error {
	for at := 0; at < len(writes) && b.left > 0; at++ {
		for _, i := range interruptions {
			i.At, i.Before = writes[at], writes[:at]
			f, err := e.interruptBy(ctx, b, i)
			if err != nil {
				return err
			}
			e.later(f)
		}
	}
	return nil
}

func (e *explorer) interruptBy(ctx context.Context, b *branch, i interruption) (*branch, error) {
	f, err := e.fork(ctx, b)
	if err != nil {
		return nil, err
	}
	f.left--
	f.Interrupt(i.Interruption)
	if _, err := e.next(ctx, f); err != nil {
		return nil, err
	}
	f.events = append(f.events, event{f.At(), string(i.failure)})
	if e.report.Failures[i.failure]++; !i.Stop {
		return f, nil
	}
	p, err := f.Restarted(ctx)
	return e.watched(f, p), e.settles(f, err)
}

// checkEnd checks the state in which nothing happens any more.
func (e *explorer) checkEnd(ctx context.Context, b *branch, state uint64) error {
	waits, err := b.Waits(ctx)
	if err != nil {
		return err
	}
	for i := range waits {
		w := &waits[i]
		of := record.KeyOf("", w.Namespace, w.Object)
		_, action, known := reasons.Of(w.Reason)
		switch {
		case len(b.events) == 0:
			e.broken(b, RuleEnds, of, "the rollout does not complete though nothing fails: "+w.Sentence)
		case !known || action == "":
			e.broken(b, RulePerson, of, "it waits for ever, and no message says for whom: "+w.Sentence)
		default:
			e.stop(state, w)
		}
	}
	if len(waits) == 0 && b.open == nil {
		e.checkGoals(b)
	}
	return nil
}

// stopped is a rollout that waits for a person in a final state.
type stopped struct {
	state  uint64
	object string
	reason rollout.Reason
}

// stop counts a final state in which a rollout waits for a person.
func (e *explorer) stop(state uint64, w *record.Wait) {
	if key := (stopped{state, w.Object, w.Reason}); !e.stops[key] {
		e.stops[key] = true
		e.report.Stops[string(w.Reason)]++
	}
}

// checkGoals finds units that have something else than without a failure, though everything is said to
// be complete.
func (e *explorer) checkGoals(b *branch) {
	units := e.units(b.Play)
	for i := range units {
		if u := &units[i]; e.goals.moves(u) && !e.goals.has(u) {
			e.broken(b, RuleComplete, e.rollouts[u.id()], fmt.Sprintf("everything is complete, and %s does not have what the change brings", u))
		}
	}
}

// broken notes that a rule is broken, if no shorter path to that is known.
func (e *explorer) broken(b *branch, rule string, of record.Key, sentence string) {
	key := rule + " " + of.Namespace + " " + of.Name
	if known := e.found[key]; known != nil && (known.failures < len(b.events) || known.failures == len(b.events) && known.moments <= b.moments) {
		return
	}
	e.found[key] = &Counterexample{
		Rule: rule, Object: of.Name, Namespace: of.Namespace, Sentence: sentence, Action: actions[rule], Alike: e.alike,
		Timeline: b.timeline(), failures: len(b.events), moments: b.moments,
	}
}

// timeline is everything that has happened.
func (b *branch) timeline() []Line {
	var all []Line
	for _, s := range b.Steps() {
		all = append(all, Line{At: s.At, Ring: s.Ring, Text: s.String()})
	}
	for _, ev := range b.events {
		all = append(all, Line{At: ev.at, Failure: true, Text: ev.text})
	}
	slices.SortStableFunc(all, func(a, b Line) int { return cmp.Compare(a.At, b.At) })
	return all
}

func nameOf(of record.Key) string {
	u := Unit{Key: of}
	return u.String()
}
