package sim

import (
	"time"

	"github.com/spillway-dev/spillway/rollout"
)

// self is how all replicas of the manager name themselves in the lock.
const self = "spillway"

// write is a step that an actor has announced and not taken yet.
type write struct {
	path    string
	version int
	to      string
	start   rollout.Start
	since   time.Time
}

// actor is a replica of the manager. It forgets its writes when it crashes.
type actor struct {
	world  *world
	oracle *oracle
	name   string
	writes []write
	// rules are those that it keeps to.
	rules *rules
	// stale is how likely its view is an old one, crash how likely it crashes.
	stale, crash float64
}

// act does one thing: it crashes, it writes what it has announced, or it looks,
// decides and announces.
func (a *actor) act() {
	switch {
	case len(a.writes) > 0 && a.world.chance(a.crash):
		a.world.notef("%s crashes", a.name)
		a.writes = nil
	case len(a.writes) > 0:
		a.carryOut()
	default:
		a.decide()
	}
}

// observe makes of a view what a ring would make of it.
func observe(v state) rollout.Observed {
	root := copyUnit(v.root)
	if root.Lock != nil {
		lock := v.status.lock
		root.Lock = &lock
	}

	root.Policy.Rate.Starts = v.status.starts
	shown := state{root: root}
	shown.eachLeaf(func(path string, u *rollout.Unit) {
		if v.isIntended(path) && u.Leaf.Current != u.Leaf.Target {
			u.Leaf.Health, u.Leaf.HealthySince = rollout.Unknown, time.Time{}

			// A removal that is intended counts as begun.
			if u.Leaf.Target == rollout.Removed {
				u.Leaf.Current = rollout.Removed
			}
		}
	})

	return rollout.Observed{Now: v.now, Self: self, Root: root}
}

// isIntended tells whether a user may be about to move a leaf.
func (s *state) isIntended(path string) bool {
	i, ok := s.status.intents[path]

	return ok && i.version == s.versions[path] && s.now.Sub(i.at) < intentAge
}

func (a *actor) decide() {
	v := a.world.view(a.stale)
	o := observe(v)
	a.rules.change(v, &o)
	p := rollout.Decide(o)

	switch {
	case len(p.Steps) > 0:
		a.announce(v, p)
	case p.Release:
		if a.world.swap(v, func(s *status) { s.lock = rollout.Lock{} }) {
			a.world.notef("%s releases the lock", a.name)
		}
	}
}

// announce takes the lock and writes down what is going to be moved, in one.
func (a *actor) announce(v state, p rollout.Plan) {
	if a.rules.overwrites {
		v.status.version = a.world.status.version
	}

	swapped := a.world.swap(v, func(s *status) {
		if p.Acquire != nil {
			s.lock = *p.Acquire
		}

		s.intents = intents(v, p)
		for range p.Steps {
			s.starts = append(s.starts, v.now)
		}
	})
	if !swapped {
		return
	}

	a.oracle.announced(v, p)

	for _, s := range p.Steps {
		path := s.Path.String()
		a.writes = append(a.writes, write{path: path, version: v.versions[path], to: s.To, start: s.Start, since: v.now})
	}

	a.world.notef("%s announces %d steps, first %s", a.name, len(p.Steps), p.Steps[0].Message())
}

// intents are those of a plan and those of others that may still be carried out.
func intents(v state, p rollout.Plan) map[string]intent {
	all := map[string]intent{}

	for path, i := range v.status.intents {
		if v.isIntended(path) {
			all[path] = i
		}
	}

	for _, s := range p.Steps {
		path := s.Path.String()
		all[path] = intent{version: v.versions[path], at: v.now}
	}

	return all
}

// carryOut takes one step of those announced, unless it has waited for too long.
func (a *actor) carryOut() {
	w := a.writes[0]
	a.writes = a.writes[1:]

	if a.rules.unconditional {
		w.version = a.world.versions[w.path]
	}

	if a.world.now.Sub(w.since) > patience {
		a.writes = nil

		return
	}

	if a.world.takeDown(w.path, w.version, w.to) {
		a.world.notef("%s moves %s to %s", a.name, w.path, w.to)
		a.world.start(w.path, w.start)
	}
}

// bystander wants the same lock, takes one leaf down, and gives the lock back once
// that leaf is healthy again.
type bystander struct {
	world *world
	path  string
	holds bool
}

func (b *bystander) act(storm bool) {
	v := b.world.view(0.3)

	switch {
	case b.world.root.Lock == nil:
	case b.holds:
		b.goOn(v)
	case storm && b.world.chance(0.05) && v.status.lock.Holder == "" && v.isWell():
		b.holds = b.world.swap(v, func(s *status) {
			s.lock = rollout.Lock{Holder: "downscaler", Purpose: "downscale", Since: b.world.now}
		})
		b.path = ""
	}
}

// goOn takes a leaf down, or gives back the lock.
func (b *bystander) goOn(v state) {
	if b.path == "" {
		if b.path = b.world.anyLeaf(); b.path == "" { // there is nothing to take down
			b.holds = !b.world.swap(v, func(s *status) { s.lock = rollout.Lock{} })

			return
		}

		leaf := b.world.leaf(b.path).Leaf

		if leaf.Health == rollout.Healthy && b.world.isWell() {
			b.world.notef("the downscaler takes down %s", b.path)
			b.world.takeDown(b.path, b.world.versions[b.path], leaf.Current)
		}

		return
	}

	if leaf := b.world.leaf(b.path).Leaf; leaf.Health == rollout.Healthy || leaf.Current == rollout.Removed {
		b.holds = !b.world.swap(v, func(s *status) { s.lock = rollout.Lock{} })
	}
}

// anyLeaf is one that there is, empty if the dice show one that there is not.
func (w *world) anyLeaf() string {
	group := w.root.Children[w.rnd.IntN(len(w.root.Children))]
	u := group.Children[w.rnd.IntN(len(group.Children))]

	if u.Leaf.Current == rollout.Removed || u.Leaf.Current == "" {
		return ""
	}

	return group.Name + "/" + u.Name
}

// isWell tells whether everything is up, and no one is about to change that.
func (s *state) isWell() bool {
	well := true

	s.eachLeaf(func(path string, u *rollout.Unit) {
		well = well && u.Leaf.Health == rollout.Healthy && !s.isIntended(path)
	})

	return well
}
