package sim

import (
	"flag"
	"os"
	"runtime"
	"runtime/debug"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/spillway-dev/spillway/internal/fleet/hub/decision"
	"github.com/spillway-dev/spillway/internal/fleet/hub/model"
	"github.com/spillway-dev/spillway/rollout"
)

var (
	seedFlag  = flag.Uint64("seed", 0, "play this one world, and tell what happens in it")
	seedsFlag = flag.Uint64("seeds", 2000, "how many worlds to play")
	fromFlag  = flag.Uint64("from", 0, "how many worlds to leave out before")
	stormFlag = flag.Bool("storm", false, "play the storms alone, which is faster: what they break, and not whether a rollout ends")
)

// storm is how many ticks it storms.
const storm = 100

// TestMain spends memory to save time: worlds leave a lot behind, and not for long.
func TestMain(m *testing.M) {
	debug.SetGCPercent(800)
	os.Exit(m.Run())
}

// TestSimulation plays worlds, each from its seed.
func TestSimulation(t *testing.T) {
	if *seedFlag != 0 {
		s := play(*seedFlag, allRules(), true)
		t.Log("\n" + strings.Join(s.world.log, "\n"))
		s.report(t, *seedFlag)

		return
	}

	playStories(t)

	sum := playAll(t, *seedsFlag, allRules())
	t.Log(sum)

	if !*stormFlag {
		sum.check(t)
	}
}

// playAll plays worlds side by side, up to the first that fails.
func playAll(t *testing.T, seeds uint64, r *rules) statistics {
	t.Helper()

	var (
		next  atomic.Uint64
		mutex sync.Mutex
		group sync.WaitGroup
	)

	sum := statistics{}

	for range runtime.GOMAXPROCS(0) {
		group.Go(func() {
			for seed := *fromFlag + next.Add(1); seed <= *fromFlag+seeds && !t.Failed(); seed = *fromFlag + next.Add(1) {
				s := playOne(seed, r)

				mutex.Lock()
				s.report(t, seed)
				sum.add(s)
				mutex.Unlock()
			}
		})
	}

	group.Wait()

	return sum
}

// simulation is one world being played.
type simulation struct {
	world    *world
	managers []*manager
	failure  string
	ticks    int
}

func playOne(seed uint64, r *rules) *simulation {
	if *stormFlag {
		return brave(seed, r, false)
	}

	return play(seed, r, false)
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
	s := &simulation{world: w, managers: []*manager{newManager(w, r, "hub-1"), newManager(w, r, "hub-2")}}

	for range storm {
		if s.tick(); s.ended() {
			break
		}
	}

	return s
}

func (s *simulation) ended() bool { return s.failure != "" || len(s.world.oracle.violations) > 0 }

// tick lets the world go on, and everybody do something in a random order.
func (s *simulation) tick() {
	s.ticks++
	s.world.live()

	// After the storm there is one leader, and a user who decides.
	active := s.managers
	if s.world.storm {
		s.world.users()
	} else {
		s.world.decideGates(1)
		s.world.approveRemovals(1)
		active = active[:1]
	}

	for _, i := range s.world.rnd.Perm(len(active)) {
		active[i].act()
	}

	s.world.oracle.look()
}

// settle waits for the rollout to come to its end.
func (s *simulation) settle() {
	if s.ended() {
		return
	}

	s.world.endStorm()

	for _, m := range s.managers {
		m.asleep = noon
	}

	for range 2000 {
		s.tick()

		if s.ended() || s.isComplete() {
			return
		}
	}

	m := s.managers[0]
	m.refresh(0)
	p := decision.Decide(m.observed())
	s.failure = "it does not come to its end: " + string(p.Phase) + ", " + p.At().Message()
}

