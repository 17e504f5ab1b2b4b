package cronjobs

import (
	"context"
	"fmt"

	batchv1 "k8s.io/api/batch/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/spillway-dev/spillway/internal/config/follow"
)

// observed is a CronJob that runs for changes of its config, and what is known of that.
type observed struct {
	*follow.Config

	cronJob *batchv1.CronJob
	// job is the one that was started for the record, nil without one.
	job *batchv1.Job
}

// observe reads a CronJob, its config and its Job; nil if it does not run for changes of its config.
func (r *runner) observe(ctx context.Context, name client.ObjectKey) (*observed, error) {
	o := &observed{cronJob: &batchv1.CronJob{}}
	err := r.cronJobs.Get(ctx, name, o.cronJob)
	if apierrors.IsNotFound(err) {
		return nil, nil //nolint:nilnil // there is nothing to do
	}
	if err != nil {
		return nil, fmt.Errorf("get CronJob %s: %w", name.Name, err)
	}
	if o.Config, err = r.config.Read(ctx, o.cronJob); err != nil || o.Config == nil {
		return nil, err
	}
	o.job, err = r.jobOf(ctx, o)
	return o, err
}

// jobOf is the Job that was started for the record of a CronJob, nil without one.
func (r *runner) jobOf(ctx context.Context, o *observed) (*batchv1.Job, error) {
	job := &batchv1.Job{}
	err := r.jobs.Get(ctx, client.ObjectKey{Namespace: o.cronJob.Namespace, Name: jobName(o.cronJob.Name, o.Record)}, job)
	switch {
	case apierrors.IsNotFound(err), err == nil && !metav1.IsControlledBy(job, o.cronJob):
		return nil, nil //nolint:nilnil // there is none
	case err != nil:
		return nil, fmt.Errorf("get the Job of CronJob %s: %w", o.cronJob.Name, err)
	default:
		return job, nil
	}
}
