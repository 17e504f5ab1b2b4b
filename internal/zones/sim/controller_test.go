package sim

import (
	"slices"
	"strings"
	"time"

	"github.com/spillway-dev/spillway/internal/zones/decision"
)

// controllers let the controller of each set look at it, or not yet.
func (w *world) controllers() {
	for i := len(w.sets) - 1; i >= 0; i-- {
		s := &w.sets[i]
		if s.deleting && !slices.ContainsFunc(w.pods, func(p pod) bool { return p.owner == s.uid }) {
			w.notef("%s is gone", s.name)
			w.oracle.gone(s.name)
			w.sets = slices.Delete(w.sets, i, i+1)
			w.nextSet()

			continue
		}

		if w.chance(w.keen) {
			w.seen[s.uid] = s.setSpec
		}

		if w.chance(w.keen) {
			w.sync(s)
		}
	}
}

// sync is one look of the controller at a set, by the spec that it has seen.
func (w *world) sync(s *set) {
	spec := w.seen[s.uid]
	before := *s
	s.observed, s.update = spec.generation, spec.template
	w.adopt(s)

	if !s.deleting && w.scale(s, &spec) && spec.strategy == decision.RollingUpdate {
		w.roll(s, &spec)
	}

	w.complete(s, &spec)

	if s.observed != before.observed || s.update != before.update || s.current != before.current {
		w.changed(s)
	}
}

// adopt removes Pods of a set that is gone, as the garbage collector does.
func (w *world) adopt(s *set) {
	if !s.deleting {
		return
	}

	for i := range w.pods {
		if p := &w.pods[i]; p.owner == s.uid && !p.terminating {
			p.terminating, p.ready, p.version = true, false, w.nextPod()
		}
	}
}

// scale makes Pods and takes away those that are too many. It is false where a set
// of ordered Pods waits for one of them.
func (w *world) scale(s *set, spec *setSpec) bool {
	for i := range spec.replicas {
		p := w.pod(s, spec.first+i)

		if p == nil && w.podNamed(s.podName(spec.first+i)) == nil {
			w.create(s, spec, i)

			if spec.ordered {
				return false
			}

			continue
		}

		if spec.ordered && !w.isAvailable(spec, p) {
			return false
		}
	}

	for i := range w.pods {
		p := &w.pods[i]
		if p.owner == s.uid && !p.terminating && (p.ordinal < spec.first || p.ordinal >= spec.first+spec.replicas) {
			p.terminating, p.ready, p.version = true, false, w.nextPod()
		}
	}

	return true
}

// isAvailable is what the controller takes for available.
func (w *world) isAvailable(spec *setSpec, p *pod) bool {
	return p != nil && !p.terminating && p.ready && !w.now.Before(p.since.Add(spec.minReady))
}

// create makes a Pod at the revision that the partition asks for.
func (w *world) create(s *set, spec *setSpec, i int) {
	p := pod{name: s.podName(spec.first + i), zone: s.name, ordinal: spec.first + i, owner: s.uid, uid: w.uid(), version: w.nextPod(), revision: s.update, created: w.now, since: w.now}
	if spec.strategy == decision.RollingUpdate && i < spec.partition {
		p.revision = s.current
	}

	p.broken = isBad(p.revision) && w.chance(0.7)
	w.pods = append(w.pods, p)
	w.notef("%s is created at %s", p.name, p.revision)
}

// roll replaces Pods at and above the partition.
func (w *world) roll(s *set, spec *setSpec) {
	if w.caps.MaxUnavailable {
		w.rollWide(s, spec)
	} else {
		w.rollOne(s, spec)
	}
}

// rollOne is the controller without rollingUpdate.maxUnavailable.
func (w *world) rollOne(s *set, spec *setSpec) {
	for i := spec.replicas - 1; i >= spec.partition; i-- {
		p := w.pod(s, spec.first+i)

		switch {
		case p != nil && p.revision != s.update && !p.terminating:
			w.replace(s, spec, p)

			return
		case !w.isAvailable(spec, p):
			return
		}
	}
}

// rollWide is the controller with it: where Pods are parallel it replaces those
// first that are not available.
func (w *world) rollWide(s *set, spec *setSpec) {
	down, budget := 0, max(1, spec.maxUnavailable)

	for i := range spec.replicas {
		if !w.isAvailable(spec, w.pod(s, spec.first+i)) {
			down++
		}
	}

	room := budget - down

	for _, up := range []bool{false, true} {
		for i := spec.replicas - 1; i >= spec.partition; i-- {
			p := w.pod(s, spec.first+i)
			if p == nil || p.terminating || p.revision == s.update || w.isAvailable(spec, p) != up {
				continue
			}

			if up && room <= 0 || !up && spec.ordered {
				continue
			}

			room -= one(up)
			w.replace(s, spec, p)
		}
	}
}

func one(yes bool) int {
	if yes {
		return 1
	}

	return 0
}

// replace deletes a Pod. To the controller one is not available either that has
// been ready at its old revision for a moment only.
func (w *world) replace(s *set, spec *setSpec, p *pod) {
	up := w.isUp(s, p) && w.isAvailable(spec, p)
	p.terminating, p.ready, p.version = true, false, w.nextPod()
	w.notef("the controller replaces %s", p.name)
	w.oracle.tookDown(s, p, up, "the controller")
}

// complete advances the current revision.
func (w *world) complete(s *set, spec *setSpec) {
	if spec.strategy == decision.OnDelete && !w.caps.AdvancesRevision {
		return
	}

	for i := range spec.replicas {
		if p := w.pod(s, spec.first+i); p == nil || p.terminating || !p.ready || p.revision != s.update {
			return
		}
	}

	s.current = s.update
}

// kubelets let Pods do what Pods do.
func (w *world) kubelets() {
	for i := len(w.pods) - 1; i >= 0; i-- {
		p := &w.pods[i]
		bad := isBad(p.revision)

		switch {
		case p.terminating:
			if w.chance(0.4) && (!w.isSurplus(p) || w.chance(w.grace)) {
				w.remove(p.name)
			}
		case w.storm && w.flaps && w.chance(0.004):
			w.notef("%s vanishes", p.name)
			w.remove(p.name)
		case p.ready && w.storm && w.flaps && w.chance(0.006):
			w.turn(p, false)
		case !p.ready && !bad && w.chance(0.3):
			w.turn(p, true)
		case w.storm && w.chance(0.02):
			p.version = w.nextPod() // a user annotates it
		}
	}
}

// isBad is true of a revision at which no Pod becomes ready.
func isBad(revision string) bool { return strings.HasSuffix(revision, "-bad") }

func (w *world) turn(p *pod, ready bool) {
	p.ready, p.since, p.version = ready, w.now, w.nextPod()
	p.wasReady = p.wasReady || ready
	w.notef("%s at %s: ready is %v", p.name, p.revision, ready)
}

// live lets time pass.
func (w *world) live() {
	w.now = w.now.Add(time.Duration(w.rnd.IntN(4)) * time.Second)
	w.kubelets()
	w.controllers()
}
