package sim

import (
	"maps"
	"testing"
	"time"

	"github.com/spillway-dev/spillway/internal/lab/worlds"
)

// storm is how many ticks it storms.
const storm = 100

func TestMain(m *testing.M) { worlds.Main(m) }

// TestSimulation plays worlds, each from its seed.
func TestSimulation(t *testing.T) { game().Run(t) }

// TestSameSeedSameWorld is that a failure can be played again.
func TestSameSeedSameWorld(t *testing.T) { game().CheckSame(t) }

func game() *worlds.Game {
	g := &worlds.Game{Package: "./internal/config/sim", Seeds: 500, Cost: 20, Often: map[string]int{}}
	g.Play = func(seed uint64, how worlds.How) worlds.World {
		if how.Storm {
			return brave(seed, &rules{}, how.Logged)
		}
		return play(seed, &rules{}, how.Logged)
	}
	for _, what := range []string{"edits", "rolls", "bad rolls", "failures", "undo", "replace", "restart", "opt", "pause", "deleted", "created again", "returns", "blips", "room", "kills", "kills amid writes"} {
		g.Often[what] = 10
	}
	return g
}

// simulation is one world being played.
type simulation struct {
	world   *world
	manager *manager
	failure string
}

// play plays a world: a storm, the time after it, and the quiet at the end.
func play(seed uint64, r *rules, told bool) *simulation {
	s := brave(seed, r, told)
	s.settle()
	s.beQuiet()
	return s
}

// brave plays the storm alone.
func brave(seed uint64, r *rules, told bool) *simulation {
	w := newWorld(seed, told)
	s := &simulation{world: w, manager: newManager(w, r)}
	for range 40 { // it settles before
		s.tick(3 * time.Second)
	}
	for range storm {
		if s.ended() {
			break
		}
		w.users()
		s.tick(w.seconds(1, 8))
	}
	return s
}

func (s *simulation) ended() bool { return s.failure != "" || len(s.world.oracle.violations) > 0 }

func (s *simulation) tick(by time.Duration) {
	s.world.pass(by)
	s.manager.act()
}

// settle waits until everything has the present content.
func (s *simulation) settle() {
	if s.ended() {
		return
	}
	s.world.endStorm()
	for range 900 {
		s.tick(10 * time.Second)
		if s.ended() || s.isComplete() == "" {
			return
		}
	}
	s.failure = "it does not come to its end: " + s.isComplete()
}

// isComplete is what does not have the present content yet.
func (s *simulation) isComplete() string {
	w := s.world
	for _, o := range w.all {
		if _, gone := w.absent[o]; gone {
			return o.Name + " does not exist"
		}
	}
	for _, u := range w.units {
		for _, o := range u.uses {
			if u.has[o] != w.live[o] {
				return u.name + " is not rolled for " + w.live[o] + s.why(u)
			}
		}
		if w.canTell(u) && !u.isWhole(w) {
			return u.name + " is not whole"
		}
	}
	return ""
}

// why is what the ring says of a workload.
func (s *simulation) why(u *unit) string {
	if !s.world.told {
		return ""
	}
	all, err := s.manager.run.Waits(quiet)
	for i := range all {
		if l := &all[i]; l.Name.Name == u.name {
			return ": " + l.State + " " + string(l.Reason) + " " + l.Sentence(l.Unit, l.Position)
		}
	}
	if err != nil {
		return ": " + err.Error()
	}
	return ""
}

// beQuiet checks that nothing is written once there is nothing left to do.
func (s *simulation) beQuiet() {
	if s.ended() {
		return
	}
	for range 80 { // failures count no more
		s.tick(20 * time.Second)
	}
	before, said := s.world.oracle.writes, s.world.oracle.said
	for range 20 {
		s.manager.looked = false
		s.tick(20 * time.Second)
	}
	// A deadline that passes is another state of a workload.
	tooMuch := s.world.oracle.said-said > len(s.world.units)
	if (s.world.oracle.writes != before || tooMuch) && !s.ended() {
		s.failure = "everything has its content, and still something is written"
	}
}

// Verdict is the first thing that went wrong, empty if nothing did.
func (s *simulation) Verdict() string {
	if v := s.world.oracle.violations; len(v) > 0 {
		return v[0]
	}
	return s.failure
}

// Log is what happened.
func (s *simulation) Log() []string { return s.world.log }

// Counts are how often something happened.
func (s *simulation) Counts() worlds.Counts {
	counts := worlds.Counts{}
	maps.Copy(counts, s.world.counts)
	return counts
}
