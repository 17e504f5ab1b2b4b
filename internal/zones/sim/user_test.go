package sim

import (
	"fmt"
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"

	"github.com/spillway-dev/spillway/api/spillway/v1alpha1"
	"github.com/spillway-dev/spillway/internal/zones/decision"
)

// windowSeconds is how long a maintenance window is open, each three minutes.
const windowSeconds = 100

// policy is what a user asks for.
func (w *world) policy() v1alpha1.RolloutGroupSpec {
	spec := v1alpha1.RolloutGroupSpec{}

	switch w.rnd.IntN(3) {
	case 0:
		spec.MaxUnavailable = new(intstr.FromInt(1 + w.rnd.IntN(3)))
	case 1:
		spec.MaxUnavailable = new(intstr.FromString(fmt.Sprintf("%d%%", 1+w.rnd.IntN(100))))
	}

	if w.chance(0.3) {
		spec.MinReadySeconds = int32(1 + w.rnd.IntN(15))
	}

	if w.chance(0.3) {
		spec.Soak = &metav1.Duration{Duration: w.seconds(5, 40)}
	}

	if w.chance(0.3) {
		spec.ProgressDeadlineSeconds = new(int32(30 + w.rnd.IntN(60)))
	}

	if w.chance(0.15) {
		spec.MaintenanceWindows = []v1alpha1.MaintenanceWindow{{Schedule: "*/3 * * * *", DurationSeconds: windowSeconds}}
	}

	if w.chance(0.7) {
		spec.StuckAfterSeconds = new(int32(10 + w.rnd.IntN(60)))
	}

	if w.chance(0.2) {
		spec.StuckPods = v1alpha1.KeepStuckPods
	}

	return spec
}

// users do something, rarely.
func (w *world) users() {
	if len(w.edits) > 0 && w.chance(0.6) {
		w.apply()
	}

	s := &w.sets[w.rnd.IntN(len(w.sets))]

	switch w.rnd.IntN(90) {
	case 0, 1, 2:
		w.edit(w.chance(0.35))
	case 3:
		w.revert()
	case 4:
		w.pauseZone(s, true)
	case 5:
		w.pauseTurn()
	case 6, 7, 8:
		w.pauseZone(s, false)
	case 9:
		w.respecify("pauses", func(spec *v1alpha1.RolloutGroupSpec) { spec.Pause = &v1alpha1.Pause{By: "alice"} })
	case 10, 11, 12:
		w.respecify("resumes", func(spec *v1alpha1.RolloutGroupSpec) { spec.Pause = nil })
	case 13:
		w.respecify("wants a retry", func(spec *v1alpha1.RolloutGroupSpec) { spec.Retry = &v1alpha1.Retry{At: metav1.NewTime(w.now)} })
	case 14:
		w.respecify("wants another order", func(spec *v1alpha1.RolloutGroupSpec) { spec.ZoneOrder = w.names() })
	default:
		if w.flaps {
			w.meddle(s)
		}
	}
}

// meddle is what takes Pods away, or opens what was held.
func (w *world) meddle(s *set) {
	switch w.rnd.IntN(300) {
	case 0, 1, 2:
		w.scaleTo(s, w.rnd.IntN(4))
	case 3, 4, 5:
		w.deleteAny()
	case 6:
		if w.lasting() > 2 && !s.deleting {
			w.notef("a user deletes %s", s.name)
			s.deleting = true
			w.changed(s)
		}
	case 7:
		if len(w.sets) < 4 {
			w.addZone()
		}
	case 8, 9:
		w.exposeZone(s)
	}
}

// lasting is how many zones are not being deleted.
func (w *world) lasting() int {
	n := 0
	for i := range w.sets {
		n += one(!w.sets[i].deleting)
	}

	return n
}

// edit gives all zones a new template, one after the other.
func (w *world) edit(bad bool) {
	w.revisions++

	template := fmt.Sprintf("r%d", w.revisions)
	if bad {
		template += "-bad"
	}

	w.edits = nil
	for i := range w.sets {
		w.edits = append(w.edits, edit{zone: w.sets[i].name, template: template})
	}
}

// revert gives all zones the template back that they had last.
func (w *world) revert() {
	w.edits = nil
	for i := range w.sets {
		w.edits = append(w.edits, edit{zone: w.sets[i].name, template: w.sets[i].current})
	}
}

func (w *world) apply() {
	e := w.edits[0]
	w.edits = w.edits[1:]

	if s := w.set(e.zone); s != nil && s.template != e.template {
		w.notef("a user wants %s at %s", s.name, e.template)
		s.template = e.template
		w.respecified(s)
	}
}

// pauseTurn pauses the zone that moves.
func (w *world) pauseTurn() {
	if lock := w.group.status.Lock; lock != nil {
		if s := w.set(lock.Zone); s != nil {
			w.pauseZone(s, true)
		}
	}
}

func (w *world) pauseZone(s *set, paused bool) {
	if s.paused != paused {
		w.notef("a user pauses %s: %v", s.name, paused)
		s.paused = paused
		w.changed(s)
	}
}

func (w *world) respecify(what string, change func(*v1alpha1.RolloutGroupSpec)) {
	w.notef("a user %s", what)
	spec := w.group.spec.DeepCopy()
	change(spec)
	w.group.spec, w.group.generation, w.group.version = *spec, w.group.generation+1, w.next()
}

// names are those of all zones, in any order.
func (w *world) names() []string {
	var names []string
	for _, i := range w.rnd.Perm(len(w.sets)) {
		names = append(names, w.sets[i].name)
	}

	return names
}

func (w *world) scaleTo(s *set, replicas int) {
	w.notef("a user scales %s to %d", s.name, replicas)
	s.replicas = replicas
	w.respecified(s)
}

func (w *world) deleteAny() {
	if len(w.pods) == 0 {
		return
	}

	p := &w.pods[w.rnd.IntN(len(w.pods))]
	w.notef("a user deletes %s", p.name)
	p.terminating, p.ready, p.version = true, false, w.nextPod()
}

// addZone adds a zone like the others; a zone that is held by its partition may
// well be open at first.
func (w *world) addZone() {
	like := w.sets[0]
	shape := set{setSpec: setSpec{strategy: like.strategy, ordered: like.ordered, minReady: like.minReady}}

	if like.lent {
		shape.strategy = decision.RollingUpdate
	}

	for _, name := range []string{"zone-a", "zone-b", "zone-c", "zone-d"} {
		if w.set(name) == nil && !slices.ContainsFunc(w.pods, func(p pod) bool { return p.zone == name }) {
			w.notef("a user adds %s", name)
			w.oracle.exposed(w.addSet(name, shape))

			return
		}
	}
}

// exposeZone sets the partition to 0, as a manifest does that says so.
func (w *world) exposeZone(s *set) {
	if s.strategy == decision.RollingUpdate || s.lent {
		w.notef("a user opens %s", s.name)
		s.strategy, s.partition, s.maxUnavailable = decision.RollingUpdate, 0, 0
		w.respecified(s)
		w.oracle.exposed(s)
	}
}

// settle ends the storm: nothing breaks any more, nothing is paused, and what is
// wanted works.
func (w *world) settle() {
	w.notef("the storm is over")

	w.storm = false
	w.respecify("resumes", func(spec *v1alpha1.RolloutGroupSpec) {
		spec.Pause, spec.StuckPods = nil, v1alpha1.ReplaceStuckPods
	})

	for i := range w.sets {
		w.pauseZone(&w.sets[i], false)
	}

	w.edit(false)

	for len(w.edits) > 0 {
		w.apply()
	}
}
