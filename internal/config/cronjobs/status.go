package cronjobs

import (
	"context"

	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"github.com/spillway-dev/spillway/internal/config/content"
	"github.com/spillway-dev/spillway/internal/message"
	"github.com/spillway-dev/spillway/internal/ring"
	"github.com/spillway-dev/spillway/rollout"
)

// The reasons of Events on CronJobs.
const (
	// EventStarted: a ConfigMap or Secret that the CronJob uses has changed, and a run of it was started.
	// Action: nothing, for information only.
	EventStarted rollout.Reason = "JobStarted"
	// EventRefused: the API server has refused the Job of a CronJob whose config has changed.
	// Action: fix what the message names; the Job is created at one of the next attempts.
	EventRefused rollout.Reason = "JobRefused"
)

// report counts and logs the write of a pass. A Job is reported when it was created, and when it is refused.
func (r *runner) report(ctx context.Context, o *observed, p *plan, err error) {
	act := "record"
	switch {
	case p.create != nil:
		act = "run"
	case p.register || p.resume != "":
		act = "start"
	case p.record == "":
		return
	}
	r.reporter.Wrote(ctx, ring.Change{Act: act, Object: "CronJob " + o.cronJob.Namespace + "/" + o.cronJob.Name}, err)
	switch {
	case p.create == nil:
	case err == nil:
		why := message.Join(o.Changed, ", ", func(of content.Object) string { return of.From(o.cronJob.Namespace) })
		r.reporter.Normal(o.cronJob, EventStarted, "Job %s was created: %s changed", p.create.Name, why)
	case apierrors.IsForbidden(err), apierrors.IsInvalid(err):
		r.reporter.Warning(o.cronJob, EventRefused, "Job %s was not created: %v", p.create.Name, err)
	}
}
