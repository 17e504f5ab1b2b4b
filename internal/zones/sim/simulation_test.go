package sim

import (
	"maps"
	"testing"

	"github.com/spillway-dev/spillway/internal/lab/worlds"
	"github.com/spillway-dev/spillway/internal/zones/decision"
	"github.com/spillway-dev/spillway/rollout"
)

// storm is how many ticks it storms.
const storm = 120

// onceWrong are worlds in which the plan was wrong once, and how.
func onceWrong() map[uint64]string {
	return map[uint64]string{
		17130: "what a user broke in zone-c was repaired while zone-a was disrupted, which had never been complete before",
		28978: "two Pods that were repaired, and are to be replaced again, waited for each other",
		33340: "a broken Pod of zone-b waited for zone-a, which was held and waited for zone-b",
	}
}

func TestMain(m *testing.M) { worlds.Main(m) }

// TestSimulation plays worlds, each from its seed: first those that were wrong once, and the
// stories.
func TestSimulation(t *testing.T) { game().Run(t) }

// TestSameSeedSameWorld is that a failure can be played again.
func TestSameSeedSameWorld(t *testing.T) { game().CheckSame(t) }

func game() *worlds.Game {
	return &worlds.Game{
		Package: "./internal/zones/sim", Seeds: 2000, OnceWrong: onceWrong(), Stories: played(),
		Play: func(seed uint64, how worlds.How) worlds.World {
			if how.Storm {
				return brave(seed, allRules(), how.Logged)
			}

			return play(seed, allRules(), how.Logged)
		},
		Often: map[string]int{
			"flapping": 10, "crashes": 10, "conflicts": 10, "downs": 10, "evictions": 10, "downscales": 10, "live looks": 10, "slow requests": 10,
			string(decision.Open): 10, string(decision.Lend): 10, string(decision.Hold): 10, string(decision.Advance): 10, string(decision.Fence): 100,
		},
	}
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
	s.world.land()

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

	for len(s.world.flights) > 0 && !s.ended() { // what arrives late is cleaned up
		s.tick()
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
	counts := worlds.Counts{"flapping": one(s.world.flaps), "ticks": s.ticks}
	maps.Copy(counts, s.world.counts)

	return counts
}
