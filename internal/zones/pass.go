package zones

import (
	"cmp"
	"slices"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	apimeta "k8s.io/apimachinery/pkg/api/meta"

	"github.com/spillway-dev/spillway/api/spillway/v1alpha1"
	"github.com/spillway-dev/spillway/internal/ring"
	"github.com/spillway-dev/spillway/internal/vocabulary"
	"github.com/spillway-dev/spillway/internal/zones/decision"
	"github.com/spillway-dev/spillway/rollout"
)

// pass is what is done about a group now: the plan, and what becomes of the
// RolloutGroup itself.
type pass struct {
	decision.Plan
	// create and remove are about a group that no user wrote, restore about one that
	// a user has deleted.
	create, remove, restore bool
	// persist is true if the status is to be written now. Where it differs and is
	// not written, differs is true: it may become part of another write.
	persist, differs bool
	// nameless says why there cannot be a RolloutGroup, empty if there can.
	nameless string
	// wake is when time alone changes something.
	wake time.Time
}

// planPass is pure. What it needs to remember is since when the status differs.
func planPass(s *snapshot, m *memory, options Options) pass {
	switch {
	case s.object == nil && len(s.sets) == 0:
		return pass{}
	case s.object == nil:
		problem := decision.Nameless(s.key.Name)
		return pass{create: problem == "", nameless: problem}
	}
	if s.restored {
		return pass{Plan: decision.Plan{Status: s.Group.Status}, persist: true, restore: true}
	}
	p := pass{Plan: decision.Decide(s.Observed)}
	p.wake = p.Wake
	if p.NeedsLive {
		return p
	}
	if s.isDeserted() && len(p.Status.Moves) == 0 && p.Status.Lock == nil {
		return pass{remove: true}
	}
	var again time.Time
	p.Writes, again = ring.Unmade(&m.Expectations, s.Now, p.Writes, (*decision.Write).Change)
	p.wake = ring.Earlier(p.wake, again)
	p.persistIfDue(s, m, options)
	return p
}

// persistIfDue decides whether the status is written in this pass.
func (p *pass) persistIfDue(s *snapshot, m *memory, options Options) {
	before := &s.Group.Status
	p.differs = !equality.Semantic.DeepEqual(before, &p.Status)
	due, wake := m.StatusDue(s.Now, cmp.Or(options.StatusDelay, DefaultStatusDelay), ring.Status{
		Differs: p.differs, Permits: p.Permits, Urgent: p.differs && isNews(before, &p.Status),
	})
	p.persist, p.wake = due, ring.Earlier(p.wake, wake)
}

// isNews is true if a status must be known immediately: the lock is free, a user
// has to do something, or what a user has done took effect, such as to open a zone. The rest is how
// far it has come, which the next write tells.
func isNews(before, after *v1alpha1.RolloutGroupStatus) bool {
	if (before.Lock == nil) != (after.Lock == nil) || before.ObservedGeneration != after.ObservedGeneration {
		return true
	}
	forced := func(z v1alpha1.Zone) bool { return z.Opened }
	if !slices.ContainsFunc(before.Zones, forced) && slices.ContainsFunc(after.Zones, forced) {
		return true // what a controller may have replaced is known to no move
	}
	settled := after.Phase != string(rollout.PhaseProgressing) && after.Phase != string(rollout.PhaseWaiting)
	return settled && (before.Phase != after.Phase || after.Phase == string(decision.PhaseStalled) && before.WaitingFor != after.WaitingFor) ||
		apimeta.IsStatusConditionTrue(before.Conditions, ring.ConditionStalled) != apimeta.IsStatusConditionTrue(after.Conditions, ring.ConditionStalled)
}

// isDeserted is true of a group that no user wrote and that has no members.
func (s *snapshot) isDeserted() bool {
	return len(s.sets) == 0 && s.object != nil && s.object.DeletionTimestamp == nil && isUntouched(s.object)
}

// isUntouched is true of a group that Spillway has made and no user has changed
// since: neither the policy, which would have raised the generation, nor labels,
// annotations, finalizers or owners.
func isUntouched(g *v1alpha1.RolloutGroup) bool {
	_, _, automatic := vocabulary.Automatic.Lookup(g.Annotations)
	return automatic && g.Generation == 1 && len(g.Annotations) == 1 &&
		len(g.Labels) == 0 && len(g.Finalizers) == 0 && len(g.OwnerReferences) == 0
}

// results are what became of a pass.
type results = ring.Results[*v1alpha1.RolloutGroup, made]

// made is a write with what the API server answered to it, if the spec of a StatefulSet
// was written.
type made struct {
	decision.Write

	set *appsv1.StatefulSet
}

// goesOn is true if what was written is to be acted upon immediately, rather than when
// a watch shows it. A Pod without a StatefulSet is withdrawn, too, and no watch tells of it.
func (p *pass) goesOn(r *results) bool {
	return r.Written() && (p.Permits || p.create || p.restore) ||
		slices.ContainsFunc(r.Writes, func(w ring.Result[made]) bool {
			return (w.Write.Done || w.Write.Act == decision.Fence) && w.Err == nil
		})
}
