package decision

import (
	"fmt"
	"maps"
	"slices"

	"k8s.io/apimachinery/pkg/labels"

	"github.com/spillway-dev/spillway/internal/config/content"
	"github.com/spillway-dev/spillway/internal/config/policy"
	"github.com/spillway-dev/spillway/internal/config/workload"
	"github.com/spillway-dev/spillway/rollout"
)

// spread is a release over the namespaces of a policy that has stages of them: objects of one kind and name that
// have the same content. Contents are compared in memory alone; what is recorded of an object is compared with the
// digest that the content has there.
type spread struct {
	policy *policy.Policy
	// like is an object that has the content, and facts are about it.
	like    content.Object
	facts   content.Facts
	content string
	// courses are its parts, one for each namespace that has the content.
	courses []*course
	// others are the namespaces whose workloads use such an object with another content.
	others map[string]bool
	// failed are the failures with the content of workloads that do not have it any more, by their names.
	failed map[string]failedIn
}

// failedIn is how a workload of a namespace has failed.
type failedIn struct{ namespace, cause string }

// spreadName is what objects have in common that may be parts of a release over namespaces.
type spreadName struct {
	policy *policy.Policy
	kind   content.Kind
	name   string
}

func spreadNameOf(p *policy.Policy, o content.Object) spreadName {
	return spreadName{p, o.Kind, o.Name}
}

// spreadOf is the release over namespaces of a content that a workload uses, nil if the policy has no stages of
// namespaces.
func (s *staging) spreadOf(p *policy.Policy, w *Workload, o content.Object) *spread {
	if !p.StagesNamespaces() {
		return nil
	}
	name, is := spreadNameOf(p, o), w.Config.ContentOf(o)
	for _, sp := range s.spreads[name] {
		if sp.content == is {
			return sp
		}
	}
	sp := &spread{policy: p, like: o, facts: w.Config, content: is, others: map[string]bool{}, failed: map[string]failedIn{}}
	s.spreads[name] = append(s.spreads[name], sp)
	return sp
}

// isSpread is true of a workload that uses an object with the name of one that is released over namespaces.
func (s *staging) isSpread(w *Workload) bool {
	return len(s.spreads) > 0 && slices.ContainsFunc(w.Uses, func(u content.Use) bool {
		return len(s.spreads[spreadNameOf(s.o.spreading(w, u.Object), u.Object)]) > 0
	})
}

// coursesOf are the courses of a release that a workload uses. That of a release over namespaces begins in a namespace
// with the first workload that uses it.
func (s *staging) coursesOf(w *Workload, r content.Release) (courses []*course) {
	for _, p := range s.o.policiesFor(w, r.Object) {
		key := courseKey{p, releaseIn{r, w.Namespace}}
		c, spreads, is := s.courses[key], s.spreads[spreadNameOf(p, r.Object)], ""
		if len(spreads) > 0 {
			is = w.Config.ContentOf(r.Object) // it hashes
		}
		for _, sp := range spreads {
			switch {
			case sp.content != is:
				sp.others[w.Namespace] = true
			case c == nil:
				c = s.begin(key, sp)
			}
		}
		if c != nil {
			courses = append(courses, c)
		}
	}
	return courses
}

// tellOf names a part of a release over namespaces so that other namespaces know it, and notes that it gives no
// evidence if it gives none.
func (s *staging) tellOf(c *course, w *Workload, p *part) {
	if c.spread == nil {
		return
	}
	p.unit.Name = w.Namespace + "/" + p.unit.Name
	leaf := &p.unit.Leaf
	switch {
	case leaf.Health == rollout.Failed:
	case s.o.Namespaces[w.Namespace].Terminating:
		leaf.NoEvidence = "in a namespace that is being deleted"
	case workload.HasNoPods(w.Object):
		leaf.NoEvidence = "without Pods"
	case p.member.Mute:
		leaf.NoEvidence = "keeping its Pods until a user replaces them"
	case p.member.Claim == policy.ClaimNone:
		leaf.NoEvidence = "not ready for another reason"
	}
}

// addElsewhere adds to releases over namespaces what has failed with their contents and does not have them any more:
// a workload of an object with another content by now, or one that is gone.
func (s *staging) addElsewhere() {
	if len(s.spreads) == 0 {
		return
	}
	for i := range s.o.Workloads {
		w := &s.o.Workloads[i]
		for k := range w.Records.Failed {
			if f := &w.Records.Failed[k]; !w.Settings.Unstoppable && !w.isPresent(*f) {
				s.addFailed(w, w.Name, f)
			}
		}
	}
	users := s.o.usersOfGone()
	for i := range s.o.Gone {
		g := &s.o.Gone[i]
		if user := users[g.Object()]; user != nil {
			s.addFailed(user, g.On, &g.Failed)
		}
	}
}

