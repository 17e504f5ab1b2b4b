package sim

import (
	"flag"
	"strings"
	"testing"

	"github.com/spillway-dev/spillway/rollout"
)

var (
	seedFlag  = flag.Uint64("seed", 0, "play this one world, and tell what happens in it")
	seedsFlag = flag.Uint64("seeds", 500, "how many worlds to play")
)

// TestSimulation plays worlds, each from its seed.
func TestSimulation(t *testing.T) {
	if *seedFlag != 0 {
		s := play(*seedFlag)
		t.Log("\n" + strings.Join(s.world.log, "\n"))
		s.report(t, *seedFlag)

		return
	}

	var sum statistics

	for seed := uint64(1); seed <= *seedsFlag; seed++ {
		s := play(seed)
		s.report(t, seed)
		sum.add(s.statistics)

		if t.Failed() {
			return
		}
	}

	t.Logf("%+v", sum)
	sum.check(t)
}

// simulation is one world being played.
type simulation struct {
	world     *world
	oracle    *oracle
	actors    []*actor
	bystander *bystander
	failure   string
	statistics
}

// statistics tell whether the worlds were wild enough to mean anything.
type statistics struct {
	Worlds, Locked, Flapping, Moves, Crashes, Conflicts, Releases, Removals, Starts, Ticks int
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
	s.count()

	return s
}

func (s *simulation) ended() bool { return s.failure != "" || len(s.oracle.violations) > 0 }

// tick lets the world go on, and everybody do one thing in a random order.
func (s *simulation) tick(storm bool) {
	s.Ticks++
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

func (s *simulation) report(t *testing.T, seed uint64) {
	t.Helper()

	if len(s.oracle.violations) > 0 {
		s.failure = s.oracle.violations[0]
	}

	if s.failure == "" {
		return
	}

	last := s.world.log[max(0, len(s.world.log)-25):]
	t.Errorf("seed %d: %s\n%s\nplay it again with: go test ./rollout/sim -run TestSimulation -seed=%d -v",
		seed, s.failure, strings.Join(last, "\n"), seed)
}

// count fills in the statistics.
func (s *simulation) count() {
	s.Worlds = 1
	s.Locked = one(s.world.root.Lock != nil)
	s.Flapping = one(s.oracle.flapped)
	s.Conflicts = s.world.conflicts

	for _, line := range s.world.log {
		s.Moves += one(strings.Contains(line, " moves "))
		s.Crashes += one(strings.Contains(line, " crashes"))
		s.Releases += one(strings.Contains(line, " releases"))
		s.Removals += one(strings.HasSuffix(line, " to "+rollout.Removed))
		s.Starts += one(strings.HasSuffix(line, " has started"))
	}
}

func one(yes bool) int {
	if yes {
		return 1
	}

	return 0
}

func (s *statistics) add(t statistics) {
	s.Worlds += t.Worlds
	s.Locked += t.Locked
	s.Flapping += t.Flapping
	s.Moves += t.Moves
	s.Crashes += t.Crashes
	s.Conflicts += t.Conflicts
	s.Releases += t.Releases
	s.Removals += t.Removals
	s.Starts += t.Starts
	s.Ticks += t.Ticks
}

// check is that the worlds had in them what they are for.
func (s *statistics) check(t *testing.T) {
	t.Helper()

	for what, n := range map[string]int{
		"locked worlds": s.Locked, "flapping worlds": s.Flapping, "crashes": s.Crashes,
		"conflicts": s.Conflicts, "releases": s.Releases, "moves": s.Moves / 10,
		"removals": s.Removals, "starts": s.Starts,
	} {
		if n < s.Worlds/10 {
			t.Errorf("the worlds are too tame: %d %s in %d of them", n, what, s.Worlds)
		}
	}
}

// TestSameSeedSameWorld is that a failure can be played again.
func TestSameSeedSameWorld(t *testing.T) {
	for seed := uint64(1); seed < 10; seed++ {
		first, second := play(seed), play(seed)

		if strings.Join(first.world.log, "\n") != strings.Join(second.world.log, "\n") {
			t.Fatalf("two worlds of seed %d", seed)
		}
	}
}
