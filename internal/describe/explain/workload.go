package explain

import (
	"context"
	"slices"
	"strconv"
	"strings"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/spillway-dev/spillway/internal/config/content"
	"github.com/spillway-dev/spillway/internal/config/pin"
	"github.com/spillway-dev/spillway/internal/describe"
	"github.com/spillway-dev/spillway/internal/health"
	"github.com/spillway-dev/spillway/rollout"
)

// controller is a ReplicaSet or a Job.
func (a *asker) controller(ctx context.Context, ref describe.Ref, _ bool) (answer, error) {
	w, err := a.read(ctx, ref)
	if err != nil {
		return answer{}, err
	}
	found, err := a.unready(ctx, &w, a.link(ref, "", "%s is ready", w.Name()))
	found.Facts = append(describe.UnpinnedFacts(ref.Kind, w.Object), found.Facts...)
	return found, err
}

// unready is what is wrong with a workload whose config is as it should be.
func (a *asker) unready(ctx context.Context, w *Workload, link Link) (answer, error) {
	report := w.health()
	only := answer{Links: []Link{link}}
	own := &only.Links[0]
	runs := isUnfinished(w) // which is as well as a Job can be, and not what it is for
	if report.Health == rollout.Healthy && !runs {
		own.Phase = rollout.PhaseComplete
		return only, nil
	}
	if own.Reason == "" {
		own.Reason, own.Sentence = ReasonNotReady, a.place()+w.Name()+" is not ready: "+report.Reason
		if runs {
			own.Sentence = a.place() + w.Name() + " is not complete: " + report.Reason
		}
		if report.Health == rollout.Failed {
			own.Reason, own.Sentence = ReasonFailed, a.place()+w.Name()+" failed: "+failureOf(w, report.Reason)
		}
		own.Phase, own.Owner, own.Since = rollout.PhaseWaiting, ownerOf(w.Object), unavailableSince(w)
	}
	switch {
	case w.GetDeletionTimestamp() != nil:
		return a.leaving(w, only), nil
	case w.IsUnseen():
		own.Sentence = a.place() + w.Name() + " is waiting: its controller has not observed this generation; check that kube-controller-manager is running"
		own.Reason, own.Next = ReasonNotObserved, a.command("kubectl get pods -n kube-system -l component=kube-controller-manager")
		return only, nil
	}
	if root := a.heldBack(w); root != nil {
		only.Links = append(only.Links, *root)
		return only, nil
	}
	return a.podsOf(ctx, w, only)
}

// podsKept is a workload whose Pods run an earlier revision until a user replaces them: the
// command that does it, with the Pods that it is about.
func (a *asker) podsKept(ctx context.Context, w *Workload, so answer) (answer, error) {
	own := &so.Links[0]
	if root := a.heldBack(w); root != nil {
		own.Next = root.Next
		return so, nil
	}
	earlier, err := a.earlier(ctx, w)
	switch set, ok := w.Object.(*appsv1.StatefulSet); {
	case apierrors.IsForbidden(err):
		so.Links = append(so.Links, a.unseen(w.Ref(), err))
		return so, nil
	case err != nil || len(earlier) == 0:
		return so, err
	case ok && set.Spec.UpdateStrategy.Type != appsv1.OnDeleteStatefulSetStrategyType:
		own.Next = a.kubectl("patch", w.Ref(), "--type=merge", "-p", `{"spec":{"updateStrategy":{"rollingUpdate":{"partition":0}}}}`)
		return so, nil
	}
	var others []string
	for _, p := range earlier[1:] {
		others = append(others, describe.RefTo(describe.KindPod, &p).String())
	}
	own.Next = a.kubectl("delete", describe.RefTo(describe.KindPod, &earlier[0]), others...)
	return so, nil
}

// earlier are the Pods of a StatefulSet or DaemonSet that run an earlier revision.
func (a *asker) earlier(ctx context.Context, w *Workload) ([]corev1.Pod, error) {
	pods, err := a.pods(ctx, w)
	if err != nil {
		return nil, err
	}
	label, present := appsv1.StatefulSetRevisionLabel, ""
	switch o := w.Object.(type) {
	case *appsv1.StatefulSet:
		present = o.Status.UpdateRevision
	case *appsv1.DaemonSet:
		label, present = "pod-template-generation", o.Annotations[appsv1.DeprecatedTemplateGeneration]
	}
	pods = slices.DeleteFunc(pods, func(p corev1.Pod) bool {
		return present == "" || p.Labels[label] == present || p.DeletionTimestamp != nil
	})
	slices.SortFunc(pods, func(a, b corev1.Pod) int { return strings.Compare(a.Name, b.Name) })
	return pods, nil
}

// stuck is a Pod of a StatefulSet that runs an earlier revision, is not ready, and is not
// replaced for that: with OrderedReady the controller waits for it before it updates. Nil
// if there is none.
func (a *asker) stuck(ctx context.Context, w *Workload) (*Link, error) {
	set, ok := w.Object.(*appsv1.StatefulSet)
	if !ok || set.Spec.PodManagementPolicy == appsv1.ParallelPodManagement || set.Spec.UpdateStrategy.Type == appsv1.OnDeleteStatefulSetStrategyType {
		return nil, nil //nolint:nilnil // none is no error
	}
	earlier, err := a.earlier(ctx, w)
	if err != nil {
		return nil, err
	}
	for i := range earlier {
		if p := &earlier[i]; !isReady(p) && !isBelowPartition(set, p) {
			ref := describe.RefTo(describe.KindPod, p)
			link := a.link(ref, ReasonStuck, "Pod %s runs an earlier revision and is not ready: StatefulSet %s (OrderedReady) waits for it and does not replace it; only deleting it helps", p.Name, set.Name)
			link.Next = a.kubectl("delete", ref)
			return &link, nil
		}
	}
	return nil, nil //nolint:nilnil // none is no error
}

