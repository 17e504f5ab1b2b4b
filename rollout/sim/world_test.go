package sim

import (
	"fmt"
	"maps"
	"math/rand/v2"
	"strings"
	"time"

	"github.com/spillway-dev/spillway/rollout"
)

// patience is how long an actor goes on with what it once decided, lag how old a
// view may be, and intentAge how long others take a decision into account. The last
// must be longer than the other two together.
const (
	patience  = 20 * time.Second
	lag       = 15 * time.Second
	intentAge = 40 * time.Second
)

// state is everything that is stored in the world: what an API server holds.
type state struct {
	now  time.Time
	root rollout.Unit
	// versions are those of the leaves, by path.
	versions map[string]int
	status   status
}

// status is the one object that is written by compare-and-swap.
type status struct {
	version int
	lock    rollout.Lock
	intents map[string]intent
	starts  []time.Time
}

// intent is a leaf that an actor is going to move.
type intent struct {
	version int
	at      time.Time
}

// world is the state as it is, and as it was.
type world struct {
	state

	rnd *rand.Rand
	// past are states that a cache may still show, the newest last.
	past []state
	// disrupted are the leaves that an actor took down while they were up and that
	// have not been available since.
	disrupted map[string]bool
	// wholes are the groups that start as a whole.
	wholes map[string]bool
	// flap is how likely a healthy leaf breaks automatically.
	flap float64
	// writes counts those to the status.
	writes int
	// conflicts counts the writes that came too late.
	conflicts int
	log       []string
	// revisions counts the targets that there were, target is the present one.
	revisions int
	target    string
}

func newWorld(seed uint64) *world {
	w := &world{rnd: rand.New(rand.NewPCG(seed, 1)), disrupted: map[string]bool{}, wholes: map[string]bool{}}
	w.now = time.Date(2026, time.May, 4, 12, 0, 0, 0, time.UTC)
	w.root = w.grow()
	w.versions = map[string]int{}
	w.eachLeaf(func(path string, u *rollout.Unit) {
		w.versions[path] = 1
		u.Leaf = rollout.Leaf{
			Current: "r0", Target: "r0", Health: rollout.Healthy, Settled: true,
			HealthySince: w.now.Add(-24 * time.Hour), Priority: w.rnd.IntN(3),
		}
	})

	if w.rnd.IntN(2) == 0 {
		w.flap = 0.01
	}

	w.target = "r0"
	w.remember()

	return w
}

func (w *world) chance(p float64) bool { return w.rnd.Float64() < p }

// grow makes a tree: zones of Pods, stages of clusters, or workloads in namespaces.
func (w *world) grow() rollout.Unit {
	root := rollout.Unit{Name: "root", Group: true, Policy: w.policy()}

	switch w.rnd.IntN(3) {
	case 0:
		root.Policy.Order = rollout.OneAtATime
	case 1:
		root.Policy.Order = rollout.Series
	default:
		root.Policy.Rate = w.rate()
	}

	if w.chance(0.5) {
		root.Policy.MaxRemoved = w.removable()
	}

	// A budget above a series may be used up by what waits for its turn in it.
	if root.Policy.Order != rollout.Series && w.chance(0.5) {
		root.Policy.MaxUnavailable = w.budget()
	}

	if w.chance(0.7) {
		root.Lock = &rollout.Lock{}
	}

	for i := range 1 + w.rnd.IntN(3) {
		root.Children = append(root.Children, w.growGroup(fmt.Sprintf("zone-%d", i)))
	}

	if root.Policy.Order == rollout.Parallel && w.chance(0.4) {
		w.share(&root)
	}

	return root
}

