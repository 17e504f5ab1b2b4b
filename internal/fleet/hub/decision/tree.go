package decision

import (
	"time"

	"k8s.io/apimachinery/pkg/util/intstr"

	"github.com/spillway-dev/spillway/api/fleet/v1alpha1"
	spillway "github.com/spillway-dev/spillway/api/spillway/v1alpha1"
	"github.com/spillway-dev/spillway/internal/fleet/hub/model"
	"github.com/spillway-dev/spillway/internal/gates/ask"
	"github.com/spillway-dev/spillway/internal/ring"
	"github.com/spillway-dev/spillway/rollout"
)

// The units beneath the root.
const (
	unitNew    = "new clusters"
	unitStages = "the rollout"
	unitPinned = "pinned clusters"
	unitSpare  = "clusters without a stage"
	// unitRemovals are clusters that lose the module, unitUnmatched those of them that no
	// stage selects.
	unitRemovals = "removals"
	// unitUnready are those of them that are unready anyway.
	unitUnready   = "removals from unready clusters"
	unitUnmatched = "no stage"
	// unitUnknown are clusters that are unknown, and so is their stage.
	unitUnknown = "unknown clusters"
)

// root returns what the engine decides upon: the new clusters, which do not wait,
// and the stages, one after the other.
func (d *decision) root() rollout.Unit {
	root := rollout.Unit{Group: true, Policy: rollout.Policy{
		OnFailure: rollout.Continue, MaxRemoved: MaxRemoved(d.o.Module.Spec.Rollout), Removed: d.removedLately(), RemovalsApproved: d.approved, ApproveWith: model.ApproveRemovals(d.o.Module.Kind, d.o.Module.Namespace, d.o.Module.Name),
	}}
	stages := rollout.Unit{Name: unitStages, Group: true, Policy: d.totalPolicy(), Block: d.block()}
	stages.Policy.Order = rollout.Series
	fresh := rollout.Unit{Name: unitNew, Group: true, Policy: rollout.Policy{OnFailure: rollout.Continue, Deadline: d.deadline()}}
	for i := range d.stages {
		s := &d.stages[i]
		unit := d.stageUnit(i)
		unit.Children = make([]rollout.Unit, 0, len(s.members))
		for _, m := range s.members {
			if m.isNew {
				fresh.Children = append(fresh.Children, rollout.Unit{})
				d.leafUnit(&fresh.Children[len(fresh.Children)-1], m, d.good)
			} else {
				unit.Children = unit.Children[:len(unit.Children)+1] // there is room for all
				d.leafUnit(&unit.Children[len(unit.Children)-1], m, d.target)
			}
		}
		if lost := d.unknownIn(i); len(lost) > 0 {
			unit.Children = append(unit.Children, d.unknownUnit(lost, i))
		}
		stages.Children = append(stages.Children, unit)
	}
	if d.o.Module.Spec.Suspend {
		root.Pause = d.o.Module.Pause()
	}
	if len(d.problems) > 0 {
		root.Block = &rollout.Block{Reason: ReasonInvalid, Message: d.problems[0]}
	}
	root.Children = append([]rollout.Unit{fresh, stages}, d.removalUnits()...)
	if lost := d.unknownIn(anyStage); len(lost) > 0 {
		root.Children = append(root.Children, d.unknownUnit(lost, anyStage))
	}
	return root
}

// restRoot is what is not part of the rollout: the engine says why, and moves
// nothing of it.
func (d *decision) restRoot() rollout.Unit {
	held, spare := rollout.Unit{Name: unitPinned, Group: true}, rollout.Unit{Name: unitSpare, Group: true}
	for _, m := range d.aside {
		unit := rollout.Unit{}
		d.leafUnit(&unit, m, d.target)
		if m.stage == pinned {
			unit.Pause = ring.PauseOf((*spillway.Pause)(m.record.Hold))
			held.Children = append(held.Children, unit)
			continue
		}
		unit.Block = &rollout.Block{Reason: ReasonNoStage, Message: "no stage selects it"}
		spare.Children = append(spare.Children, unit)
	}
	return rollout.Unit{Group: true, Policy: rollout.Policy{OnFailure: rollout.Continue}, Children: []rollout.Unit{held, spare}}
}

