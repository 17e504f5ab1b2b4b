package hub

import (
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/api/equality"
	apimeta "k8s.io/apimachinery/pkg/api/meta"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/spillway-dev/spillway/api/fleet/v1alpha1"
	"github.com/spillway-dev/spillway/internal/fleet/hub/decision"
	"github.com/spillway-dev/spillway/internal/fleet/hub/model"
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
	if s.object == nil {
		return pass{}
	}
	p := pass{Plan: decision.Decide(s.Observed)}
	p.wake = p.Wake
	if p.NeedsLive {
		return p
	}
	left, again := m.pending(p.Writes)
	p.Writes, p.wake = left, model.Earlier(p.wake, again)
	p.settle(s, m, options)
	return p
}

// settle decides whether the status is written in this pass. It is not where the
// module itself is, as that would be a conflict with ourselves.
func (p *pass) settle(s *snapshot, m *memory, options Options) {
	before := &s.Module.Status
	p.differs = !equality.Semantic.DeepEqual(before, &p.Status)
	switch {
	case p.isAboutModule():
	case p.Permits, p.differs && isNews(before, &p.Status):
		p.persist = true
	case p.differs && m.differs.IsZero():
		p.wake = model.Earlier(p.wake, s.Now.Add(options.statusDelay()))
	case p.differs:
		due := m.differs.Add(options.statusDelay())
		p.persist = !s.Now.Before(due)
		p.wake = model.Earlier(p.wake, due)
	}
}

// isNews is true if a status has to be known at once: somebody has to do something,
// what somebody has done took effect, or a revision has got everywhere. The rest is
// how far it has come, which the next write tells.
func isNews(before, after *v1alpha1.ModuleStatus) bool {
	if before.ObservedGeneration != after.ObservedGeneration || before.CurrentRevision != after.CurrentRevision ||
		before.RolledBack != after.RolledBack || before.TargetRevision != after.TargetRevision {
		return true
	}
	settled := after.Phase != string(rollout.PhaseProgressing) && after.Phase != string(rollout.PhaseWaiting)
	return settled && before.Phase != after.Phase || isStalled(before) != isStalled(after)
}

func isStalled(s *v1alpha1.ModuleStatus) bool {
	return apimeta.IsStatusConditionTrue(s.Conditions, decision.ConditionStalled)
}

// deeds are what became of a pass.
type results struct {
	// object is the module as the API server has answered, nil if it was not written.
	object   client.Object
	err      error
	outcomes []outcome
}

// outcome is what became of a write.
type outcome struct {
	write decision.Write
	// err is nil if the write was made.
	err error
	// foreign is true if somebody else keeps a sync that was ours, version that of
	// the assemblage since.
	foreign bool
	version string
}

// overtaken is true if somebody else was faster with some of it.
func (d *results) overtaken() bool {
	return isConflict(d.err) || slices.ContainsFunc(d.outcomes, func(o outcome) bool { return isConflict(o.err) })
}

// foundForeign is true if somebody else keeps what was removed.
func (d *results) foundForeign() bool {
	return slices.ContainsFunc(d.outcomes, func(o outcome) bool { return o.foreign })
}

// goOn is true if what was written is to be acted upon at once, rather than when a
// watch shows it.
func (d *results) goOn(p *pass) bool { return d.object != nil && (p.Permits || p.isAboutModule()) }

// isAboutModule is true if the module itself is written, and nothing else.
func (p *pass) isAboutModule() bool {
	return slices.ContainsFunc(p.Writes, func(w decision.Write) bool {
		return w.Act == decision.AddFinalizer || w.Act == decision.RemoveFinalizer
	})
}
