package sim

import (
	"cmp"
	"fmt"
	"slices"
	"strconv"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/intstr"

	"github.com/spillway-dev/spillway/api/fleet/v1alpha1"
	"github.com/spillway-dev/spillway/internal/fleet/hub/model"
	"github.com/spillway-dev/spillway/rollout"
)

// policy is what a user asks for.
func (w *world) policy() v1alpha1.ModuleSpec {
	spec := v1alpha1.ModuleSpec{
		Selector: &metav1.LabelSelector{MatchLabels: map[string]string{"env": "prod"}},
		Strategy: v1alpha1.Incremental,
		Rollout:  &v1alpha1.Rollout{},
	}
	r := spec.Rollout
	r.MaxUnreadyClusters = w.budget()
	r.ProgressDeadlineSeconds = new(int32(40 + w.rnd.IntN(100)))

	if w.chance(0.1) {
		spec.Strategy = v1alpha1.Replace
	}

	if w.chance(0.3) {
		r.MinReadySeconds = int32(1 + w.rnd.IntN(20))
	}

	if w.chance(0.3) {
		r.OrderBy = &v1alpha1.OrderBy{LabelKey: "wave"}
	}

	switch w.rnd.IntN(6) {
	case 0:
		r.OnFailure = v1alpha1.Continue
	case 1, 2:
		r.OnFailure = v1alpha1.Rollback
	}
	if w.stubborn {
		r.OnFailure, r.MaxFailures = v1alpha1.Rollback, nil
	}

	if w.chance(0.3) {
		r.MaxFailures = new(intstr.FromInt(w.rnd.IntN(3)))
	}

	switch w.rnd.IntN(4) {
	case 0:
		r.MaxRemoved = new(intstr.FromInt(w.rnd.IntN(3)))
	case 1:
		r.MaxRemoved = new(intstr.FromString(fmt.Sprintf("%d%%", w.rnd.IntN(101))))
	}

	if w.chance(0.7) {
		w.addStages(r)
	}

	if w.capped > 0 {
		r.MaxUnreadyTotal = new(intstr.FromInt(w.capped))
	}

	return spec
}

func (w *world) budget() *intstr.IntOrString {
	switch w.rnd.IntN(3) {
	case 0:
		return nil
	case 1:
		return new(intstr.FromInt(1 + w.rnd.IntN(3)))
	default:
		return new(intstr.FromString(fmt.Sprintf("%d%%", 1+w.rnd.IntN(100))))
	}
}

func (w *world) addStages(r *v1alpha1.Rollout) {
	for _, name := range []string{"a", "b"} {
		s := v1alpha1.Stage{Name: name, Selector: &metav1.LabelSelector{MatchLabels: map[string]string{"stage": name}}}
		if w.ailing && w.chance(0.1) {
			s.Selector.MatchLabels["stage"] = "typo"
			w.count("typos")
		}

		if w.chance(0.4) {
			s.MaxUnreadyClusters = w.budget()
		}

		if w.chance(0.3) {
			s.SoakSeconds = int32(5 + w.rnd.IntN(40))
		}

		if w.chance(0.3) {
			s.Gates = []v1alpha1.Gate{{Name: "approve", When: []v1alpha1.GateTime{v1alpha1.Before, v1alpha1.After, v1alpha1.During, ""}[w.rnd.IntN(4)]}}
		}
		r.Stages = append(r.Stages, s)
	}

	switch w.rnd.IntN(5) {
	case 0:
		r.UnmatchedClusters = v1alpha1.UnmatchedExclude
	case 1:
		r.Stages = append(r.Stages, v1alpha1.Stage{Name: "rest"})
	}
}

// newTag edits the template: to a new tag, that works or does not.
func (w *world) newTag(good bool) {
	tag := w.tags + 1
	if w.thrifty && w.storm && w.tags > 0 && w.chance(0.5) {
		tag = 1 + w.rnd.IntN(w.tags)
	}
	w.tags = max(w.tags, tag)
	w.wantTag(tag)
	if _, known := w.good[w.wanted()]; !known {
		w.good[w.wanted()] = good
	}
	w.notef("the user wants %s, which works: %v", w.wanted(), w.isGood(w.wanted()))
	w.count("edits")
}

// wantTag edits the template to a tag, new or not.
func (w *world) wantTag(tag int) {
	clear(w.oracle.told)
	sync := v1alpha1.Sync{Source: &v1alpha1.Source{Git: &v1alpha1.GitSource{URL: "https://x.test/a", Version: v1alpha1.GitVersion{Tag: "v" + strconv.Itoa(tag)}}}}
	w.respec(func(s *v1alpha1.ModuleSpec) {
		s.Template = &v1alpha1.ModuleTemplate{Spec: v1alpha1.TemplateSpec{Sync: sync}}
	})
}

// wanted is the revision of the template.
func (w *world) wanted() string {
	return model.RevisionName(model.KindModule, moduleName, w.module.spec.Template.Spec)
}

// asked is the revision that the user asks for, of the template or an older one.
func (w *world) asked() string {
	return cmp.Or(w.module.spec.TargetRevision, w.wanted())
}

