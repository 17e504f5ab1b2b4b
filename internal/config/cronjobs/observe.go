package cronjobs

import (
	"context"
	"fmt"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/spillway-dev/spillway/internal/config/content"
	"github.com/spillway-dev/spillway/internal/config/workload"
)

// observed is a CronJob that runs for changes of its config, and what is known of that.
type observed struct {
	now     time.Time
	cronJob *batchv1.CronJob
	// record is that on the CronJob, empty if there is none, and next that of what counts now.
	record, next string
	// recorded is true if the record is of what counts now.
	recorded bool
	// changed are the objects to run it for, and settled is when they may not be followed by others any more.
	changed []content.Object
	settled time.Time
	// missing is what its Pods could not start without.
	missing []content.Missing
	// job is the one that was started for the record, nil without one.
	job *batchv1.Job
}

// observe reads a CronJob, its config and its Job; nil if it does not run for changes of its config.
func (r *runner) observe(ctx context.Context, name client.ObjectKey) (*observed, error) {
	c := &batchv1.CronJob{}
	if err := r.cronJobs.Get(ctx, name, c); client.IgnoreNotFound(err) != nil {
		return nil, fmt.Errorf("get CronJob %s: %w", name.Name, err)
	}
	w := workload.ReadRun(c, r.options.Reloader)
	if c.Name == "" || w == nil {
		return nil, nil //nolint:nilnil // there is nothing to do
	}
	objects, unlisted, err := workload.ListObjects(ctx, &r.options.Source, r.options.Reloader, name.Namespace)
	if err != nil {
		return nil, err
	}
	known := &content.Known{}
	if _, err := r.options.Source.Lookup().Observe(ctx, known, "", w.Reloaded.DemandIn(w.Demand, objects, unlisted)); err != nil {
		return nil, fmt.Errorf("read the config of CronJob %s: %w", name.Name, err)
	}
	w.Observe(known)
	o := &observed{now: r.options.Now(), cronJob: c, record: w.RunRecord(), changed: w.RunFor(), missing: w.Missing, recorded: w.IsRunRecorded()}
	o.next = w.NextRunRecord(o.now)
	if o.job, err = r.jobOf(ctx, o); err != nil {
		return nil, err
	}
	o.settled = r.settles(name, w, o)
	return o, nil
}

// settles is when what has changed may be run for: a change that is seen first may be followed by others.
func (r *runner) settles(name client.ObjectKey, w *workload.Workload, o *observed) time.Time {
	if len(o.changed) == 0 {
		delete(r.first, name)
		return o.now
	}
	if contents := w.RunContents(); r.first[name].record != contents {
		r.first[name] = change{record: contents, since: o.now}
	}
	return r.first[name].since.Add(r.options.Window)
}

// jobOf is the Job that was started for the record of a CronJob, nil without one.
func (r *runner) jobOf(ctx context.Context, o *observed) (*batchv1.Job, error) {
	job := &batchv1.Job{}
	err := r.jobs.Get(ctx, client.ObjectKey{Namespace: o.cronJob.Namespace, Name: jobName(o.cronJob.Name, o.record)}, job)
	switch {
	case apierrors.IsNotFound(err), err == nil && !metav1.IsControlledBy(job, o.cronJob):
		return nil, nil //nolint:nilnil // there is none
	case err != nil:
		return nil, fmt.Errorf("get the Job of CronJob %s: %w", o.cronJob.Name, err)
	default:
		return job, nil
	}
}
