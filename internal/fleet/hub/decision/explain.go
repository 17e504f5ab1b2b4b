package decision

import (
	"fmt"
	"slices"
	"time"

	apimeta "k8s.io/apimachinery/pkg/api/meta"

	"github.com/spillway-dev/spillway/api/fleet/v1alpha1"
	"github.com/spillway-dev/spillway/internal/fleet/cluster"
	"github.com/spillway-dev/spillway/internal/fleet/hub/model"
	"github.com/spillway-dev/spillway/internal/reasons"
	"github.com/spillway-dev/spillway/internal/ring"
	"github.com/spillway-dev/spillway/rollout"
)

// Explanation says in one sentence how a module stands, and then the facts.
type Explanation struct {
	Kind      string `json:"kind"`
	Namespace string `json:"namespace"`
	Name      string `json:"name"`
	// Phase is that of the status: Complete, Progressing, Waiting, Paused, Failed,
	// RollingBack, RolledBack, Stalled or Deleting; or Unseen.
	Phase string `json:"phase"`
	// Reason is why it is not complete, empty if it is.
	Reason rollout.Reason `json:"reason,omitempty"`
	// Sentence is the same that the status, Events and logs use.
	Sentence string     `json:"sentence"`
	Since    *time.Time `json:"since,omitempty"`
	Until    *time.Time `json:"until,omitempty"`
	// Target is the ModuleRevision to get to, Current the last that got everywhere,
	// and RolledBack one that was given up.
	Target     string `json:"target"`
	Current    string `json:"current,omitempty"`
	RolledBack string `json:"rolledBack,omitempty"`
	// Pinned is what spec.targetRevision names, empty if the template counts.
	Pinned string `json:"pinned,omitempty"`
	// Stage is which stage moves, of how many; UpToDate how many clusters are at the
	// target and ready, of how many.
	Stage    string                 `json:"stage,omitempty"`
	UpToDate string                 `json:"upToDate"`
	Summary  *v1alpha1.Summary      `json:"summary,omitempty"`
	Stages   []v1alpha1.StageStatus `json:"stages,omitempty"`
	// Holds are all that wait, stages and clusters, each with the one reason.
	Holds []rollout.Hold `json:"holds,omitempty"`
	// Telling is the one of them that tells most of the whole, nil if nothing waits or
	// something moves.
	Telling *rollout.Hold `json:"-"`
	// Deadline is when what moves counts as failed, nil if nothing does.
	Deadline *time.Time `json:"deadline,omitempty"`
	// Clusters are those of the module, in the order in which they go.
	Clusters []ClusterExplanation `json:"clusters,omitempty"`
	// Pause is that a user has paused the module, nil if none has.
	Pause *rollout.Pause `json:"-"`
	// Steered is the last command of a user, nil if there is none.
	Steered *model.Steering `json:"steered,omitempty"`
	// Problems are mistakes, each with its fix; Notes are what is worth knowing
	// though nothing is wrong.
	Problems []string `json:"problems,omitempty"`
	Notes    []string `json:"notes,omitempty"`
	// Unseen is why the caller may not see what it was decided from, empty if they may:
	// then all of this is what the manager has written.
	Unseen string `json:"unseen,omitempty"`
	// Removal is how far the removal has come from clusters that no longer match, nil if
	// none loses the module.
	Removal *v1alpha1.RemovalStatus `json:"removal,omitempty"`
	// History are the last rollouts, the newest first.
	History []v1alpha1.PastRollout `json:"history,omitempty"`
	// Forecast is when the rollout ends, as the last step said.
	Forecast *v1alpha1.Forecast `json:"forecast,omitempty"`
	// Wake is when time alone changes some of this, zero for never.
	Wake time.Time `json:"-"`
}

