package history

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"

	apimeta "k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	fleetv1 "github.com/spillway-dev/spillway/api/fleet/v1alpha1"
	"github.com/spillway-dev/spillway/api/spillway/v1alpha1"
	"github.com/spillway-dev/spillway/internal/describe"
	"github.com/spillway-dev/spillway/internal/fleet/hub/model"
	"github.com/spillway-dev/spillway/internal/fleet/outcome"
	"github.com/spillway-dev/spillway/internal/tracing/identity"
	"github.com/spillway-dev/spillway/internal/vocabulary"
	"github.com/spillway-dev/spillway/rollout"
)

// ofModule are the rollouts of a module, and then the revisions that are not known to
// have been rolled out. Of the newest it is known how long its clusters took.
func (h *historian) ofModule(ctx context.Context) ([]Entry, error) {
	module := model.New(h.ref.Kind)
	if err := h.get(ctx, module); err != nil {
		return nil, err
	}
	revisions, err := h.revisions(ctx, module)
	if err != nil {
		return nil, err
	}
	_, status := model.Parts(module)
	var episodes []Entry
	for i := range status.History {
		e := h.release(&status.History[i], revisions[status.History[i].Revision])
		e.Trace = identity.Trace(module.GetUID(), e.To, *e.Started)
		if i == 0 {
			h.finishRelease(&e, module, status)
			if e.Units, err = h.clusters(ctx, status); err != nil {
				return nil, err
			}
		}
		episodes = append(episodes, e)
		delete(revisions, status.History[i].Revision)
	}
	gates, err := h.gates(ctx)
	if err != nil {
		return nil, err
	}
	annotate(episodes, gates)
	return append(episodes, h.unreleased(revisions)...), nil
}

func (h *historian) release(past *fleetv1.PastRollout, r *v1alpha1.ModuleRevision) Entry {
	e := h.revision(past.Revision, r)
	e.Started, e.Ended, e.Outcome = &past.StartedAt.Time, describe.TimeOf(past.FinishedAt), past.Outcome
	e.Message, e.By, e.UndoneBy = past.Message, cmp.Or(past.ChangedBy, e.By), past.UndoneBy
	return e
}

// finishRelease is what only of the newest rollout is known.
func (*historian) finishRelease(e *Entry, module client.Object, status *fleetv1.ModuleStatus) {
	if e.Outcome != string(rollout.OutcomeComplete) && e.Message == "" {
		e.Message = status.WaitingFor
	}
	if s := model.SteeringOf(module); s != nil && s.Verb == model.VerbRollback && s.Revision == e.To {
		e.Change, e.By = said("rollback to it", "", s.Reason), s.By
	}
}

// unreleased are revisions of which no rollout is remembered, the newest first.
func (h *historian) unreleased(revisions map[string]*v1alpha1.ModuleRevision) []Entry {
	sorted := make([]*v1alpha1.ModuleRevision, 0, len(revisions))
	for _, r := range revisions {
		sorted = append(sorted, r)
	}
	slices.SortFunc(sorted, func(a, b *v1alpha1.ModuleRevision) int { return int(b.Spec.Number - a.Spec.Number) })
	var episodes []Entry
	for _, r := range sorted {
		episodes = append(episodes, h.revision(r.Name, r))
	}
	return episodes
}

// revisions are those of the module, by name.
func (h *historian) revisions(ctx context.Context, module client.Object) (map[string]*v1alpha1.ModuleRevision, error) {
	list := &v1alpha1.ModuleRevisionList{}
	if err := h.inNamespace(ctx, list); err != nil {
		return nil, err
	}
	revisions := map[string]*v1alpha1.ModuleRevision{}
	for i := range list.Items {
		if r := &list.Items[i]; metav1.IsControlledBy(r, module) {
			revisions[r.Name] = r
		}
	}
	return revisions, nil
}

