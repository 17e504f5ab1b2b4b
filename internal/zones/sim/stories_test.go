package sim

import (
	"time"

	"github.com/spillway-dev/spillway/api/spillway/v1alpha1"
	"github.com/spillway-dev/spillway/internal/lab/worlds"
	"github.com/spillway-dev/spillway/internal/zones/decision"
)

// story is a world in which everything happens on purpose. It is for what needs more
// coincidences than random worlds have.
type story struct {
	*simulation

	first, second *manager
}

// stories are played before the worlds of the seeds.
func stories() map[string]func(*story) {
	return map[string]func(*story){
		"a manager acts upon what others have withdrawn": theManagerSleepsBeforeTheAct,
		"a delete that was withdrawn arrives later":      theDeleteIsHeldBack,
		"an opening that was withdrawn arrives later":    theOpeningIsHeldBack,
	}
}

// played are the stories, each with its world to the end.
func played() map[string]func() worlds.World {
	all := map[string]func() worlds.World{}
	for name, tell := range stories() {
		all[name] = func() worlds.World {
			s := newStory(allRules())
			tell(s)
			s.settle()

			return s
		}
	}

	return all
}

// newStory is a world of three zones whose Pods Spillway deletes, all of which are up, and of
// two managers that have seen it.
func newStory(r *rules) *story {
	const seed = 1

	w := newWorld(seed, false)
	w.sets, w.pods, w.flaps, w.storm = nil, nil, false, false
	w.keen, w.group.spec = 1, v1alpha1.RolloutGroupSpec{}

	for _, name := range []string{"zone-a", "zone-b", "zone-c"} {
		w.addSet(name, set{setSpec: setSpec{strategy: decision.OnDelete}})
	}

	s := &story{simulation: &simulation{world: w, bystander: &bystander{world: w}, downscaler: &downscaler{world: w}}}
	s.first, s.second = newManager(w, r, "manager-1"), newManager(w, r, "manager-2")
	s.managers = []*manager{s.first, s.second}

	for range 5 {
		w.controllers()
		s.passes(s.first)
	}

	return s
}

// passes has a manager look, decide, and write all that it decides.
func (s *story) passes(m *manager) {
	m.refresh(0)
	m.looked = false
	m.decide()
	s.acts(m)
}

// acts has a manager write what it has decided.
func (s *story) acts(m *manager) {
	for len(m.requests) > 0 {
		m.goOn()
	}

	s.world.oracle.look()
}

// wants has the user want a template for a zone, which its controller sees.
func (s *story) wants(zone, template string) {
	s.world.edits = []edit{{zone: zone, template: template}}
	s.world.apply()
	s.world.controllers()
}

// permits has a manager permit the next move, and be about to make it.
func (s *story) permits(m *manager) {
	for range 10 {
		m.refresh(0)
		m.looked = false
		m.decide()

		if len(m.requests) > 0 && m.requests[0].status == nil {
			return
		}

		s.acts(m)
	}
}

// theManagerSleepsBeforeTheAct: the first manager has permitted to delete a Pod, and does not
// run for a minute. The user takes that change back meanwhile and wants another, and the second
// manager takes down another zone.
func theManagerSleepsBeforeTheAct(s *story) {
	s.wants("zone-a", "r1")
	s.permits(s.first)
	s.anotherZoneGoes()
	s.acts(s.first)
}

// theDeleteIsHeldBack: the network holds the delete of a Pod back for 47 seconds. The user
// pauses that zone meanwhile, and wants another to change.
func theDeleteIsHeldBack(s *story) {
	s.wants("zone-a", "r1")
	s.permits(s.first)
	s.isHeldBack(s.first, 47*time.Second)
	s.anotherZoneGoes()
	s.world.now = s.world.now.Add(10 * time.Second)
	s.world.land()
}

// theOpeningIsHeldBack: the same of a zone that its partition holds.
func theOpeningIsHeldBack(s *story) {
	for i := range s.world.sets {
		set := &s.world.sets[i]
		set.strategy, set.partition = decision.RollingUpdate, decision.Held
		s.world.respecified(set)
	}
	s.world.caps.MaxUnavailable = true
	s.world.controllers()
	theDeleteIsHeldBack(s)
	s.world.controllers()
}

// isHeldBack puts what a manager is about to write on a slow network.
func (s *story) isHeldBack(m *manager, by time.Duration) {
	for _, r := range m.requests {
		s.world.flights = append(s.world.flights, flight{request: r, manager: m, at: s.world.now.Add(by)})
	}
	m.requests = nil
}

// anotherZoneGoes has the user take back what zone-a was to become and want another template
// for zone-b, and the second manager go on with that for a while.
func (s *story) anotherZoneGoes() {
	s.wants("zone-a", "r0")
	s.wants("zone-b", "r1")

	for range 12 {
		s.world.now = s.world.now.Add(4 * time.Second)
		s.passes(s.second)
		s.world.controllers()
		s.world.oracle.look()
		if s.world.oracle.isDisrupted("zone-b-0") {
			return
		}
	}

	s.failure = "zone-b-0 is not taken down, so this story tells nothing"
}