// stageUnit is a stage without its clusters.
func (d *decision) stageUnit(i int) rollout.Unit {
	s, r := &d.stages[i], d.o.Module.Rollout()
	policy := d.stagePolicy(s)
	policy.MinReady, policy.Deadline, policy.OnFailure = seconds(r.MinReadySeconds), d.deadline(), d.onFailure()
	policy.MaxFailures = ring.LimitOf(maxFailures(&s.spec, r))
	if d.isNews() {
		policy.Soak, policy.MinEvidence = seconds(s.spec.SoakSeconds), d.minEvidence(i)
	}
	return rollout.Unit{Name: s.name, Group: true, Policy: policy, Gates: d.gates(s)}
}

// stagePolicy is the budget of a stage, which updates and removals share.
func (d *decision) stagePolicy(s *stage) rollout.Policy {
	if !d.o.Module.IsStaged() {
		return rollout.Policy{}
	}
	return rollout.Policy{MaxUnavailable: ring.LimitOf(maxUnready(&s.spec, d.o.Module.Rollout())), Budget: s.name}
}

// totalPolicy is the budget of the module as a whole, which all its stages and removals share.
func (d *decision) totalPolicy() rollout.Policy {
	total := d.o.Module.Rollout().MaxUnreadyTotal
	if total == nil || !d.o.Module.IsStaged() {
		return rollout.Policy{}
	}
	return rollout.Policy{MaxUnavailable: ring.LimitOf(total), Budget: unitStages}
}

func maxUnready(s *v1alpha1.Stage, r v1alpha1.Rollout) *intstr.IntOrString {
	return first(s.MaxUnreadyClusters, r.MaxUnreadyClusters, intstr.FromInt32(1))
}

func maxFailures(s *v1alpha1.Stage, r v1alpha1.Rollout) *intstr.IntOrString {
	return first(s.MaxFailures, r.MaxFailures, intstr.FromInt32(0))
}

// block is what keeps all stages from going on.
func (d *decision) block() *rollout.Block {
	switch {
	case d.o.Revision(d.target) == nil && d.o.Unowned != nil && d.o.Unowned.Name == d.target && !d.o.Unowned.Orphaned:
		return &rollout.Block{Reason: ReasonRevisionTaken, Message: "the ModuleRevision " + d.target + " is " + d.o.Unowned.Whose + "; delete it"}
	case d.isStopped():
		return &rollout.Block{Reason: ReasonRolledBack, Message: d.whyStopped()}
	case len(d.unlooked()) > 0:
		return &rollout.Block{Reason: ReasonUnseen, Message: d.whyUnlooked()}
	case d.o.Revision(d.target) == nil:
		return &rollout.Block{Reason: ReasonRevision, Message: "ModuleRevision " + d.target + " not found yet"}
	case d.isPutOff(d.target):
		r := d.o.Refusals[d.target]
		return &rollout.Block{Reason: ReasonUnresolved, Message: "what the tag resolves to cannot be recorded: " + model.Short(r.Reason, model.SaidLength), Until: r.At}
	case d.pinning() != "":
		return &rollout.Block{Reason: ReasonPinning, Message: d.pinning() + " is assigned the commit of its tag first"}
	case len(d.o.Module.Rollout().Windows) > 0 && d.isNews() && !d.windowOpen:
		return &rollout.Block{
			Reason: ReasonWindow, Message: "no window is open until " + rollout.Clock(d.windowNext), Until: d.windowNext,
		}
	default:
		return nil
	}
}