func (w *world) growGroup(name string) rollout.Unit {
	group := rollout.Unit{Name: name, Group: true, Policy: w.policy()}
	if w.chance(0.2) {
		group.Policy.Order = rollout.Series
	} else if w.chance(0.7) {
		group.Policy.MaxUnavailable = w.budget()
	}

	if w.chance(0.4) {
		group.Policy.Soak = time.Duration(10+w.rnd.IntN(50)) * time.Second
	}

	if w.chance(0.2) {
		group.Gates = []rollout.Gate{{Name: "approve", When: rollout.When(w.rnd.IntN(2))}}
	}

	for i := range 1 + w.rnd.IntN(4) {
		group.Children = append(group.Children, rollout.Unit{Name: fmt.Sprintf("%s-%d", name, i)})
	}

	w.wholes[name] = group.Policy.Order == rollout.Parallel && w.chance(0.3)

	return group
}

func (w *world) policy() rollout.Policy {
	p := rollout.Policy{}
	if w.chance(0.3) {
		p.MinReady = time.Duration(1+w.rnd.IntN(20)) * time.Second
	}

	if w.chance(0.3) {
		p.Deadline = time.Duration(30+w.rnd.IntN(120)) * time.Second
	}

	return p
}

func (w *world) budget() rollout.Limit {
	if w.chance(0.3) {
		return rollout.Percentage(1 + w.rnd.IntN(99))
	}

	return rollout.Number(1 + w.rnd.IntN(3))
}

func (w *world) rate() rollout.Rate {
	if w.chance(0.5) {
		return rollout.Rate{}
	}

	return rollout.Rate{Every: time.Duration(1+w.rnd.IntN(15)) * time.Second, Burst: 1 + w.rnd.IntN(3)}
}

// eachLeaf calls f for the leaves of the state, in order.
func (s *state) eachLeaf(f func(path string, u *rollout.Unit)) {
	for i := range s.root.Children {
		group := &s.root.Children[i]
		for j := range group.Children {
			f(group.Name+"/"+group.Children[j].Name, &group.Children[j])
		}
	}
}

// leaf is the leaf at a path.
func (s *state) leaf(path string) *rollout.Unit {
	var found *rollout.Unit

	s.eachLeaf(func(p string, u *rollout.Unit) {
		if p == path {
			found = u
		}
	})

	return found
}

// copy copies the state so that nothing is shared.
func (s *state) copy() state {
	c := *s
	c.root = copyUnit(s.root)
	c.versions = maps.Clone(s.versions)
	c.status.intents = maps.Clone(s.status.intents)
	c.status.starts = append([]time.Time(nil), s.status.starts...)

	return c
}

func copyUnit(u rollout.Unit) rollout.Unit {
	u.Children = append([]rollout.Unit(nil), u.Children...)
	for i := range u.Children {
		u.Children[i] = copyUnit(u.Children[i])
	}

	u.Gates = append([]rollout.Gate(nil), u.Gates...)

	return u
}

// remember keeps the state as one that a cache may show.
func (w *world) remember() {
	w.past = append(w.past, w.copy())
	if len(w.past) > 12 {
		w.past = w.past[1:]
	}
}

// view is the state as an actor sees it: often a stale one. Its clock is right.
func (w *world) view(stale float64) state {
	i := len(w.past) - 1
	if w.chance(stale) {
		i = w.rnd.IntN(len(w.past))
	}

	for i < len(w.past)-1 && w.now.Sub(w.past[i+1].now) > lag {
		i++
	}

	v := w.past[i].copy()
	v.now = w.now

	return v
}

func (w *world) notef(format string, args ...any) {
	w.log = append(w.log, w.now.Format("15:04:05  ")+fmt.Sprintf(format, args...))
}

// swap writes the status if no one has written it since the view.
func (w *world) swap(v state, change func(*status)) bool {
	if v.status.version != w.status.version {
		w.conflicts++

		return false
	}

	change(&w.status)
	w.status.version++
	w.writes++
	w.remember()

	return true
}