// isComplete: every cluster that is selected runs what is wanted, and nothing else
// is assigned anywhere.
func (s *simulation) isComplete() bool {
	w := s.world
	status := &w.module.status
	if status.Phase != string(rollout.PhaseComplete) || status.ObservedGeneration != w.module.generation || len(status.Moves) > 0 {
		return false
	}

	for i := range w.clusters {
		c := &w.clusters[i].Cluster
		a := w.assemblages[c.Name]

		switch {
		case !w.isSelected(c) && a.assigned:
			return false
		case w.isSelected(c) && !s.isExcluded(c) && (a.revision != w.wanted() || !w.isUp(c.Name) || a.drifted):
			return false
		case w.isSelected(c) && !s.isExcluded(c) && !w.isPinned(&a):
			return false
		}
	}

	return true
}

// isPinned is true of a cluster that runs, and is assigned, what the tag of its revision
// was looked up to be.
func (w *world) isPinned(a *assemblage) bool {
	v := view{revisions: w.revisions}
	resolved := v.resolved(a.revision)

	return !w.tagged || resolved != "" && a.exact == digest(resolved) && a.resolved == a.exact
}

func (s *simulation) isExcluded(c *model.Cluster) bool {
	r := s.world.module.spec.Rollout

	return r.UnmatchedClusters == "Exclude" && s.world.oracle.stageOf(c) == ""
}

// beQuiet checks that no manager writes anything once there is nothing left to do.
func (s *simulation) beQuiet() {
	if s.ended() {
		return
	}

	for range 20 {
		s.tick()
	}

	before := s.world.writes
	for i := range s.world.revisions { // which moves no cluster
		s.world.moved[s.world.revisions[i].Name] += one(s.world.tagged)
	}

	for range 30 {
		s.tick()
	}

	if s.world.writes != before {
		s.failure = "it is complete, and still something is written"
	}
}

// report says what went wrong, if anything did, and tells the end of the story.
func (s *simulation) report(t *testing.T, seed uint64) {
	t.Helper()

	if failure := s.verdict(); failure != "" {
		log := play(seed, s.managers[0].rules, true).world.log
		t.Errorf("seed %d: %s\n%s\nplay it again with: go test ./internal/fleet/sim -run TestSimulation -seed=%d -v",
			seed, failure, strings.Join(log[max(0, len(log)-60):], "\n"), seed)
	}
}

// verdict is the first thing that went wrong, empty if nothing did.
func (s *simulation) verdict() string {
	if v := s.world.oracle.violations; len(v) > 0 {
		return v[0]
	}

	return s.failure
}

// statistics tell whether the worlds were wild enough to mean anything.
type statistics map[string]int

func (all statistics) add(s *simulation) {
	all["worlds"]++
	all["flapping"] += one(s.world.flaps)
	all["ticks"] += s.ticks
	all["clusters"] += s.world.names

	for what, n := range s.world.counts {
		all[what] += n
	}
}

// check is that there was no world without a storm worth the name.
func (all statistics) check(t *testing.T) {
	t.Helper()

	for _, what := range []string{
		"flapping", "crashes", "conflicts", "downs", "live looks", "edits", "rollbacks", "given up", "approvals", "removals", "gates", "pins", "unready",
		"unreachable", "leaves", "deselected", "selectors", "suspended", "tags moved", "hotfixes", string(decision.Resolve), string(decision.Assign), string(decision.Correct), string(decision.Unassign),
	} {
		if all[what] < all["worlds"]/20 {
			t.Errorf("the worlds are too tame: %d of %q in %d", all[what], what, all["worlds"])
		}
	}

	if what := "downs under a total"; all[what] < all["worlds"]/100 {
		t.Errorf("the worlds are too tame: %d of %q in %d", all[what], what, all["worlds"])
	}
}

// TestSameSeedSameWorld is that a failure can be played again.
func TestSameSeedSameWorld(t *testing.T) {
	for seed := uint64(1); seed < 10; seed++ {
		first, second := play(seed, allRules(), true), play(seed, allRules(), true)

		if strings.Join(first.world.log, "\n") != strings.Join(second.world.log, "\n") {
			t.Fatalf("two worlds of seed %d", seed)
		}
	}
}