// ClusterExplanation is how one cluster of a module stands.
type ClusterExplanation struct {
	Name string `json:"name"`
	// Stage is the one that it belongs to, empty if it belongs to none.
	Stage string `json:"stage,omitempty"`
	// Revision is what it is assigned, empty if it is nothing yet; Target what it is
	// to get to.
	Revision string `json:"revision,omitempty"`
	Target   string `json:"target,omitempty"`
	// State is what was reported of it: succeeded, failed, updating, waiting or
	// unreachable. Empty if nothing was, of what it is assigned.
	State v1alpha1.State `json:"state,omitempty"`
	// Reason is why it waits, empty if it does not.
	Reason rollout.Reason `json:"reason,omitempty"`
	// Sentence says its state.
	Sentence string     `json:"sentence"`
	Since    *time.Time `json:"since,omitempty"`
	Until    *time.Time `json:"until,omitempty"`
	// Hold says which user has pinned it, nil if it is not pinned.
	Hold *v1alpha1.Hold `json:"hold,omitempty"`
	// OnStage or OnCluster is what it waits for, empty if it is nothing in particular.
	OnStage   string `json:"onStage,omitempty"`
	OnCluster string `json:"onCluster,omitempty"`
	// Of is what stands for the cluster, without a kind if nothing does.
	Of v1alpha1.ClusterReference `json:"-"`
	// Selected is true if the module's selector matches it, Deleting if it is being
	// taken away, and IsNext if it is assigned Target as soon as the manager comes to it.
	Selected bool `json:"-"`
	// Removed is true if the module is to be removed from it, or is being removed.
	Removed  bool `json:"-"`
	Deleting bool `json:"-"`
	IsNext   bool `json:"-"`
}

// StageHold is what a stage as a whole waits for, nil if it does not wait.
func (e *Explanation) StageHold(stage string) *rollout.Hold {
	return rollout.Plan{Holds: e.Holds}.At(unitStages, stage).Hold
}

// Explain puts the facts of one module together.
func Explain(o *model.Observed) Explanation {
	d := decide(o)
	if o.Module.Deleting {
		e := factsOf(o, d.deletingStatus())
		e.Reason, e.Wake = reasons.Deleting, d.lasts()
		return e
	}
	e := factsOf(o, d.status())
	reason, message, _ := d.verdict()
	e.Sentence, e.Problems = message, d.problems
	if e.Phase != string(rollout.PhaseComplete) {
		e.Reason = reason
	}
	if hold := d.plan.At().Hold; hold != nil {
		e.Telling, e.Until, e.Deadline = hold, momentOrNil(hold.Until), d.due(hold)
	}
	e.Holds = slices.Concat(d.plan.Holds, d.restPlan.Holds)
	for _, m := range d.members {
		e.Clusters = append(e.Clusters, d.explainMember(m))
	}
	for _, m := range d.unknown {
		if !m.isLeaving() {
			e.Clusters = append(e.Clusters, d.explainUnknown(m))
		}
	}
	for i := range d.removals {
		e.Clusters = append(e.Clusters, d.explainRemoval(&d.removals[i]))
	}
	e.Notes, e.Wake = d.notes(), d.lasts()
	return e
}

// lasts is when time alone changes what is said, zero for never: also where nothing that may be done
// depends on it.
func (d *decision) lasts() time.Time {
	moments, soak := []time.Time{d.windowCloses, d.windowNext}, seconds(d.o.Module.Rollout().MinReadySeconds)
	for _, m := range d.members {
		moments = append(moments, m.started.Add(d.deadline()), m.leaf.HealthySince.Add(soak))
	}
	return ring.Earlier(ring.Earlier(d.wake(), d.restPlan.Wake), ring.Soonest(d.o.Now, moments...))
}

// ExplainCluster is the state of one cluster, also if it is none of the module's.
func ExplainCluster(o *model.Observed, name string) ClusterExplanation {
	d := decide(o)
	if m := d.member(name); m != nil {
		return d.explainMember(m)
	}
	if i := slices.IndexFunc(d.removals, func(r removal) bool { return r.Name == name }); i >= 0 {
		return d.explainRemoval(&d.removals[i])
	}
	if i := slices.IndexFunc(d.unknown, func(m *member) bool { return m.Name == name }); i >= 0 {
		return d.explainUnknown(d.unknown[i])
	}
	return d.explainUnselected(name)
}

// due is when what moves counts as failed, nil of what does not move.
func (d *decision) due(hold *rollout.Hold) *time.Time {
	if hold.Reason != rollout.ReasonProgressing || hold.Since.IsZero() {
		return nil
	}
	return momentOrNil(hold.Since.Add(d.deadline()))
}

