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

	"github.com/spillway-dev/spillway/internal/zones/decision"
	"github.com/spillway-dev/spillway/rollout"
)

var (
	seedFlag  = flag.Uint64("seed", 0, "play this one world, and tell what happens in it")
	seedsFlag = flag.Uint64("seeds", 2000, "how many worlds to play")
	stormFlag = flag.Bool("storm", false, "play the storms alone, which is faster: what they break, and not whether a rollout ends")
)

// storm is how many ticks it storms.
const storm = 120

// onceWrong are worlds in which the plan was wrong once, and how.
var onceWrong = map[uint64]string{
	17130: "what a user broke in zone-c was repaired while zone-a was disrupted, which had never been complete before",
	28978: "two Pods that were repaired, and are to be replaced again, waited for each other",
	33340: "a broken Pod of zone-b waited for zone-a, which was held and waited for zone-b",
}

// TestMain spends memory to save time: worlds leave a lot behind, and not for long.
func TestMain(m *testing.M) {
	debug.SetGCPercent(800)
	os.Exit(m.Run())
}

// TestSimulation plays worlds, each from its seed: first those that were wrong once, and the
// stories.
func TestSimulation(t *testing.T) {
	if *seedFlag != 0 {
		s := play(*seedFlag, allRules(), true)
		t.Log("\n" + strings.Join(s.world.log, "\n"))
		s.report(t, *seedFlag)

		return
	}

	for seed, how := range onceWrong {
		if s := play(seed, allRules(), false); s.verdict() != "" {
			t.Log(how)
			s.report(t, seed)
		}
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
			for seed := next.Add(1); seed <= seeds && !t.Failed(); seed = next.Add(1) {
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
	world     *world
	managers  []*manager
	bystander *bystander
	// downscaler is another one.
	downscaler *downscaler
	failure    string
	ticks      int
}

func playOne(seed uint64, r *rules) *simulation {
	if *stormFlag {
		return brave(seed, r, false)
	}

	return play(seed, r, false)
}

// play plays a world: a storm, what comes after it, and the quiet at the end.
func play(seed uint64, r *rules, told bool) *simulation {
	s := brave(seed, r, told)
	s.settle()
	s.beQuiet()

	return s
}

// brave plays the storm alone.
func brave(seed uint64, r *rules, told bool) *simulation {
	w := newWorld(seed, told)
	s := &simulation{world: w, bystander: &bystander{world: w}, downscaler: &downscaler{world: w}}
	s.managers = []*manager{newManager(w, r, "manager-1"), newManager(w, r, "manager-2")}
	s.weather()

	return s
}

func (s *simulation) ended() bool { return s.failure != "" || len(s.world.oracle.violations) > 0 }

// tick lets the world go on, and everybody do something in a random order.
func (s *simulation) tick() {
	s.ticks++
	s.world.live()

	if s.world.storm {
		s.world.users()
	}

	// After the storm there is one leader.
	active := s.managers
	if !s.world.storm {
		active = active[:1]
	}

	for _, i := range s.world.rnd.Perm(len(active)) {
		active[i].act()
	}

	s.bystander.act()
	s.downscaler.act()
	s.world.oracle.look()
}

func (s *simulation) weather() {
	for range storm {
		s.tick()

		if s.ended() {
			return
		}
	}
}

// settle waits for the rollout to come to its end.
func (s *simulation) settle() {
	if s.ended() {
		return
	}

	s.world.settle()

	for _, m := range s.managers {
		m.asleep = noon
	}

	for range 1500 {
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

// isComplete: the Pods are where they should be, the zones held, the lock free.
func (s *simulation) isComplete() bool {
	status := &s.world.group.status
	if status.Phase != string(rollout.PhaseComplete) || status.Lock != nil || status.ObservedGeneration != s.world.group.generation || !s.world.isWell() {
		return false
	}

	for i := range s.world.pods {
		p := &s.world.pods[i]
		if set := s.world.set(p.zone); set == nil || p.revision != set.template {
			return false
		}
	}

	return true
}

// beQuiet is that no manager writes anything once there is nothing left to do.
func (s *simulation) beQuiet() {
	if s.ended() {
		return
	}

	for range 15 {
		s.tick()
	}

	before := s.world.writes

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
		t.Errorf("seed %d: %s\n%s\nplay it again with: go test ./internal/zones/sim -run TestSimulation -seed=%d -v",
			seed, failure, strings.Join(log[max(0, len(log)-40):], "\n"), seed)
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

	for what, n := range s.world.counts {
		all[what] += n
	}
}

// check is that there was no world without a storm worth the name.
func (all statistics) check(t *testing.T) {
	t.Helper()

	for _, what := range []string{
		"flapping", "crashes", "conflicts", "downs", "evictions", "downscales", "live looks",
		string(decision.Open), string(decision.Lend), string(decision.Hold), string(decision.Advance),
	} {
		if all[what] < all["worlds"]/10 {
			t.Errorf("the worlds are too tame: %d of %q in %d", all[what], what, all["worlds"])
		}
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
