package history

import (
	"context"
	"fmt"
	"slices"

	batchv1 "k8s.io/api/batch/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"github.com/spillway-dev/spillway/internal/config/pin"
	"github.com/spillway-dev/spillway/internal/config/revisions"
	workloads "github.com/spillway-dev/spillway/internal/config/workload"
	"github.com/spillway-dev/spillway/internal/describe"
	"github.com/spillway-dev/spillway/internal/health"
	"github.com/spillway-dev/spillway/internal/vocabulary"
	"github.com/spillway-dev/spillway/rollout"
)

// What a revision refers to: the present content of an object, a snapshot that is kept, or one
// that does not exist any more.
const (
	contentPresent  = "Present"
	contentKept     = "Kept"
	contentNotFound = "NotFound"
)

// ofRevisions are the revisions that Kubernetes keeps of a workload, if one of them has pins:
// what to go back to. A caller who may not list them gets the rest.
func (h *historian) ofRevisions(ctx context.Context) ([]Entry, error) {
	obj := workloads.New(h.ref.Kind)
	if err := h.get(ctx, obj); err != nil {
		return nil, err
	}
	all, err := revisions.Of(ctx, h.reader, obj)
	if apierrors.IsForbidden(err) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	if !slices.ContainsFunc(all, func(r revisions.Revision) bool { return len(r.Pins) > 0 }) {
		return nil, nil
	}
	kept, err := revisions.SnapshotsIn(ctx, h.reader, h.ref.Namespace)
	isKnown := !apierrors.IsForbidden(err)
	if err != nil && isKnown {
		return nil, err
	}
	var entries []Entry
	for i := range all {
		r := &all[i]
		e := h.episode(describe.Config, fmt.Sprintf("revision %d", r.Number))
		e.Started = &r.Created
		switch {
		case r.Current:
			e.Message = "the present Pod template"
		case len(r.Pins) == 0:
			e.Message = "no pins: its Pods would start with the present config"
		}
		for _, p := range r.Pins {
			e.Units = append(e.Units, part(p, kept, isKnown))
		}
		entries = append(entries, e)
	}
	return entries, nil
}

func part(p pin.Pin, kept revisions.Snapshots, isKnown bool) Part {
	u := Part{Ref: describe.Ref{Kind: string(p.Kind), Name: p.Snapshot()}}
	switch {
	case !p.HasSnapshot():
		u.Name, u.Message = p.Name, "did not exist"
	case !isKnown:
	case kept.Has(p):
		u.Outcome = contentKept
	default:
		u.Outcome = contentNotFound
	}
	return u
}

// ofObject are the releases of a ConfigMap or Secret, its contents that are kept, and what
// refers to each. A caller who may not read it, or the snapshots of Secrets, gets what was recorded.
func (h *historian) ofObject(ctx context.Context) ([]Entry, error) {
	o := h.ref.Content()
	present, err := revisions.PresentOf(ctx, h.reader, o)
	var all revisions.Snapshots
	if err == nil {
		all, err = revisions.SnapshotsIn(ctx, h.reader, h.ref.Namespace)
	}
	if apierrors.IsForbidden(err) { // what was recorded says no content
		return h.ofReleases(ctx)
	}
	if err != nil {
		return nil, err
	}
	kept := all.Of(o.Kind, o.Name)
	if !present.HasSnapshot() && len(kept) == 0 {
		return nil, fmt.Errorf("%s not found in namespace %s, and it has no snapshot", h.ref, h.ref.Namespace)
	}
	referrers, err := revisions.ReferrersIn(ctx, h.reader, h.ref.Namespace)
	if err != nil {
		return nil, err
	}
	entries, err := h.ofReleases(ctx)
	if err != nil {
		return nil, err
	}
	for i := range kept {
		s := &kept[i]
		e := h.episode(describe.Config, "content "+s.Digest)
		e.Started, e.To, e.Outcome = &s.Created, s.Snapshot(), contentKept
		if s.Pin == present {
			e.Outcome = contentPresent
		}
		e.Units = partsOf(referrers, s.Pin)
		entries = append(entries, e)
	}
	return entries, nil
}

// partsOf are what refers to a content: each workload once, with its revisions, and Pods.
func partsOf(referrers []revisions.Referrer, to pin.Pin) []Part {
	var parts []Part
	for i := range referrers {
		r := &referrers[i]
		if !r.Refers(to) {
			continue
		}
		at := slices.IndexFunc(parts, func(p Part) bool { return p.Kind == r.Kind && p.Name == r.Name })
		if at < 0 {
			parts, at = append(parts, Part{Ref: describe.Ref{Kind: r.Kind, Name: r.Name}}), len(parts)
		}
		if text := referrerText(r); text != "" {
			if parts[at].Message != "" {
				text = parts[at].Message + ", " + text
			}
			parts[at].Message = text
		}
	}
	return parts
}

func referrerText(r *revisions.Referrer) string {
	switch {
	case r.Kind == describe.KindPod:
		return ""
	case r.Revision == 0:
		return "the present Pod template"
	default:
		return fmt.Sprintf("revision %d", r.Revision)
	}
}

// ofJob is a Job, with the config that its Pods keep.
func (h *historian) ofJob(ctx context.Context) ([]Entry, error) {
	job := &batchv1.Job{}
	if err := h.get(ctx, job); err != nil {
		return nil, err
	}
	return h.jobs(ctx, []batchv1.Job{*job})
}

// ofCronJob are the Jobs that Kubernetes keeps of a CronJob, the newest first.
func (h *historian) ofCronJob(ctx context.Context) ([]Entry, error) {
	of := &batchv1.CronJob{}
	if err := h.get(ctx, of); err != nil {
		return nil, err
	}
	jobs, err := describe.JobsOf(ctx, h.reader, of)
	if err != nil {
		return nil, err
	}
	slices.SortFunc(jobs, func(a, b batchv1.Job) int { return b.CreationTimestamp.Compare(a.CreationTimestamp.Time) })
	return h.jobs(ctx, jobs)
}

func (h *historian) jobs(ctx context.Context, jobs []batchv1.Job) ([]Entry, error) {
	kept, err := revisions.SnapshotsIn(ctx, h.reader, h.ref.Namespace)
	isKnown := !apierrors.IsForbidden(err)
	if err != nil && isKnown {
		return nil, err
	}
	entries := []Entry{}
	for i := range jobs {
		e := h.ofOne(&jobs[i])
		for _, p := range pin.Mentioned(vocabulary.Pins.Get(jobs[i].Spec.Template.Annotations)) {
			e.Units = append(e.Units, part(p, kept, isKnown))
		}
		entries = append(entries, e)
	}
	return entries, nil
}

// ofOne is when a Job ran, and why it has no pins.
func (h *historian) ofOne(j *batchv1.Job) Entry {
	e := h.episode(describe.Config, "Job "+j.Name)
	e.Message = describe.UnpinnedText(j)
	if pin.IsHeld(j) {
		e.Message = describe.HeldText(j)
	}
	if j.Status.StartTime == nil {
		return e
	}
	e.Started, e.Outcome = &j.Status.StartTime.Time, string(rollout.OutcomeRunning)
	end := health.EndOf(j)
	if end == nil {
		return e
	}
	e.Outcome, e.Ended = string(rollout.OutcomeComplete), &end.LastTransitionTime.Time
	if end.Type == batchv1.JobFailed {
		e.Outcome = string(rollout.OutcomeFailed)
	}
	return e
}
