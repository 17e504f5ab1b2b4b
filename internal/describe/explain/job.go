package explain

import (
	"context"
	"slices"
	"strings"

	batchv1 "k8s.io/api/batch/v1"

	"github.com/spillway-dev/spillway/internal/config/content"
	"github.com/spillway-dev/spillway/internal/config/pin"
	"github.com/spillway-dev/spillway/internal/describe"
	"github.com/spillway-dev/spillway/internal/health"
	"github.com/spillway-dev/spillway/rollout"
)

// job is one that may be suspended until it has its pins: first why it has none, and otherwise how
// its Pods do.
func (a *asker) job(ctx context.Context, ref describe.Ref, _ bool) (answer, error) {
	w, err := a.read(ctx, ref)
	if err != nil {
		return answer{}, err
	}
	job, ok := w.Object.(*batchv1.Job)
	if ok && pin.IsHeld(job) {
		return a.held(ctx, &w, job), nil
	}
	found, err := a.unready(ctx, &w, a.link(ref, "", "%s is ready", w.Name()))
	if ok {
		found.Facts = append(describe.JobFacts(job), found.Facts...)
	}
	return found, err
}

// held is why a Job is suspended that asks for pins.
func (a *asker) held(ctx context.Context, w *Workload, job *batchv1.Job) answer {
	link := a.link(w.Ref(), ReasonConfig, "%s %s", w.Name(), describe.HeldText(job))
	link.Phase, link.Owner = rollout.PhaseWaiting, describe.KindManager
	so := answer{Links: []Link{link}, Facts: describe.JobFacts(job)}
	config := &content.Known{}
	lookup := content.Source{Digests: content.Digesting(a.Client), Namespaces: []string{job.Namespace}}.Lookup()
	_, err := lookup.Observe(ctx, config, "", content.DemandOf(job.Namespace, &job.Spec.Template.Spec, nil, false))
	if missing := config.Missing(); err == nil && len(missing) > 0 {
		so.Links = append(so.Links, a.lacking(lackOf(missing[0], w)))
		return so
	}
	so.Then = a.aboutManager(job.Namespace) // all exists, as far as the caller may see
	return so
}

// cronJob goes on to the Job that is held, and otherwise to the last one.
func (a *asker) cronJob(ctx context.Context, ref describe.Ref, _ bool) (answer, error) {
	of := &batchv1.CronJob{}
	if err := a.get(ctx, ref, of); err != nil {
		return answer{}, err
	}
	jobs, err := describe.JobsOf(ctx, a.Client, of)
	if err != nil {
		return answer{}, err
	}
	jobs = slices.DeleteFunc(jobs, func(j batchv1.Job) bool { return health.IsOver(&j) })
	slices.SortFunc(jobs, func(a, b batchv1.Job) int { return strings.Compare(b.Name, a.Name) })
	so := answer{Facts: describe.CronJobFacts(of)}
	if of.Spec.Suspend != nil && *of.Spec.Suspend {
		link := a.link(ref, ReasonSuspended, "CronJob %s is suspended: spec.suspend is set", of.Name)
		link.Next = a.kubectl("patch", ref, "--type=merge", "-p", `{"spec":{"suspend":false}}`)
		so.Links = []Link{link}
		return so, nil
	}
	if len(jobs) == 0 {
		link := a.link(ref, "", "CronJob %s has no Job that runs or waits", of.Name)
		link.Phase = rollout.PhaseComplete
		so.Links = []Link{link}
		return so, nil
	}
	at := max(0, slices.IndexFunc(jobs, func(j batchv1.Job) bool { return pin.IsHeld(&j) }))
	link := a.link(ref, ReasonNotReady, "Job %s of CronJob %s is not complete", jobs[at].Name, of.Name)
	link.Phase = rollout.PhaseWaiting
	so.Links, so.Then = []Link{link}, a.about(describe.RefTo(describe.KindJob, &jobs[at]))
	return so, nil
}