// ExplainWritten tells what the manager has written, where the caller may not see
// what it was decided from.
func ExplainWritten(o *model.Observed, err error) Explanation {
	status := &o.Module.Status
	e := factsOf(o, *status)
	e.Unseen = err.Error()
	e.Notes = []string{"this is read from the status that the manager wrote; to see its input: " + e.Unseen}
	ready := apimeta.FindStatusCondition(status.Conditions, ring.ConditionReady)
	switch {
	case e.Phase != "" && status.ObservedGeneration != o.Module.Generation:
		e.Phase, e.Sentence = string(PhaseUnseen), "the manager has not observed the current spec; check that the manager is running"
	case e.Phase != string(rollout.PhaseComplete) && ready != nil:
		e.Reason = rollout.Reason(ready.Reason)
	}
	return e
}

// factsOf is what a status says.
func factsOf(o *model.Observed, status v1alpha1.ModuleStatus) Explanation {
	e := Explanation{
		Kind: o.Module.Kind, Namespace: o.Module.Namespace, Name: o.Module.Name,
		Phase: status.Phase, Sentence: status.WaitingFor,
		Target: status.TargetRevision, Current: status.CurrentRevision, RolledBack: status.RolledBack, Pinned: o.Module.Spec.TargetRevision,
		Stage: status.Stage, UpToDate: status.Clusters, Summary: status.Summary, Stages: status.Stages,
		Steered: o.Module.Steered, History: status.History, Forecast: status.Forecast, Removal: status.Removal,
	}
	if status.Since != nil {
		e.Since = &status.Since.Time
	}
	if s := e.Steered; o.Module.Spec.Suspend {
		e.Pause = &rollout.Pause{}
		if s != nil && s.Verb == model.VerbPause {
			e.Pause = &rollout.Pause{By: s.By, Reason: s.Reason, Since: s.At.Time}
		}
	}
	switch {
	case e.Sentence != "":
	case e.Phase == "":
		e.Sentence = "the manager has not observed it yet; is one running with --rings=fleet?"
	default:
		e.Sentence = fmt.Sprintf("%s of its clusters are at %s", status.Clusters, status.TargetRevision)
	}
	return e
}

// notes are what is worth knowing though nothing is wrong.
func (d *decision) notes() []string {
	var notes []string
	for _, t := range d.tolerances() {
		notes = append(notes, t.Sentence)
	}
	if d.isRemovalHeld() {
		notes = append(notes, fmt.Sprintf("%d clusters no longer match spec.selector; if that is intended: %s%d",
			len(d.removals), model.ApproveRemovals(d.o.Module.Kind, d.o.Module.Namespace, d.o.Module.Name), len(d.removals)))
	}
	if names := d.forgotten(); len(names) > 0 {
		notes = append(notes, fmt.Sprintf("%d clusters are unknown and count in no budget, %s among them; restore its Secret, or if the cluster is gone for good: %s",
			len(names), names[0], d.toForget(names[0])))
	}
	if g := d.o.Module.Status.GivenUp; g != nil && d.o.Module.Status.RolledBack == g.Revision {
		notes = append(notes, g.Revision+" was given up "+because(g))
	}
	if pin := d.o.Module.Spec.TargetRevision; pin != "" {
		notes = append(notes, "spec.targetRevision keeps it at "+pin+", whatever its template says")
	}
	if d.o.Module.IsExternal() {
		notes = append(notes, "its strategy is External: another client assigns what clusters run")
	}
	return notes
}

// explainMember is how a cluster of the module stands.
func (d *decision) explainMember(m *member) ClusterExplanation {
	e := ClusterExplanation{
		Name: m.Name, Revision: m.leaf.Current, Target: d.target, Since: momentOrNil(m.started),
		Of: m.Ref, Selected: true, IsNext: m.moves,
	}
	if m.stage >= 0 {
		e.Stage = d.stages[m.stage].name
	}
	if m.isNew {
		e.Target = d.good
	}
	if m.isHeld() {
		e.Hold = m.record.Hold
	}
	if m.isAssigned() && m.record.Reported && m.move == nil {
		e.State, e.Since = m.record.State, momentOrNil(model.Later(m.record.Since, m.started))
	}
	d.describeMember(m, &e)
	return e
}

// explainUnknown is the state of a cluster that nothing stands for, and that counts as down.
func (d *decision) explainUnknown(m *member) ClusterExplanation {
	e := ClusterExplanation{Name: m.Name, Revision: m.leaf.Current, Target: m.leaf.Current, Since: momentOrNil(m.started)}
	if m.stage >= 0 {
		e.Stage = d.stages[m.stage].name
	}
	if m.record != nil && m.record.Reported && m.move == nil {
		e.State = m.record.State
	}
	e.Reason, e.Sentence = ReasonUnknown, m.Name+" is unknown: "+d.whyUnknown(m)
	if m.hold != nil {
		e.Reason, e.Sentence = m.hold.Reason, m.hold.Message
	}
	return e
}