// revision is an episode about a revision, which may have been collected since.
func (h *historian) revision(name string, r *v1alpha1.ModuleRevision) Entry {
	e := h.episode(describe.Fleet, "revision")
	if e.To = name; r == nil {
		return e
	}
	e.What = fmt.Sprintf("revision %d", r.Spec.Number)
	e.Change, e.By = SourceVersion(r.Spec.Template.Sync.Source), vocabulary.WrittenBy.Get(r.Annotations)
	if r.Status.Resolved != "" && r.Status.Resolved != e.Change {
		e.Change += ", which was " + r.Status.Resolved
	}
	return e
}

// SourceVersion is the exact version that a source stands for.
func SourceVersion(s *fleetv1.Source) string {
	switch {
	case s == nil:
		return ""
	case s.Git != nil:
		return s.Git.Version.Tag + s.Git.Version.Branch + s.Git.Version.SemVer + s.Git.Version.Revision
	case s.OCI != nil:
		return s.OCI.Version.Tag + s.OCI.Version.SemVer + s.OCI.Version.Digest
	case s.Bucket != nil:
		return s.Bucket.Prefix
	case s.Helm != nil:
		return s.Helm.Chart + " " + s.Helm.Version
	default:
		return ""
	}
}

// clusters are the stages of the newest rollout, and then the clusters that are
// assigned what it rolls out, in the order in which they were.
func (h *historian) clusters(ctx context.Context, status *fleetv1.ModuleStatus) ([]Part, error) {
	var units []Part
	for i := range status.Stages {
		s := &status.Stages[i]
		units = append(units, Part{Ref: describe.Ref{Kind: "Stage", Name: s.Name}, Started: describe.TimeOf(s.StartedAt), Ended: describe.TimeOf(s.FinishedAt), Outcome: s.State, Message: s.Message})
	}
	list := describe.NewAssemblages(h.ref.Kind)
	if err := h.inNamespace(ctx, list); err != nil {
		return nil, err
	}
	var assigned []assignee
	for _, a := range describe.AssemblagesIn(list) {
		if is := a.Assignment(h.ref.Name); is != nil && is.Revision == status.TargetRevision && is.AssignedAt != nil {
			assigned = append(assigned, assignee{a.GetName(), is, outcome.Find(a.Status, is)})
		}
	}
	slices.SortFunc(assigned, func(a, b assignee) int {
		return cmp.Or(a.is.AssignedAt.Compare(b.is.AssignedAt.Time), strings.Compare(a.cluster, b.cluster))
	})
	for i := range assigned {
		units = append(units, assigned[i].stretch())
	}
	return units, nil
}

// assignee is what a cluster is assigned, and what became of exactly that: nil if nothing was reported.
type assignee struct {
	cluster string
	is      *fleetv1.Assignment
	became  *fleetv1.SyncStatus
}

func (a *assignee) stretch() Part {
	s := Part{Ref: describe.Ref{Kind: "Cluster", Name: a.cluster}, Started: describe.TimeOf(a.is.AssignedAt)}
	if a.became == nil {
		return s
	}
	s.Outcome, s.Message = string(a.became.State), a.became.Message
	if a.became.State == fleetv1.StateSucceeded {
		s.Ended, s.Message = describe.TimeOf(a.became.LastTransitionTime), ""
	}
	return s
}

// gates are what was decided about the module, and by whom.
func (h *historian) gates(ctx context.Context) ([]Event, error) {
	list := &v1alpha1.RolloutGateList{}
	if err := h.inNamespace(ctx, list); err != nil {
		return nil, err
	}
	var notes []Event
	for i := range list.Items {
		g := &list.Items[i]
		c := apimeta.FindStatusCondition(g.Status.Conditions, v1alpha1.GatePassed)
		if g.Spec.TargetRef.Kind != h.ref.Kind || g.Spec.TargetRef.Name != h.ref.Name || c == nil {
			continue
		}
		notes = append(notes, Event{
			At: c.LastTransitionTime.Time, About: h.ref, Ring: describe.Fleet, Command: true, Warning: c.Status == metav1.ConditionFalse, Reason: c.Reason,
			Text: said(fmt.Sprintf("gate %s of stage %s", g.Spec.Gate, g.Spec.Stage), "", c.Message),
		})
	}
	return notes, nil
}
