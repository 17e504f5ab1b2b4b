package hub

import (
	"cmp"
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/api/equality"
	apimeta "k8s.io/apimachinery/pkg/api/meta"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/spillway-dev/spillway/api/fleet/v1alpha1"
	"github.com/spillway-dev/spillway/internal/fleet/hub/decision"
	"github.com/spillway-dev/spillway/internal/ring"
	"github.com/spillway-dev/spillway/rollout"
)

// pass is what is done about a module now: the plan, and when its status is written.
type pass struct {
	decision.Plan

	// persist is true if the status is to be written now. Where it differs and is
	// not written, differs is true: it may become part of another write.
	persist, differs bool
	// wake is when time alone changes something.
	wake time.Time
}

// planPass is pure. What it needs to remember is since when the status differs.
func planPass(s *snapshot, m *memory, options Options) pass {
	p := pass{}
	switch {
	case s.object != nil:
		p.Plan = decision.Decide(s.Observed)
	case s.hasNoted():
		p.Plan = decision.Leave(s.Observed)
	}
	p.wake = p.Wake
	if p.NeedsLive {
		return p
	}
	for i := range s.Records { // one that is deleted later is made again
		m.Observed(ring.Change{Act: string(decision.CreateAssemblage), Object: s.Records[i].Cluster})
	}
	left, again := ring.Unmade(&m.Expectations, s.Now, p.Writes, (*decision.Write).Change)
	p.Writes, p.wake = left, ring.Earlier(p.wake, again)
	if s.object != nil {
		p.persistIfDue(s, m, options)
	}
	return p
}

// persistIfDue decides whether the status is written in this pass. It is not where the
// module itself is, because that would be a conflict with ourselves.
func (p *pass) persistIfDue(s *snapshot, m *memory, options Options) {
	before := &s.Module.Status
	p.differs = !equality.Semantic.DeepEqual(before, &p.Status)
	if p.isAboutModule() {
		return
	}
	due, wake := m.StatusDue(s.Now, cmp.Or(options.StatusDelay, DefaultStatusDelay), ring.Status{
		Differs: p.differs, Permits: p.Permits, Urgent: p.differs && isNews(before, &p.Status),
	})
	p.persist, p.wake = due, ring.Earlier(p.wake, wake)
}

// isNews is true if a status must be known immediately: a user must do something,
// what a user has done took effect, or a revision has got everywhere. The rest is
// how far it has come, which the next write tells.
func isNews(before, after *v1alpha1.ModuleStatus) bool {
	if before.ObservedGeneration != after.ObservedGeneration || before.CurrentRevision != after.CurrentRevision ||
		awaits(before) != awaits(after) || before.RolledBack != after.RolledBack || before.TargetRevision != after.TargetRevision {
		return true
	}
	settled := after.Phase != string(rollout.PhaseProgressing) && after.Phase != string(rollout.PhaseWaiting)
	return settled && before.Phase != after.Phase || isStalled(before) != isStalled(after)
}

// awaits is the approval without which no cluster loses the module, empty if none is
// needed.
func awaits(s *v1alpha1.ModuleStatus) string {
	if s.Removal == nil {
		return ""
	}
	return s.Removal.Approval
}

func isStalled(s *v1alpha1.ModuleStatus) bool {
	return apimeta.IsStatusConditionTrue(s.Conditions, ring.ConditionStalled)
}

// results are what became of a pass.
type results = ring.Results[client.Object, made]

// made is a write with what the API server answered to it.
type made struct {
	decision.Write

	// foreign is true if another manager keeps a sync that was ours, version that of
	// the assemblage since.
	foreign bool
	version string
}

// goesOn is true if what was written is to be acted upon immediately, rather than when
// a watch shows it.
func (p *pass) goesOn(r *results) bool { return r.Written() && (p.Permits || p.isAboutModule()) }

// isAboutModule is true if the module itself is written, and nothing else.
func (p *pass) isAboutModule() bool {
	return slices.ContainsFunc(p.Writes, func(w decision.Write) bool {
		return w.Act == decision.AddFinalizer || w.Act == decision.RemoveFinalizer
	})
}
