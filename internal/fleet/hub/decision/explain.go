package decision

import (
	"fmt"
	"slices"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/spillway-dev/spillway/api/fleet/v1alpha1"
	"github.com/spillway-dev/spillway/api/record"
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
	// Rollout is the record, nil if it is of another generation or there is none.
	Rollout *record.Rollout `json:"rollout,omitempty"`
	// Deadline is when what moves counts as failed, nil if nothing does.
	Deadline *time.Time `json:"deadline,omitempty"`
	// Clusters are those that are not complete, as far as the record names them.
	Clusters []ClusterExplanation `json:"clusters,omitempty"`
	// Pause is that a user has paused the module, nil if none has.
	Pause *rollout.Pause `json:"-"`
	// Steered is the last command of a user, nil if there is none.
	Steered *model.Steering `json:"steered,omitempty"`
	// Problems are mistakes, each with its fix; Notes are what is worth knowing
	// though nothing is wrong.
	Problems []string `json:"problems,omitempty"`
	Notes    []string `json:"notes,omitempty"`
	// Failing are clusters that have failed.
	Failing []v1alpha1.FailingCluster `json:"failingClusters,omitempty"`
	// Removal is how far the removal has come from clusters that no longer match, nil if
	// none loses the module.
	Removal *v1alpha1.RemovalStatus `json:"removal,omitempty"`
	// History are the last rollouts, the newest first.
	History []v1alpha1.PastRollout `json:"history,omitempty"`
	// Forecast is when the rollout ends, as the last step said.
	Forecast *v1alpha1.Forecast `json:"forecast,omitempty"`
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
	// Overrides are those of its revision that it has.
	Overrides []string `json:"overrides,omitempty"`
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

// ExplanationOf is what a status says of a module.
func ExplanationOf(o client.Object) Explanation {
	spec, status := model.Parts(o)
	e := factsOf(o, spec, status)
	recorded := ring.Recorded{
		Generation: o.GetGeneration(), Observed: status.ObservedGeneration, Rollout: status.Rollout, Conditions: status.Conditions, Since: status.Since,
	}
	s := recorded.Summary()
	switch {
	case o.GetDeletionTimestamp() != nil: // there is no rollout any more
		e.Phase, e.Reason = string(PhaseDeleting), reasons.Deleting
		if status.Phase != string(PhaseDeleting) {
			e.Sentence = "it is being removed from its clusters"
		}
		return e
	case status.Phase == "":
		s.Sentence += "; check that one runs with --rings=fleet"
	}
	e.Phase, e.Reason, e.Sentence, e.Since, e.Until, e.Deadline = string(s.Phase), s.Reason, s.Sentence, s.Since, s.Until, s.Deadline
	if s.Phase == PhaseUnseen {
		return e
	}
	e.Rollout, e.Notes = status.Rollout, status.Rollout.Notes
	if e.Reason == ReasonInvalid {
		e.Problems = []string{e.Sentence}
	}
	for i := range status.Rollout.Causes {
		e.addClusters(&status.Rollout.Causes[i])
	}
	return e
}

// addClusters adds the clusters that wait for the same.
func (e *Explanation) addClusters(c *record.Cause) {
	for i, unit := range c.Units {
		stage, name := ring.UnitOf(unit)
		if stage == "" && (name == e.Name || slices.ContainsFunc(e.Stages, func(s v1alpha1.StageStatus) bool { return s.Name == name })) {
			continue // it is about the whole
		}
		is := ring.WaitingIn(c, name, i)
		x := ClusterExplanation{
			Name: name, Stage: stage, Target: e.Target, Reason: is.Reason, Sentence: is.Sentence(name, is.Position),
			Since: momentOrNil(is.Since), Until: momentOrNil(is.Until), Removed: is.Removed, IsNext: is.State == ring.StateNext,
		}
		switch on := c.On; {
		case on == nil:
		case on.Kind == KindStage:
			x.OnStage = on.Name
		default:
			x.OnCluster = on.Name
		}
		e.Clusters = append(e.Clusters, x)
	}
}

// Cluster is a cluster of the module that is not complete, nil if the record names none of the name.
func (e *Explanation) Cluster(name string) *ClusterExplanation {
	i := slices.IndexFunc(e.Clusters, func(c ClusterExplanation) bool { return c.Name == name })
	if i < 0 {
		return nil
	}
	return &e.Clusters[i]
}

// due is when what moves counts as failed, nil of what does not move.
func (d *decision) due(hold *rollout.Hold) *time.Time {
	if hold.Reason != rollout.ReasonProgressing || hold.Since.IsZero() {
		return nil
	}
	return momentOrNil(hold.Since.Add(d.deadline()))
}

// factsOf is what a module and its status say besides the rollout.
func factsOf(o client.Object, spec *v1alpha1.ModuleSpec, status *v1alpha1.ModuleStatus) Explanation {
	e := Explanation{
		Kind: model.KindOf(o), Namespace: o.GetNamespace(), Name: o.GetName(), Phase: status.Phase, Sentence: status.WaitingFor,
		Target: status.TargetRevision, Current: status.CurrentRevision, RolledBack: status.RolledBack, Pinned: spec.TargetRevision,
		Stage: status.Stage, UpToDate: status.Clusters, Summary: status.Summary, Stages: status.Stages,
		Steered: model.SteeringOf(o), History: status.History, Forecast: status.Forecast, Removal: status.Removal, Failing: status.FailingClusters,
	}
	if s := e.Steered; spec.Suspend {
		e.Pause = &rollout.Pause{}
		if s != nil && s.Verb == model.VerbPause {
			e.Pause = &rollout.Pause{By: s.By, Reason: s.Reason, Since: s.At.Time}
		}
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
	if note := d.drifted(); note != "" {
		notes = append(notes, note)
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

// drifted says on how many clusters another client has changed what the module has applied, and what on the first of them; empty if
// on none.
func (d *decision) drifted() string {
	var first *member
	n := 0
	for _, m := range d.members {
		if !m.isAssigned() || m.record.Kept() == "" {
			continue
		}
		if n++; first == nil || m.Name < first.Name {
			first = m
		}
	}
	if n == 0 {
		return ""
	}
	return fmt.Sprintf("clusters with drift: %d, %s among them: %s", n, first.Name, first.record.Kept())
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

// Assigned is the state of a cluster of which the record says nothing: it is complete, or is none of the module's.
func (e *Explanation) Assigned(r *model.Record, c *model.Cluster, selector *metav1.LabelSelector, name string) ClusterExplanation {
	x := ClusterExplanation{Name: name}
	if r != nil && r.Assigned {
		x.Revision, x.Overrides, x.State, x.Hold = r.Revision, r.Overrides, r.State, r.Hold
	}
	if c != nil {
		x.Of, x.Deleting, x.Selected = c.Ref, c.Deleting, isSelected(selector, c)
	}
	isMember := x.Selected && !x.Deleting && (c.Ready || x.Revision != "") // as in findMembers
	if isMember {
		x.Target = e.Target
	}
	if isMember && x.Revision == "" {
		x.Reason, x.Sentence = ReasonRevision, name+" is assigned nothing yet: "+e.Sentence
		return x
	}
	if x.Sentence = e.assignedSentence(&x, c != nil); r != nil && r.Kept() != "" {
		x.Sentence += "; " + r.Kept()
	}
	return x
}

func (e *Explanation) assignedSentence(x *ClusterExplanation, isKnown bool) string {
	name, at := x.Name, x.Revision
	if len(x.Overrides) > 0 {
		at += " with " + namesOf(x.Overrides)
	}
	switch {
	case !isKnown && x.Revision != "":
		return fmt.Sprintf("%s is not known at present, and keeps what it was assigned, %s; if it is gone for good: %s", name, x.Revision, toForget(e.Kind, e.Namespace, name))
	case !isKnown:
		return fmt.Sprintf("cluster %s not found in namespace %s: neither a Cluster of Cluster API, nor a Secret %s with the label spillway.dev/cluster=true",
			name, e.Namespace, cluster.SecretName(name))
	case x.Deleting:
		return name + " is being deleted; nothing on it is changed"
	case !x.Selected && x.Revision != "":
		return name + " is no longer selected by spec.selector: the module is removed from it"
	case !x.Selected:
		return name + " is not selected by spec.selector; compare it with the labels of the cluster"
	case x.Revision == "":
		return fmt.Sprintf("%s is assigned nothing, because it is not ready: its control plane must be initialized, and Secret %s must exist",
			name, cluster.SecretName(name))
	case x.Hold != nil:
		return name + " is at " + at + ", where it is pinned"
	case x.Revision == x.Target && x.State == v1alpha1.StateSucceeded:
		return name + " is at " + at + ", and ready"
	case e.Phase == string(rollout.PhaseComplete) && x.State == v1alpha1.StateSucceeded:
		return name + " is at " + at + ", and ready; " + x.Target + " changes nothing on it"
	default:
		return name + " is at " + at + "; the record of the module does not say why it is not complete"
	}
}

func isSelected(selector *metav1.LabelSelector, c *model.Cluster) bool {
	s, err := metav1.LabelSelectorAsSelector(selector)
	return err == nil && s.Matches(labels.Set(c.Labels))
}
