package history

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strconv"
	"strings"

	appsv1 "k8s.io/api/apps/v1"

	"github.com/spillway-dev/spillway/api/spillway/v1alpha1"
	"github.com/spillway-dev/spillway/internal/describe"
	"github.com/spillway-dev/spillway/internal/reasons"
	"github.com/spillway-dev/spillway/internal/tracing/identity"
	"github.com/spillway-dev/spillway/internal/vocabulary"
	"github.com/spillway-dev/spillway/internal/zones/decision"
	"github.com/spillway-dev/spillway/rollout"
)

// ofGroup are the rollouts of a group of StatefulSets. Of the newest it is known who
// edited the templates, and when its zones began.
func (h *historian) ofGroup(ctx context.Context) ([]Entry, error) {
	group := &v1alpha1.RolloutGroup{}
	if err := h.get(ctx, group); err != nil {
		return nil, err
	}
	episodes := make([]Entry, len(group.Status.History))
	for i := range group.Status.History {
		r := &group.Status.History[i]
		episodes[i] = h.rolloutOf(r)
		episodes[i].Trace = identity.Trace(group.UID, strconv.FormatInt(r.Number, 10), r.StartedAt.Time)
	}
	if len(episodes) == 0 {
		return episodes, nil
	}
	newest := &episodes[0]
	if newest.Outcome != string(rollout.OutcomeComplete) {
		newest.Message = group.Status.WaitingFor
	}
	renew(newest.Units, group.Status.Zones)
	if err := h.edited(ctx, newest, group.Status.History[0].Zones); err != nil {
		return nil, err
	}
	annotate(episodes, h.steered(group))
	return episodes, nil
}

func (h *historian) rolloutOf(r *v1alpha1.Rollout) Entry {
	e := h.episode(describe.Zones, fmt.Sprintf("rollout %d", r.Number))
	e.Started, e.Ended, e.Outcome, e.Message, e.By, e.UndoneBy = &r.StartedAt.Time, describe.TimeOf(r.FinishedAt), r.Outcome, r.Message, r.ChangedBy, r.UndoneBy
	var to []string
	for i := range r.Zones {
		to, e.Units = append(to, r.Zones[i].Revision), append(e.Units, zoneIn(r, &r.Zones[i]))
	}
	e.To = strings.Join(to, ", ")
	return e
}

// zoneIn is a zone in a rollout that is over, or was broken off.
func zoneIn(r *v1alpha1.Rollout, z *v1alpha1.ZoneRevision) Part {
	s := Part{Ref: describe.Ref{Kind: "Zone", Name: z.Name}, Started: describe.TimeOf(z.StartedAt), Ended: describe.TimeOf(z.FinishedAt), Outcome: r.Outcome}
	if z.FinishedAt != nil {
		s.Outcome = decision.StateComplete
	}
	return s
}

// renew adds the current state of zones that are updating.
func renew(moved []Part, rows []v1alpha1.Zone) {
	for i := range moved {
		for j := range rows {
			if moved[i].Name == rows[j].Name && moved[i].Ended == nil {
				moved[i].Outcome, moved[i].Message = rows[j].State, rows[j].Message
			}
		}
	}
}

// edited says which templates were changed, and by whom.
func (h *historian) edited(ctx context.Context, e *Entry, moved []v1alpha1.ZoneRevision) error {
	sets := &appsv1.StatefulSetList{}
	if err := h.inNamespace(ctx, sets); err != nil {
		return err
	}
	var changes, names []string
	for i := range sets.Items {
		set := &sets.Items[i]
		if groupOf(set) == h.ref.Name && isMoved(moved, set.Name, set.Status.UpdateRevision) {
			change, by := h.templateChange(ctx, set)
			changes, names = append(changes, change), append(names, by)
		}
	}
	e.Change, e.By = strings.Join(slices.Compact(changes), ", "), cmp.Or(e.By, people(names))
	return nil
}

func isMoved(moved []v1alpha1.ZoneRevision, name, revision string) bool {
	return slices.ContainsFunc(moved, func(z v1alpha1.ZoneRevision) bool { return z.Name == name && z.Revision == revision })
}

func groupOf(set *appsv1.StatefulSet) string { return vocabulary.GroupOf(set.Labels, set.Annotations) }

// steered is what the group still remembers of what people told it.
func (h *historian) steered(group *v1alpha1.RolloutGroup) []Event {
	var notes []Event
	if p := group.Spec.Pause; p != nil && p.Since != nil {
		notes = append(notes, Event{At: p.Since.Time, About: h.ref, Ring: describe.Zones, Command: true, Reason: string(rollout.ReasonPaused), Text: said(string(rollout.ReasonPaused), p.By, p.Reason)})
	}
	if r := group.Spec.Retry; r != nil {
		notes = append(notes, Event{At: r.At.Time, About: h.ref, Ring: describe.Zones, Command: true, Reason: string(reasons.Retried), Text: said(string(reasons.Retried), r.By, r.Reason)})
	}
	return notes
}

// said is a word with who said it, and why, as the Events of the commands have it.
func said(word, by, reason string) string {
	if by != "" {
		word += ", by " + by
	}
	if reason != "" {
		word += ": " + reason
	}
	return word
}
