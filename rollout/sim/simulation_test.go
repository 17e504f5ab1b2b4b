package sim

import (
	"strings"
	"testing"

	"github.com/spillway-dev/spillway/internal/lab/worlds"
	"github.com/spillway-dev/spillway/rollout"
)

// TestSimulation plays worlds, each from its seed.
func TestSimulation(t *testing.T) { game().Run(t) }

// TestSameSeedSameWorld is that a failure can be played again.
func TestSameSeedSameWorld(t *testing.T) { game().CheckSame(t) }

func game() *worlds.Game {
	return &worlds.Game{
		Package: "./rollout/sim", Seeds: 500,
		Play: func(seed uint64, _ worlds.How) worlds.World { return play(seed) },
		Often: map[string]int{
			"locked": 10, "flapping": 10, "crashes": 10, "conflicts": 10, "releases": 10, "moves": 1, "removals": 10, "starts": 10,
		},
	}
}

// simulation is one world being played.
type simulation struct {
	world     *world
	oracle    *oracle
	actors    []*actor
	bystander *bystander
	failure   string
	ticks     int
}

// play plays a world: a storm, the time after it in which nothing breaks, and the quiet at the end.
func play(seed uint64) *simulation { return playBy(seed, allRules()) }

// playBy plays a world in which the actors keep to these rules.
func playBy(seed uint64, r *rules) *simulation {
	w := newWorld(seed)
	o := &oracle{world: w, flapped: w.flap > 0}
	s := &simulation{world: w, oracle: o, bystander: &bystander{world: w}}
	s.actors = []*actor{
		{world: w, oracle: o, name: "replica-1", rules: r, stale: 0.3, crash: 0.1},
		{world: w, oracle: o, name: "replica-2", rules: r, stale: 0.3, crash: 0.1},
	}

	s.storm()
	s.settle()
	s.beQuiet()

	return s
}

func (s *simulation) ended() bool { return s.failure != "" || len(s.oracle.violations) > 0 }

// tick lets the world go on, and everybody do one thing in a random order.
func (s *simulation) tick(storm bool) {
	s.ticks++
	s.world.live()
	s.oracle.look()

	if storm {
		s.world.interfere()
	}

	for _, i := range s.world.rnd.Perm(len(s.actors) + 1) {
		if i == len(s.actors) {
			s.bystander.act(storm)
		} else {
			s.actors[i].act()
		}

		s.oracle.look()
	}
}

func (s *simulation) storm() {
	for i := 0; i < 250 && !s.ended(); i++ {
		s.tick(true)
	}
}

// settle waits for the rollout to come to its end.
func (s *simulation) settle() {
	if s.ended() {
		return
	}

	s.world.settled()

	for range 3000 {
		s.tick(false)

		if s.ended() || s.isComplete() {
			return
		}
	}

	p := rollout.Decide(observe(s.world.copy()))
	s.failure = "it does not come to its end: " + string(p.Phase) + ", " + p.At().Message()
}

func (s *simulation) isComplete() bool {
	p := rollout.Decide(observe(s.world.copy()))

	return p.Phase == rollout.PhaseComplete && s.world.status.lock.Holder == ""
}

// beQuiet is that no one writes anything once there is nothing left to do.
func (s *simulation) beQuiet() {
	if s.ended() {
		return
	}

	// Views that are older than the end are none any more.
	s.world.past = nil
	s.world.remember()

	before := s.world.writes

	for _, a := range s.actors {
		a.writes = nil
	}

	for range 50 {
		s.tick(false)
	}

	if s.world.writes != before {
		s.failure = "it is complete, and still something is written"
	}
}

// Verdict is the first thing that went wrong, empty if nothing did.
func (s *simulation) Verdict() string {
	if len(s.oracle.violations) > 0 {
		return s.oracle.violations[0]
	}

	return s.failure
}

// Log is what happened.
func (s *simulation) Log() []string { return s.world.log }

// Counts are how often something happened.
func (s *simulation) Counts() worlds.Counts {
	counts := worlds.Counts{
		"locked": one(s.world.root.Lock != nil), "flapping": one(s.oracle.flapped), "conflicts": s.world.conflicts, "ticks": s.ticks,
	}

	for _, line := range s.world.log {
		counts["moves"] += one(strings.Contains(line, " moves "))
		counts["crashes"] += one(strings.Contains(line, " crashes"))
		counts["releases"] += one(strings.Contains(line, " releases"))
		counts["removals"] += one(strings.HasSuffix(line, " to "+rollout.Removed))
		counts["starts"] += one(strings.HasSuffix(line, " has started"))
	}

	return counts
}

func one(yes bool) int {
	if yes {
		return 1
	}

	return 0
}