// gates are those of a stage, as they stand for this revision.
func (d *decision) gates(s *stage) []rollout.Gate {
	if !d.isNews() {
		return nil
	}
	var gates []rollout.Gate
	for _, g := range s.spec.Gates {
		gate := rollout.Gate{Name: g.Name, When: whenOf(g), OnRefusal: d.onRefusal(g)}
		if found := d.o.Gate(model.GateName(d.target, s.name, g)); found != nil && !d.begins() {
			gate.Verdict, gate.Message, gate.Since = found.Verdict, model.Short(found.Message, model.SaidLength), found.Since
		}
		gates = append(gates, gate)
	}
	return gates
}

// whenOf is where a gate stands.
func whenOf(g v1alpha1.Gate) rollout.When { return ask.WhenOf(spillway.GateTime(g.When)) }

// onRefusal returns what the refusal of a gate does.
func (d *decision) onRefusal(g v1alpha1.Gate) rollout.OnFailure {
	switch {
	case g.OnRefusal == v1alpha1.RefusalRollback && d.mayRollBack():
		return rollout.Rollback
	case g.OnRefusal == v1alpha1.RefusalContinue:
		return rollout.Continue
	default:
		return rollout.Stop
	}
}

// leafUnit makes a unit that of a member.
func (d *decision) leafUnit(unit *rollout.Unit, m *member, target string) {
	unit.Name, unit.Leaf = m.Name, m.leaf
	unit.Leaf.Target = target
	leaf, look := &m.leaf, d.lookFirst(m)
	switch {
	case leaf.Current == target && m.isDrifted():
		unit.Leaf.Health, unit.Leaf.Reason = rollout.Progressing, m.record.DriftReason()
		if leaf.RetryReason != "" {
			unit.Leaf.Reason += ", and cannot be corrected: " + leaf.RetryReason
		}
	case leaf.Current == target:
		unit.StartedAt = m.started
	case m.skip != nil:
		unit.Block = m.skip
	case look != nil:
		unit.Block = look
	case m.isEnding():
		unit.Block = &rollout.Block{Reason: ReasonTerminating, Message: "its old assemblage is being deleted"}
	case d.o.Foreign[m.Name]:
		unit.Block = &rollout.Block{Reason: ReasonForeign, Message: "another manager keeps a sync named " + d.o.Module.Name + " in it"}
	case !takesNoPlace(m, target):
		unit.Block = d.crowded(m)
	}
}

// defaultMaxRemoved is how many clusters may lose the module without an approval.
const defaultMaxRemoved = "10%"

// defaultDeadline is how long a cluster may take to become ready.
const defaultDeadline = 10 * time.Minute

func (d *decision) deadline() time.Duration {
	if s := d.o.Module.Rollout().ProgressDeadlineSeconds; s != nil {
		return seconds(*s)
	}
	return defaultDeadline
}

// onFailure returns what happens once too many have failed. Replace assigns all at the same time
// anyhow, so there it makes no difference unless something is rolled back.
func (d *decision) onFailure() rollout.OnFailure {
	answer := d.o.Module.Rollout().OnFailure
	switch {
	case answer == v1alpha1.Rollback && d.mayRollBack():
		return rollout.Rollback
	case answer == v1alpha1.Continue || !d.o.Module.IsStaged():
		return rollout.Continue
	default:
		return rollout.Stop
	}
}

// mayRollBack is true if there is something to go back to.
func (d *decision) mayRollBack() bool {
	return !d.o.Module.IsExternal() && d.good != "" && d.isNews()
}

// isNews is true while a revision is rolled out that has not got everywhere. Going
// back to one that has waits for no gate, soak or window.
func (d *decision) isNews() bool { return d.target != d.good }

func first(own, general *intstr.IntOrString, otherwise intstr.IntOrString) *intstr.IntOrString {
	switch {
	case own != nil:
		return own
	case general != nil:
		return general
	default:
		return &otherwise
	}
}

func seconds(n int32) time.Duration { return time.Duration(n) * time.Second }