// rolledOut is the revision that the clusters are to get: what the user asks for, unless that
// was given up.
func (w *world) rolledOut() string {
	if s := &w.module.status; s.RolledBack == w.asked() && s.CurrentRevision != "" {
		return s.CurrentRevision
	}

	return w.asked()
}

func (w *world) respec(change func(*v1alpha1.ModuleSpec)) {
	w.module.spec = *w.module.spec.DeepCopy()
	change(&w.module.spec)
	w.module.generation++
	w.module.version = w.next()
}

// users do something, rarely.
func (w *world) users() {
	switch w.rnd.IntN(80) {
	case 0, 1, 2:
		if !w.stubborn || w.chance(0.2) {
			w.newTag(w.chance(0.5))
		}
	case 6:
		w.respec(func(s *v1alpha1.ModuleSpec) { s.Suspend = !s.Suspend })
		w.notef("suspended: %v", w.module.spec.Suspend)
		w.count("suspended")
	case 3:
		w.join()
	case 4:
		w.goBack()
	case 5:
		w.respec(func(s *v1alpha1.ModuleSpec) { s.DeletionPolicy = v1alpha1.Orphan })
	default:
		w.decideGates(0.1)
		w.approveRemovals(0.1)
		w.retries(0.3)
		w.touch()
	}

	if w.fickle && w.chance(0.03) {
		w.reselect()
	}

	if w.tagged && w.chance(0.03) {
		w.moveTag()
	}

	if w.lossy && w.chance(0.1) {
		w.hide()
	}

	if w.mortal && w.chance(0.02) {
		w.loseHub()
	}

	if w.ailing && w.chance(0.1) {
		w.turn()
	}

	if w.thrifty && w.chance(0.05) {
		w.newTag(true)
	}
}

// reselect has the module select fewer clusters, or all of them again.
func (w *world) reselect() {
	labels := map[string]string{"env": "prod"}
	if len(w.module.spec.Selector.MatchLabels) == 1 {
		labels["stage"] = "a"
	}
	w.respec(func(s *v1alpha1.ModuleSpec) { s.Selector.MatchLabels = labels })
	w.notef("the user selects %v", labels)
	w.count("selectors")

	for i := range w.clusters {
		c := &w.clusters[i]
		c.deselected = c.deselected || !w.isSelected(&c.Cluster)
	}
}

// hide takes away what stands for a cluster on the hub, or puts it back as another object.
func (w *world) hide() {
	if len(w.clusters) == 0 {
		return
	}
	c := &w.clusters[w.rnd.IntN(len(w.clusters))]
	w.oracle.breaks(c.Name)
	c.hidden, c.UID = !c.hidden, types.UID("u"+number(w.next()))
	w.clustersAt = w.next()
	w.notef("%s is unknown: %v", c.Name, c.hidden)
	w.count("unknown")
}

// approveRemovals is that the user approves what the status asks for. An approval is
// left where it is, however old, or taken back.
func (w *world) approveRemovals(likely float64) {
	r := w.module.status.Removal
	if r == nil || !w.chance(likely) {
		return
	}
	switch {
	case r.Approval != "" && w.module.approval != r.Approval:
		w.module.approval = r.Approval
		w.oracle.grant(r.Approval)
		w.count("approvals")
	case w.storm && w.chance(0.2):
		w.module.approval = ""
	default:
		return
	}
	w.module.version = w.next()
	w.notef("the user approves %q", w.module.approval)
}

// retries is that the user retries what was given up, which has become good or not; the order is
// left where it is.
func (w *world) retries(likely float64) {
	s := &w.module.status
	if s.RolledBack == "" || w.module.retry.Ends(s) || !w.chance(likely) {
		return
	}
	w.good[s.RolledBack] = !w.storm || w.good[s.RolledBack] || w.chance(0.5)
	w.module.retry, w.module.version = model.NewRetry(s, "ann", ""), w.next()
	w.notef("the user retries %s, which works: %v", s.RolledBack, w.good[s.RolledBack])
	w.count("retries")
}

// moveTag has the tag of a revision be another commit.
func (w *world) moveTag() {
	if len(w.revisions) > 0 {
		revision := w.revisions[w.rnd.IntN(len(w.revisions))].Name
		w.moved[revision]++
		w.notef("the tag of %s is %s by now", revision, w.commit(revision))
		w.count("tags moved")
	}
}

// goBack pins the module to an older revision, or takes that back.
func (w *world) goBack() {
	target := ""
	clear(w.oracle.told)
	if w.module.spec.TargetRevision == "" && len(w.revisions) > 0 {
		target = w.revisions[w.rnd.IntN(len(w.revisions))].Name
	}
	w.respec(func(s *v1alpha1.ModuleSpec) { s.TargetRevision = target })
	w.notef("the user wants revision %q", target)
	w.count("rollbacks")
}

