package history

import (
	"context"
	"fmt"
	"slices"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/spillway-dev/spillway/internal/config/pin"
	"github.com/spillway-dev/spillway/internal/config/revisions"
	"github.com/spillway-dev/spillway/internal/describe"
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
	of, all := &batchv1.CronJob{}, &batchv1.JobList{}
	if err := h.get(ctx, of); err != nil {
		return nil, err
	}
	if err := h.reader.List(ctx, all, client.InNamespace(h.ref.Namespace)); err != nil {
		return nil, fmt.Errorf("list the Jobs of %s: %w", h.ref, err)
	}
	jobs := slices.DeleteFunc(all.Items, func(j batchv1.Job) bool { return !metav1.IsControlledBy(&j, of) })
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
	for i := range j.Status.Conditions {
		c := &j.Status.Conditions[i]
		if c.Status != corev1.ConditionTrue {
			continue
		}
		switch c.Type {
		case batchv1.JobComplete:
			e.Outcome, e.Ended = string(rollout.OutcomeComplete), &c.LastTransitionTime.Time
		case batchv1.JobFailed:
			e.Outcome, e.Ended = string(rollout.OutcomeFailed), &c.LastTransitionTime.Time
		}
	}
	return e
}