// explainRemoval is the state of a cluster that loses the module.
func (d *decision) explainRemoval(r *removal) ClusterExplanation {
	e := ClusterExplanation{Name: r.Name, Revision: r.leaf.Current, Of: r.Ref, Hold: r.record.Hold, IsNext: r.moves, Removed: true, Since: momentOrNil(r.started)}
	switch {
	case r.hold != nil:
		e.Reason, e.Sentence, e.Until = r.hold.Reason, r.hold.Message, momentOrNil(r.hold.Until)
	case len(d.problems) > 0:
		e.Sentence = r.Name + " no longer matches spec.selector, and keeps what it has while the module is invalid"
	default:
		e.Sentence = r.Name + " no longer matches spec.selector, and loses the module next"
	}
	return e
}

// describeMember puts into words how a cluster stands.
func (d *decision) describeMember(m *member, e *ClusterExplanation) {
	switch h := m.hold; {
	case h != nil:
		e.Reason, e.Sentence, e.Until = h.Reason, h.Message, momentOrNil(h.Until)
		if e.OnStage, e.OnCluster = UnitOf(h.On); e.OnCluster != "" {
			e.OnStage = ""
		}
		if since := momentOrNil(h.Since); since != nil {
			e.Since = since
		}
	case m.isHeld():
		e.Sentence = m.Name + " is " + orNothing(m.leaf.Current) + ", where it is pinned"
	case m.moves:
		e.Sentence = m.Name + " is assigned " + e.Target + " next"
	case m.leaf.Current != e.Target:
		e.Sentence = m.Name + " is " + orNothing(m.leaf.Current) + ", and nothing more is assigned at present: " + d.status().WaitingFor
	default:
		e.Sentence = m.Name + " is at " + m.leaf.Current + ", and ready"
	}
}

func momentOrNil(t time.Time) *time.Time {
	if t.IsZero() {
		return nil
	}
	return &t
}

// UnitOf is the stage and the cluster at a path: one of the two, or both of a cluster
// in a stage, or neither where it is about all of them. New clusters are in no stage
// of the rollout, nor are those that are pinned.
func UnitOf(path rollout.Path) (stage, cluster string) {
	if len(path) > 1 && path[0] == unitStages {
		stage, path = path[1], path[1:]
	}
	if len(path) > 1 {
		cluster = path[len(path)-1]
	}
	return stage, cluster
}

func orNothing(revision string) string {
	if revision == "" {
		return "assigned nothing"
	}
	return "at " + revision
}

// explainUnselected says why a cluster is none of the module's.
func (d *decision) explainUnselected(name string) ClusterExplanation {
	e := ClusterExplanation{Name: name}
	i := slices.IndexFunc(d.o.Clusters, func(c model.Cluster) bool { return c.Name == name })
	r := d.record(name)
	if r != nil && r.Assigned {
		e.Revision, e.State, e.Hold = r.Revision, r.State, r.Hold
	}
	if i >= 0 {
		c := &d.o.Clusters[i]
		e.Of, e.Deleting, e.Selected = c.Ref, c.Deleting, d.isSelected(c)
	}
	switch {
	case i < 0 && e.Revision != "":
		e.Sentence = fmt.Sprintf("%s is not known at present, and keeps what it was assigned, %s; if it is gone for good: %s", name, e.Revision, d.toForget(name))
	case i < 0:
		e.Sentence = fmt.Sprintf("cluster %s not found in namespace %s: neither a Cluster of Cluster API, nor a Secret %s with the label spillway.dev/cluster=true",
			name, d.o.Module.Namespace, cluster.SecretName(name))
	case e.Deleting:
		e.Sentence = name + " is being deleted; nothing on it is changed"
	case !e.Selected && e.Revision != "":
		e.Sentence = name + " is no longer selected by spec.selector: the module is removed from it"
	case !e.Selected:
		e.Sentence = name + " is not selected by spec.selector; compare it with the labels of the cluster"
	default:
		e.Sentence = fmt.Sprintf("%s is assigned nothing, because it is not ready: its control plane must be initialized, and Secret %s must exist",
			name, cluster.SecretName(name))
	}
	return e
}