// touch does something to a cluster.
func (w *world) touch() {
	if len(w.clusters) == 0 {
		return
	}

	c := &w.clusters[w.rnd.IntN(len(w.clusters))]
	a, assigned := w.assemblages[c.Name]

	switch w.rnd.IntN(60) {
	case 0:
		w.leave(c.Name)
		w.count("leaves")
	case 1:
		env := map[string]string{"prod": "dev", "dev": "prod"}[c.Labels["env"]]
		c.deselected = c.deselected || env == "dev"
		w.relabelled(c, "env", env)
		w.notef("%s is %s", c.Name, env)
		w.count("deselected")
	case 2, 3:
		if w.flaps {
			w.oracle.breaks(c.Name)
			c.Ready = !c.Ready
			w.clustersAt = w.next()
			w.notef("%s is ready: %v", c.Name, c.Ready)
			w.count("unready")
		}
	case 4, 5:
		if w.flaps {
			w.oracle.breaks(c.Name)
			c.Unreachable = !c.Unreachable
			w.clustersAt = w.next()
			w.notef("%s is unreachable: %v", c.Name, c.Unreachable)
			w.count("unreachable")
		}
	case 6:
		if assigned {
			w.pin(c.Name, a)
		}
	case 7:
		if assigned && a.assigned {
			a.drifted = true
			w.changed(c.Name, a, true)
			w.count("drifts")
		}
	}
}

func (w *world) pin(name string, a assemblage) {
	if a.hold == nil {
		a.hold = &v1alpha1.Hold{By: "alice"}
		if w.tagged && w.chance(0.5) {
			a.exact = "hotfix"
			w.count("hotfixes")
		}
	} else {
		w.unpin(name, &a)
	}
	w.changed(name, a, true)
	w.notef("%s is held: %v", name, a.hold != nil)
	w.count("pins")
}

// unpin lets a cluster go. What is down in it by then is on the user: what was
// decided without it may still come to pass.
func (w *world) unpin(name string, a *assemblage) {
	a.hold = nil
	w.oracle.gone(name)
}

// decideGates decides gates as a user does.
func (w *world) decideGates(likely float64) {
	for i := range w.gates {
		if w.gates[i].Verdict != rollout.Passed && w.chance(likely) {
			gates := append([]model.Gate(nil), w.gates...)
			gates[i].Verdict = rollout.Passed
			if w.storm && w.chance(0.2) {
				gates[i].Verdict = rollout.Refused
			}
			gates[i].Rolls, gates[i].ResourceVersion = false, number(w.next())
			w.gates, w.othersAt = gates, w.next()
			w.count("gates")
		}
	}
}

// endStorm ends the storm: what is wanted works, every cluster answers, and no user
// holds anything back.
func (w *world) endStorm() {
	w.storm = false
	w.notef("the storm is over")
	w.respec(func(s *v1alpha1.ModuleSpec) {
		s.Suspend, s.AllowEmpty, s.TargetRevision, s.Rollout.ProgressDeadlineSeconds = false, true, "", new(int32(10000))
		s.Rollout.MaxUnreadyTotal = nil // what is unready in a later stage may use it up, until a user answers that
		for i := range s.Rollout.Stages {
			s.Rollout.Stages[i].AllowEmpty = true // otherwise one without clusters holds, until a user answers that
		}
	})

	if len(w.clusters) > 20 { // one at a time would take for ever
		w.respec(func(s *v1alpha1.ModuleSpec) {
			s.Rollout.MaxUnreadyClusters = new(intstr.FromString("100%")) // never less than was permitted
			for i := range s.Rollout.Stages {
				s.Rollout.Stages[i].MaxUnreadyClusters = nil
			}
		})
	}

	if w.module.status.RolledBack == w.wanted() && w.chance(0.5) {
		w.module.retry = nil
		w.retries(1)
	} else if !w.isGood(w.wanted()) || w.module.status.RolledBack == w.wanted() || w.chance(0.3) {
		w.newTag(true)
	}

	for i := range w.clusters {
		c := &w.clusters[i]
		c.Ready, c.Unreachable, c.hidden, c.sick = true, false, false, false
		a := w.assemblages[c.Name]
		isWell := a.assigned && a.state == v1alpha1.StateSucceeded && a.proven.Equal(a.at) && a.revision != w.wanted() && a.hold == nil
		isMoving := slices.ContainsFunc(w.module.status.Moves, func(m v1alpha1.Move) bool { return m.Cluster == c.Name }) // and may get it though it is suspended
		c.suspended = w.ailing && isWell && !isMoving && w.chance(0.3)
		w.counts["suspended to the end"] += one(c.suspended)
		if a.state == v1alpha1.StateFailed {
			a.state, c.begun, c.takes = v1alpha1.StateUpdating, w.now, 0
			w.changed(c.Name, a, false)
		}
		if f := c.former; f != nil && f.state == v1alpha1.StateFailed {
			healed := *f
			healed.state, c.former, c.begun, c.takes = v1alpha1.StateUpdating, &healed, w.now, 0
		}
		if a, ok := w.assemblages[c.Name]; ok && a.hold != nil {
			w.unpin(c.Name, &a)
			w.changed(c.Name, a, true)
		}
	}
	w.clustersAt = w.next()
}