// takeDown moves a leaf to a revision if it is still as the view showed it.
func (w *world) takeDown(path string, version int, revision string) bool {
	u := w.leaf(path)

	// Nothing of a leaf changes when it is not to be removed any more: that is asked for.
	if w.versions[path] != version || revision == rollout.Removed && u.Leaf.Target != rollout.Removed {
		w.conflicts++

		return false
	}

	if u.Leaf.Health == rollout.Healthy {
		w.disrupted[path] = true
	}

	u.StartedAt = w.now
	u.Leaf.Current, u.Leaf.Health, u.Leaf.HealthySince, u.Leaf.Settled = revision, rollout.Progressing, time.Time{}, false
	w.changed(path)

	return true
}

func (w *world) changed(path string) {
	w.versions[path]++
	w.remember()
}

// live lets time pass, and the leaves do what leaves do.
func (w *world) live() {
	w.now = w.now.Add(time.Duration(w.rnd.IntN(4)) * time.Second)
	w.eachLeaf(func(path string, u *rollout.Unit) {
		if w.chance(0.5) {
			w.liveOn(path, &u.Leaf)
		}
	})
}

func (w *world) liveOn(path string, leaf *rollout.Leaf) {
	bad := strings.HasSuffix(leaf.Current, "-bad")

	switch {
	case leaf.Current == "", leaf.Current == rollout.Removed && leaf.Health == rollout.Healthy:
		return // there is nothing that could live
	case leaf.Health == rollout.Healthy && w.chance(w.flap):
		leaf.Health, leaf.HealthySince = rollout.Degraded, time.Time{}
	case leaf.Health == rollout.Progressing && bad && w.chance(0.2):
		leaf.Health = rollout.Failed
	case leaf.Health != rollout.Healthy && !bad && w.chance(0.2):
		leaf.Health, leaf.HealthySince, leaf.Settled = rollout.Healthy, w.now, true
		delete(w.disrupted, path)
	default:
		return
	}

	w.notef("%s at %s: health is %d", path, leaf.Current, leaf.Health)
	w.changed(path)
}

// aim gives everything a new target; one in three does not work.
func (w *world) aim(bad bool) {
	w.revisions++

	revision := fmt.Sprintf("r%d", w.revisions)
	if bad {
		revision += "-bad"
	}

	w.notef("a user wants %s", revision)
	w.keepWhole()
	w.target = revision
	w.eachLeaf(func(_ string, u *rollout.Unit) {
		if u.Leaf.Target == rollout.Removed {
			return
		}

		u.Leaf.Target, u.Leaf.Settled = revision, false
		u.StartedAt = time.Time{}
	})
	w.remember()
}

// interfere lets a user do something, rarely.
func (w *world) interfere() {
	group := &w.root.Children[w.rnd.IntN(len(w.root.Children))]

	switch w.rnd.IntN(64) {
	case 0:
		w.aim(w.chance(0.3))
	case 1, 2:
		group.Pause = &rollout.Pause{By: "alice", Since: w.now}
	case 3, 4:
		group.Pause = nil
	case 5:
		w.root.Pause = &rollout.Pause{By: "bob", Since: w.now}
	case 6, 7:
		w.root.Pause = nil
	case 8, 9:
		group.Block = &rollout.Block{Reason: "Closed", Message: "it is closed", Until: w.now.Add(time.Minute)}
	case 10, 11:
		for i := range group.Gates {
			group.Gates[i].Verdict = rollout.Verdict(w.rnd.IntN(3))
		}
	case 12, 13:
		w.unwant(group)
	case 14:
		w.wantBack(group)
	case 15:
		w.approve()
	default:
		return
	}

	w.remember()
}

// settled ends the storm: nothing breaks any more, nothing is held, and what is
// wanted works.
func (w *world) settled() {
	w.notef("settled")

	w.flap, w.root.Pause = 0, nil
	w.approve()
	w.fixRemovals()

	for i := range w.root.Children {
		group := &w.root.Children[i]
		group.Pause, group.Block = nil, nil

		for j := range group.Gates {
			group.Gates[j].Verdict = rollout.Passed
		}
	}

	w.aim(false)
}
