package sim

import (
	"maps"
	"slices"
	"testing"

	"github.com/spillway-dev/spillway/internal/fleet/hub/decision"
	"github.com/spillway-dev/spillway/internal/fleet/hub/model"
	"github.com/spillway-dev/spillway/internal/lab/worlds"
	"github.com/spillway-dev/spillway/rollout"
)

// storm is how many ticks it storms.
const storm = 100

func TestMain(m *testing.M) { worlds.Main(m) }

// TestSimulation plays worlds, each from its seed, after the stories.
func TestSimulation(t *testing.T) { game().Run(t) }

// TestSameSeedSameWorld is that a failure can be played again.
func TestSameSeedSameWorld(t *testing.T) { game().CheckSame(t) }

func game() *worlds.Game {
	return &worlds.Game{
		Package: "./internal/fleet/sim", Seeds: 2000, Stories: played(),
		Play: func(seed uint64, how worlds.How) worlds.World {
			if how.Storm {
				return brave(seed, allRules(), how.Logged)
			}

			return play(seed, allRules(), how.Logged)
		},
		Often: often(),
	}
}

// often is in how many worlds, at the most, something happens once.
func often() map[string]int {
	often := map[string]int{"downs under a total": 100, string(decision.Fence): 100, "retries": 50, "retried": 100}
	for _, what := range []string{
		"flapping", "crashes", "conflicts", "downs", "live looks", "edits", "rollbacks", "given up", "approvals", "removals", "gates", "pins", "unready",
		"unreachable", "leaves", "deselected", "selectors", "suspended", "tags moved", "hotfixes", string(decision.Resolve), string(decision.Assign), string(decision.Correct), string(decision.Unassign),
		"slow requests", string(decision.CreateAssemblage), string(decision.Take), "hubs lost", "ailing", "failed tries",
	} {
		often[what] = 20
	}

	return often
}

// simulation is one world being played.
type simulation struct {
	world    *world
	managers []*manager
	failure  string
	ticks    int
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
	s.world.land()

	// After the storm there is one leader, and a user who decides.
	active := s.managers
	if s.world.storm {
		s.world.users()
	} else {
		s.world.decideGates(1)
		s.world.approveRemovals(1)
		s.world.retries(1) // a cluster may tell late that something was given up
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
	isThere := status.Phase == string(rollout.PhaseComplete) || w.isAnySuspended() && status.TargetRevision == w.wanted()
	if !isThere || status.ObservedGeneration != w.module.generation || len(status.Moves) > 0 {
		return false
	}

	for i := range w.clusters {
		c := &w.clusters[i].Cluster
		a := w.assemblages[c.Name]

		switch {
		case w.clusters[i].suspended: // it is caught up with later
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

func (w *world) isAnySuspended() bool {
	return slices.ContainsFunc(w.clusters, func(c cluster) bool { return c.suspended })
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

	for len(s.world.flights) > 0 && !s.ended() { // what arrives late is cleaned up
		s.tick()
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
	counts := worlds.Counts{"flapping": one(s.world.flaps), "ticks": s.ticks, "clusters": s.world.names}
	maps.Copy(counts, s.world.counts)

	return counts
}
