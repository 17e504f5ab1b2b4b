package explain

import (
	"context"
	"slices"
	"strings"

	batchv1 "k8s.io/api/batch/v1"

	"github.com/spillway-dev/spillway/internal/config/content"
	"github.com/spillway-dev/spillway/internal/config/pin"
	"github.com/spillway-dev/spillway/internal/describe"
	"github.com/spillway-dev/spillway/internal/describe/explain/chain"
	"github.com/spillway-dev/spillway/internal/describe/explain/native"
	"github.com/spillway-dev/spillway/internal/health"
	"github.com/spillway-dev/spillway/rollout"
)

// job is one that may be suspended until it has its pins: first why it has none, and otherwise how
// its Pods do.
func (a *asker) job(ctx context.Context, ref describe.Ref, _ bool) (chain.Answer, error) {
	w, err := a.Read(ctx, ref)
	if err != nil {
		return chain.Answer{}, err
	}
	job, ok := w.Object.(*batchv1.Job)
	if ok && pin.IsHeld(job) {
		return a.held(ctx, &w, job), nil
	}
	found, err := a.Unready(ctx, &w, a.Link(ref, "", "%s is ready", w.Name()))
	if ok {
		found.Facts = append(describe.JobFacts(job), found.Facts...)
	}
	return found, err
}

// held is why a Job is suspended that asks for pins.
func (a *asker) held(ctx context.Context, w *native.Workload, job *batchv1.Job) chain.Answer {
	link := a.Link(w.Ref(), chain.ReasonConfig, "%s %s", w.Name(), describe.HeldText(job))
	link.Phase, link.Owner = rollout.PhaseWaiting, describe.KindManager
	so := chain.Answer{Links: []chain.Link{link}, Facts: describe.JobFacts(job)}
	config := &content.Known{}
	lookup := content.Source{Digests: content.Digesting(a.Client), Namespaces: []string{job.Namespace}}.Lookup()
	_, err := lookup.Observe(ctx, config, "", content.DemandOf(job.Namespace, &job.Spec.Template.Spec, nil, false))
	if missing := config.Missing(); err == nil && len(missing) > 0 {
		so.Links = append(so.Links, a.Lacking(native.LackOf(missing[0], w)))
		return so
	}
	so.Then = a.Manager(job.Namespace) // all exists, as far as the caller may see
	return so
}

// cronJob goes on to the Job that is held, and otherwise to the last one.
func (a *asker) cronJob(ctx context.Context, ref describe.Ref, _ bool) (chain.Answer, error) {
	of := &batchv1.CronJob{}
	if err := a.Get(ctx, ref, of); err != nil {
		return chain.Answer{}, err
	}
	jobs, err := describe.JobsOf(ctx, a.Client, of)
	if err != nil {
		return chain.Answer{}, err
	}
	jobs = slices.DeleteFunc(jobs, func(j batchv1.Job) bool { return health.IsOver(&j) })
	slices.SortFunc(jobs, func(a, b batchv1.Job) int { return strings.Compare(b.Name, a.Name) })
	so := chain.Answer{Facts: describe.CronJobFacts(of)}
	if of.Spec.Suspend != nil && *of.Spec.Suspend {
		link := a.Link(ref, chain.ReasonSuspended, "CronJob %s is suspended: spec.suspend is set", of.Name)
		link.Next = a.Kubectl("patch", ref, "--type=merge", "-p", `{"spec":{"suspend":false}}`)
		so.Links = []chain.Link{link}
		return so, nil
	}
	if len(jobs) == 0 {
		link := a.Link(ref, "", "CronJob %s has no Job that runs or waits", of.Name)
		link.Phase = rollout.PhaseComplete
		so.Links = []chain.Link{link}
		return so, nil
	}
	at := max(0, slices.IndexFunc(jobs, func(j batchv1.Job) bool { return pin.IsHeld(&j) }))
	link := a.Link(ref, chain.ReasonNotReady, "Job %s of CronJob %s is not complete", jobs[at].Name, of.Name)
	link.Phase = rollout.PhaseWaiting
	so.Links, so.Then = []chain.Link{link}, a.About(describe.RefTo(describe.KindJob, &jobs[at]))
	return so, nil
}
