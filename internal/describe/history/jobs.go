package history

import (
	"context"
	"slices"

	batchv1 "k8s.io/api/batch/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"github.com/spillway-dev/spillway/internal/config/pin"
	"github.com/spillway-dev/spillway/internal/config/revisions"
	"github.com/spillway-dev/spillway/internal/describe"
	"github.com/spillway-dev/spillway/internal/health"
	"github.com/spillway-dev/spillway/internal/vocabulary"
	"github.com/spillway-dev/spillway/rollout"
)

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
