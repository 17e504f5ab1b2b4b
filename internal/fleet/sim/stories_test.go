package sim

import (
	"time"

	"github.com/spillway-dev/spillway/api/fleet/v1alpha1"
	"github.com/spillway-dev/spillway/internal/lab/worlds"
	"github.com/spillway-dev/spillway/internal/ring"
)

// story is a world in which everything happens on purpose. It is for what needs more
// coincidences than random worlds have: a user who goes back while a move is permitted, and
// a manager that is slow, or whose view is old, at just that time.
type story struct {
	*simulation

	first, second *manager
}

// stories are played before the worlds of the seeds.
func stories() map[string]func(*story) {
	return map[string]func(*story){
		"a user goes back while a manager is about to act":        theUserGoesBackBeforeTheAct,
		"a manager acts upon what others have withdrawn":          theManagerSleepsBeforeTheAct,
		"what withdraws an assignment is refused":                 theWithdrawalIsRefused,
		"an assignment that was withdrawn arrives later":          theAssignmentIsHeldBack,
		"a user goes back after an act that a view does not show": theUserGoesBackAfterTheAct,
		"a user goes back while a cluster soaks":                  theUserGoesBackInTheSoak,
		"a user goes back to a revision that is about to go":      theUserGoesBackBeforeTheRevisionGoes,
		"a revision is made again while it is being deleted":      theRevisionIsMadeAgain,
		"a revision is needed by what a view does not show":       theRevisionIsUsedUnseen,
		"a hub is lost that has given up a revision":              theHubIsLostAfterAReturn,
		"a cluster tells what was retried meanwhile":              theRetryIsTold,
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

// newStory is a world of three clusters, all of which run the first revision, of which one
// may be down. The user wants the second revision, and one cluster has it. From then on the
// managers keep to the rules.
func newStory(r *rules) *story {
	const seed = 3 // neither tags nor wrong clocks

	w := newWorld(seed, false)
	w.clusters, w.assemblages, w.revisions, w.flaps, w.storm = nil, map[string]assemblage{}, nil, false, false
	w.module.status = v1alpha1.ModuleStatus{}
	w.respec(func(s *v1alpha1.ModuleSpec) {
		s.Strategy, s.Rollout = v1alpha1.Incremental, &v1alpha1.Rollout{ProgressDeadlineSeconds: new(int32(600))}
	})

	for range 3 {
		w.join()
		c := &w.clusters[len(w.clusters)-1]
		c.Ready, c.deselected, c.Labels = true, false, map[string]string{"env": "prod"}
	}

	w.settled()
	w.newTag(true)

	s := &story{simulation: &simulation{world: w}}
	s.first, s.second = newManager(w, allRules(), "hub-1"), newManager(w, allRules(), "hub-2")
	s.managers = []*manager{s.first, s.second}

	for w.assigned(w.wanted()) == 0 || !w.allUp() {
		s.passes(s.first)
		s.after(time.Second)
		w.worked()
	}

	s.first.rules, s.second.rules = r, r

	return s
}

// passes has a manager look, decide, and write all that it decides.
func (s *story) passes(m *manager) {
	m.refresh(0)
	s.decides(m)
	s.acts(m)
}

// decides has a manager decide from the view that it has.
func (s *story) decides(m *manager) {
	m.looked = false
	m.decide()
}

// acts has a manager write what it has decided.
func (s *story) acts(m *manager) {
	for len(m.requests) > 0 {
		m.goOn()
	}

	s.world.oracle.look()
}

// permits has a manager permit the next move, and look at what it has permitted.
func (s *story) permits(m *manager) {
	for range 10 {
		if len(s.world.module.status.Moves) > 0 && len(m.requests) > 0 && m.requests[0].status == nil {
			return
		}

		s.acts(m)
		m.refresh(0)
		s.decides(m)
	}
}

// after is some time later.
func (s *story) after(d time.Duration) { s.world.now = s.world.now.Add(d) }

// goesBack has the user want the revision again that ran at first.
func (s *story) goesBack() {
	s.world.respec(func(spec *v1alpha1.ModuleSpec) { spec.TargetRevision = s.world.module.status.CurrentRevision })
}

// suspends has the user suspend the module, or resume it.
func (s *story) suspends(yes bool) {
	s.world.respec(func(spec *v1alpha1.ModuleSpec) { spec.Suspend = yes })
}

// firstActsLater has the second manager do all that it wants to, and then the first act as it
// was about to.
func (s *story) firstActsLater() {
	for range 4 {
		s.after(time.Second)
		s.passes(s.second)
	}

	s.acts(s.first)
}

// theUserGoesBackBeforeTheAct: the first manager has permitted a move and is slow to make
// it. The user suspends the module and goes back, so the second manager does not want that
// move any more, but has to count it for as long as the first may make it. Its view is
// behind, so it looks live, which shows what was made and not what may still be.
func theUserGoesBackBeforeTheAct(s *story) {
	s.permits(s.first)
	s.after(time.Second)
	s.suspends(true)
	s.second.see(0)
	s.second.see(3)
	s.decides(s.second)
	s.acts(s.second)
	s.goesBack()
	s.suspends(false)
	s.firstActsLater()
}

// theManagerSleepsBeforeTheAct: the first manager has permitted a move, and does not run for a
// minute. The user goes back meanwhile, and the second manager makes another move.
func theManagerSleepsBeforeTheAct(s *story) {
	s.permits(s.first)
	s.goesBack()
	s.suspends(true)
	s.after(time.Minute)
	s.passes(s.second)
	s.suspends(false)
	s.firstActsLater()
}

// theWithdrawalIsRefused: the first manager has permitted a move and is slow to make it. The user goes back, and
// what the second manager sends to withdraw that move is refused.
func theWithdrawalIsRefused(s *story) {
	s.permits(s.first)
	s.goesBack()

	for i := range s.first.requests {
		if c := s.first.requests[i].write.Cluster; c != nil {
			s.second.refusals[c.Name] = ring.Refusal{At: s.second.now().Add(10 * time.Second), Reason: "it was refused"}
		}
	}

	s.firstActsLater()
}

// theAssignmentIsHeldBack: the network holds back for 47 seconds what the first manager has sent.
func theAssignmentIsHeldBack(s *story) {
	s.permits(s.first)
	s.isHeldBack(s.first, 47*time.Second)
	s.goesBack()

	for range 12 {
		s.after(4 * time.Second)
		s.passes(s.second)
	}

	s.world.land()
	s.world.oracle.look()
}

// isHeldBack puts what a manager is about to write on a slow network.
func (s *story) isHeldBack(m *manager, by time.Duration) {
	for i := range m.requests {
		if r := &m.requests[i]; m.isRight(r) {
			s.world.flights = append(s.world.flights, m.slow(*r, by))
		}
	}

	m.requests = nil
}

// theUserGoesBackAfterTheAct: the first manager has made a move that was permitted, and
// does not run any more. The view of the second does not show what was made, however late
// it is.
func theUserGoesBackAfterTheAct(s *story) {
	s.second.refresh(0)
	s.permits(s.first)
	s.acts(s.first)
	s.goesBack()

	for range 8 {
		s.after(10 * time.Second)
		s.second.see(0)
		s.decides(s.second)
		s.acts(s.second)
	}
}

// theUserGoesBackInTheSoak: two clusters are at the revision that the user takes back, and one
// of them has not been ready for long. It is waited for no more.
func theUserGoesBackInTheSoak(s *story) {
	w := s.world
	w.respec(func(spec *v1alpha1.ModuleSpec) { spec.Rollout.MinReadySeconds = 60 })

	for w.assigned(w.wanted()) < 2 || !w.allUp() {
		s.goesOn(s.first)
	}

	s.goesBack()

	for w.assigned(w.wanted()) > 0 || !w.allUp() {
		s.goesOn(s.first)
	}
}

// theUserGoesBackBeforeTheRevisionGoes: the first manager is about to delete the former
// revision, and does not run while the user goes back to it.
func theUserGoesBackBeforeTheRevisionGoes(s *story) {
	w, former := s.world, s.world.module.status.CurrentRevision
	s.isAboutToDelete(s.first)
	w.respec(func(spec *v1alpha1.ModuleSpec) { spec.TargetRevision = former })

	for range 20 {
		s.goesOn(s.second)
	}

	s.acts(s.first)
}

// theRevisionIsMadeAgain: the request of the first manager to delete the former revision takes
// long. The second deletes it, and the user wants it again.
func theRevisionIsMadeAgain(s *story) {
	s.isAboutToDelete(s.first)
	former := s.first.requests[0].write.Revision
	s.isHeldBack(s.first, 0)

	for s.second.view.has(former) {
		s.goesOn(s.second)
	}

	s.world.wantTag(1)

	for range 20 {
		s.goesOn(s.second)
	}

	s.world.land()
}

// isAboutToDelete has the rollout go on to its end, after which the former revision is not
// needed, and a manager decide to delete it.
func (s *story) isAboutToDelete(m *manager) {
	w, former := s.world, s.world.module.status.CurrentRevision
	w.respec(func(spec *v1alpha1.ModuleSpec) { spec.RevisionHistoryLimit = new(int32(0)) })

	for w.module.status.CurrentRevision == former || len(w.module.status.Moves) > 0 {
		s.goesOn(s.second)
	}

	m.refresh(0)
	s.decides(m)
}

// theRevisionIsUsedUnseen: the first manager has moved the cluster that has the second revision
// to a third one, and then it breaks, and the user wants a fourth. So the second manager
// permits it to move on, from a view that does not show what the first has made.
func theRevisionIsUsedUnseen(s *story) {
	w := s.world
	w.respec(func(spec *v1alpha1.ModuleSpec) { spec.RevisionHistoryLimit = new(int32(0)) })
	second := w.wanted()
	w.newTag(true)
	s.passes(s.first)
	s.second.refresh(0)
	s.permits(s.first)
	s.acts(s.first)

	for i := range w.clusters {
		c := &w.clusters[i]
		c.Ready = s.second.view.assemblages[c.Name].revision != second
	}
	w.clustersAt = w.next()
	w.newTag(true)

	for range 6 {
		s.after(time.Second)

		for _, kind := range []int{0, 1, 3} { // and not the assemblages
			s.second.see(kind)
		}

		s.decides(s.second)
		s.acts(s.second)
	}
}

// theHubIsLostAfterAReturn: the second revision is complete, the third does not work and is given up, and then the
// hub is lost. The new one takes over the clusters, and knows from them not to send the third again.
func theHubIsLostAfterAReturn(s *story) {
	w := s.world
	w.mortal = true
	w.respec(func(spec *v1alpha1.ModuleSpec) { spec.Rollout.OnFailure = v1alpha1.Rollback })

	for range 100 {
		s.goesOn(s.first)
	}
	w.newTag(false)

	for range 200 {
		s.goesOn(s.first)
	}
	w.loseHub()
	s.first.begins()
	s.second.begins()

	for range 50 {
		s.goesOn(s.first)
	}
}

// theRetryIsTold: after such a loss the user retries the third revision, which works by now. A cluster that was
// unknown until then tells that it was given up.
func theRetryIsTold(s *story) {
	w := s.world
	theHubIsLostAfterAReturn(s)
	last := &w.clusters[len(w.clusters)-1]
	last.hidden, w.clustersAt = true, w.next()
	w.loseHub()
	s.first.begins()
	s.second.begins()

	for range 50 {
		s.goesOn(s.first)
	}
	w.retries(1)

	for range 10 {
		s.goesOn(s.first)
	}
	last.hidden, w.clustersAt = false, w.next()

	for range 50 {
		s.goesOn(s.first)
	}
}

// goesOn has a manager look, decide and write, and every cluster go on with its work.
func (s *story) goesOn(m *manager) {
	s.passes(m)
	s.after(time.Second)
	s.world.worked()
	s.world.oracle.look()
}

// assigned is how many clusters are assigned a revision.
func (w *world) assigned(revision string) (n int) {
	for _, a := range w.assemblages {
		n += one(a.assigned && a.revision == revision)
	}

	return n
}

// allUp is true if every cluster is up.
func (w *world) allUp() bool {
	for i := range w.clusters {
		if !w.isUp(w.clusters[i].Name) {
			return false
		}
	}

	return true
}

// worked is that every cluster goes on with its work.
func (w *world) worked() {
	for i := range w.clusters {
		w.lookAt(&w.clusters[i])
		w.work(&w.clusters[i])
	}
}