// addFailed adds a failure of a workload with an object that a user of it knows.
func (s *staging) addFailed(user *Workload, on workload.Name, f *workload.Failed) {
	o := f.Object()
	if !user.counts(o, f.At, s.o.Now) {
		return
	}
	for name, all := range s.spreads {
		if name.kind != o.Kind || name.name != o.Name || !name.policy.Covers(on.Namespace, labels.Set(user.Object.GetLabels()), o) {
			continue
		}
		for _, sp := range all {
			if sp.facts.DigestAt(sp.like, user.Config, o) == f.Digest {
				w := Workload{Workload: workload.Workload{Name: on}}
				sp.failed[w.called("")] = failedIn{on.Namespace, f.Cause}
			}
		}
	}
}

// at is the path of a course among the units.
func (s *staging) at(c *course) rollout.Path {
	if c.spread == nil {
		return rollout.Path{c.policy.String(), c.path()}
	}
	return rollout.Path{c.policy.String(), c.spread.name(), namespaceStageName(c.policy, s.o.stageIn(c.policy, c.namespace)), c.path()}
}

// name is that of the unit.
func (sp *spread) name() string { return sp.courses[0].path() }

func namespaceStageName(p *policy.Policy, i int) string {
	return "namespace stage " + p.NamespaceStages[i].Name
}

// stageIn is the place of the stage of a namespace. What is not known may be the first, which others wait for.
func (o *Observed) stageIn(p *policy.Policy, namespace string) int {
	of, known := o.Namespaces[namespace]
	if !known {
		return 0
	}
	return p.NamespaceStage(of.Labels)
}

// unread keeps all that a policy with stages of namespaces is for while these are not known.
func (s *staging) unread(p *policy.Policy) *rollout.Block {
	if s.o.NamespacesUnread == "" || !p.StagesNamespaces() {
		return nil
	}
	return &rollout.Block{Reason: ReasonNotPermitted, Message: s.o.NamespacesUnread}
}

// spreadUnit is a release over namespaces as the engine sees it: the stages of namespaces, one after the other, and
// in each the namespaces side by side.
func (s *staging) spreadUnit(sp *spread) rollout.Unit {
	onFailure := s.onFailure(sp.policy)
	u := rollout.Unit{Name: sp.name(), Group: true, Policy: rollout.Policy{Order: rollout.Series, OnFailure: onFailure}}
	for i := range sp.policy.NamespaceStages {
		stage := sp.policy.NamespaceStages[i]
		if onFailure == rollout.Continue {
			stage.MinEvidence = 0
		}
		u.Children = append(u.Children, rollout.Unit{Name: namespaceStageName(sp.policy, i), Group: true, Policy: rollout.Policy{
			Soak: stage.Soak, MinEvidence: stage.MinEvidence, OnFailure: onFailure,
		}})
	}
	add := func(namespace string, unit rollout.Unit) {
		stage := &u.Children[s.o.stageIn(sp.policy, namespace)]
		stage.Children = append(stage.Children, unit)
	}
	for _, c := range sp.courses {
		unit := s.unit(c)
		if _, known := s.o.Namespaces[c.namespace]; !known && s.o.NamespacesUnread == "" {
			unit.Block = &rollout.Block{Reason: ReasonNotObserved, Message: "the labels of namespace " + c.namespace + " are not known yet"}
		}
		add(c.namespace, unit)
	}
	for _, namespace := range slices.Sorted(maps.Keys(sp.others)) {
		if s.o.stageIn(sp.policy, namespace) < len(u.Children)-1 { // none waits for the last
			add(namespace, s.otherUnit(sp, namespace))
		}
	}
	for _, name := range slices.Sorted(maps.Keys(sp.failed)) {
		f := sp.failed[name]
		add(f.namespace, rollout.Unit{Name: name, Leaf: failedLeaf(f.cause)})
	}
	return u
}

// otherUnit is a namespace that has another content of an object. Later stages wait until it has the same.
func (s *staging) otherUnit(sp *spread, namespace string) rollout.Unit {
	u := rollout.Unit{Name: "namespace " + namespace, Leaf: rollout.Leaf{Current: earlier, Target: released, Health: rollout.Healthy}}
	of := sp.like
	of.Namespace = namespace
	u.Block = &rollout.Block{Reason: rollout.ReasonOrder, Message: fmt.Sprintf("namespace %s has another content of %s", namespace, of.From(namespace))}
	if s.o.Namespaces[namespace].Terminating {
		u.Leaf.NoEvidence = "being deleted"
	}
	return u
}

// elsewhere is why a release waits for other namespaces. How far these are is in the status of the policy: here each
// of their steps would be written in all namespaces.
func (s *staging) elsewhere(c *course, h *rollout.Hold) string {
	if h.Reason != rollout.ReasonOrder || h.Cause.Root != h.Cause.Why {
		return h.Cause.Why
	}
	stage := h.On[len(h.On)-1]
	for _, namespace := range slices.Sorted(maps.Keys(c.spread.others)) {
		if namespaceStageName(c.policy, s.o.stageIn(c.policy, namespace)) == stage {
			return stage + " is not complete: namespace " + namespace + " has another content"
		}
	}
	return stage + " is not complete"
}