// isBelowPartition is true of a Pod that would be created at its earlier revision again.
func isBelowPartition(set *appsv1.StatefulSet, p *corev1.Pod) bool {
	rolling := set.Spec.UpdateStrategy.RollingUpdate
	ordinal, err := strconv.Atoi(strings.TrimPrefix(p.Name, set.Name+"-"))
	return rolling != nil && rolling.Partition != nil && (err != nil || ordinal < int(*rolling.Partition))
}

// isUnfinished is true of a Job that is neither complete nor has failed.
func isUnfinished(w *Workload) bool {
	job, ok := w.Object.(*batchv1.Job)
	return ok && !health.IsOver(job)
}

// unavailableSince is since when a Deployment has not been available. Others do not say.
func unavailableSince(w *Workload) *time.Time {
	d, ok := w.Object.(*appsv1.Deployment)
	if !ok {
		return nil
	}
	for _, c := range d.Status.Conditions {
		if c.Type == appsv1.DeploymentAvailable && c.Status == corev1.ConditionFalse {
			return describe.TimeOrNil(c.LastTransitionTime.Time)
		}
	}
	return nil
}

// heldBack is that a user has paused a Deployment or suspended a Job, nil if neither is
// so.
func (a *asker) heldBack(w *Workload) *Link {
	var link Link
	switch o := w.Object.(type) {
	case *appsv1.Deployment:
		if !o.Spec.Paused {
			return nil
		}
		link = a.link(w.Ref(), rollout.ReasonPaused, "%s is paused: spec.paused is set", w.Name())
		link.Next = a.kubectl("rollout resume", w.Ref())
	case *batchv1.Job:
		if o.Spec.Suspend == nil || !*o.Spec.Suspend {
			return nil
		}
		link = a.link(w.Ref(), ReasonSuspended, "%s is suspended: spec.suspend is set", w.Name())
		link.Next = a.kubectl("patch", w.Ref(), "--type=merge", "-p", `{"spec":{"suspend":false}}`)
	default:
		return nil
	}
	return &link
}

// leaving is a workload that is being deleted.
func (a *asker) leaving(w *Workload, so answer) answer {
	so.Links[0].Reason = ReasonTerminating
	so.Links[0].Sentence = a.place() + w.Name() + " is being deleted"
	if names := w.GetFinalizers(); len(names) > 0 {
		so.Links = append(so.Links, a.finalizer(w.Ref(), names[0]))
	}
	return so
}

// finalizer is the root where something may not go yet.
func (a *asker) finalizer(ref describe.Ref, name string) Link {
	link := a.link(ref, ReasonFinalizer, "%s %s cannot be deleted: finalizer %s is not removed yet", ref.Kind, ref.Name, name)
	link.Next = a.kubectl("get", ref, "-o", "jsonpath={.metadata.finalizers}")
	return link
}

// podsOf goes to the Pod that does worst; and where there are too few, to why they
// are not made.
func (a *asker) podsOf(ctx context.Context, w *Workload, so answer) (answer, error) {
	root, err := a.stuck(ctx, w)
	if err != nil {
		return so, err
	}
	if root != nil {
		so.Links = append(so.Links, *root)
		return so, nil
	}
	pods, err := a.pods(ctx, w)
	if err != nil {
		return so, err
	}
	i := worst(pods)
	if i < 0 || severity(&pods[i]) <= starting {
		refused, err := a.uncreated(ctx, w)
		switch {
		case apierrors.IsForbidden(err):
			so.Links = append(so.Links, a.unseen(w.Ref(), err))
		case err != nil || refused != nil:
			return so.And(refused), err
		}
	}
	if i < 0 {
		return a.noPods(w, so), nil
	}
	so.Then = a.about(describe.RefTo(describe.KindPod, &pods[i]))
	return so, nil
}

// noPods is a workload whose Pods all do well, or that has none.
func (a *asker) noPods(w *Workload, so answer) answer {
	if w.created < w.Wants || w.Kind == describe.KindJob {
		so.Links[0].Next = a.kubectl("describe", w.Ref())
	}
	return so
}

// failureOf is why a workload has failed for good, as its own conditions say.
func failureOf(w *Workload, otherwise string) string {
	if job, ok := w.Object.(*batchv1.Job); ok {
		for _, c := range job.Status.Conditions {
			if c.Type == batchv1.JobFailed && c.Status == corev1.ConditionTrue && c.Message != "" {
				return strings.TrimSuffix(c.Message, ".")
			}
		}
	}
	return otherwise
}

// ownerOf is what made an object, as kubectl names it.
func ownerOf(obj metav1.Object) string {
	if owner := metav1.GetControllerOf(obj); owner != nil {
		return describe.Ref{Kind: owner.Kind, Name: owner.Name}.String()
	}
	return ""
}

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
