package describe

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/spillway-dev/spillway/internal/config"
	workloads "github.com/spillway-dev/spillway/internal/config/workload"
	"github.com/spillway-dev/spillway/internal/manager"
	"github.com/spillway-dev/spillway/internal/vocabulary"
	"github.com/spillway-dev/spillway/rollout"
)

// workload is one whose config may be tracked: first the config ring's word, then, if
// it has none, that of its group, and then how its Pods do.
func (a *asker) workload(ctx context.Context, ref Ref, first bool) (answer, error) {
	w, err := a.read(ctx, ref)
	if apierrors.IsNotFound(err) {
		return answer{}, fmt.Errorf("%s %s in namespace %s: %w", ref.Kind, ref.Name, ref.Namespace, config.ErrNotFound)
	}
	if err != nil {
		return answer{}, err
	}
	if !first && !isTracked(&w) {
		return a.zoneOrPods(ctx, &w, a.link(ref, "", "%s is as its template says", w.name()))
	}
	e, err := a.config(ctx, workloads.Name{Kind: ref.Kind, Namespace: ref.Namespace, Name: ref.Name})
	if apierrors.IsForbidden(err) {
		return a.untold(ctx, &w, err)
	}
	if err != nil {
		return answer{}, err
	}
	found, err := a.tracked(ctx, &w, &e)
	found.details = e
	return found, err
}

// untold is a workload of which the caller may not see all that the config ring
// decides from: how its Pods do can be told all the same.
func (a *asker) untold(ctx context.Context, w *maker, err error) (answer, error) {
	found, failed := a.zoneOrPods(ctx, w, a.link(w.ref(), "", "%s is as its template says", w.name()))
	found.facts = append(found.facts, Fact{"note", "what its config waits for cannot be told: " + lastOf(err)})
	return found, failed
}

func isTracked(w *maker) bool {
	annotations := w.GetAnnotations()
	return vocabulary.ConfigTracked.Get(annotations) == "true" || vocabulary.Suspended.Get(annotations) != ""
}

// tracked goes on from what the config ring says.
func (a *asker) tracked(ctx context.Context, w *maker, e *config.Explanation) (answer, error) {
	link := a.link(w.ref(), e.Reason, "%s", e.Sentence)
	link.Ring, link.Phase = manager.RingConfig, phaseOfState(e)
	link.Since, link.Until, link.Deadline = e.Since, e.Until, e.Deadline
	only := answer{links: []Link{link}}
	if len(e.Problems) > 0 {
		only.links[0].Next = a.kubectl("edit", w.ref())
	}
	switch {
	case e.State == config.StateNext:
		only.on = a.manager(w.GetNamespace())
	case e.Reason == config.ReasonNotPermitted:
		return a.denied(ctx, e, only), nil
	case len(e.Lacking) > 0:
		only.links = append(only.links, a.lacking(lackOf(e.Lacking[0], w)))
	case e.Reason == rollout.ReasonPaused:
		only.links[0].Next = a.kubectl("annotate", w.ref(), vocabulary.Paused.Native+"-")
		only.links[0].Owner = annotator(w.Object, vocabulary.Paused.Native)
	case e.Reason == config.ReasonNotHeld:
		only.on = a.about(a.groupRef(w))
	case e.Reason == rollout.ReasonBudget:
		return a.queued(ctx, w, only)
	case e.State == config.StateRolling, e.State == config.StateLate, e.Reason == "":
		return a.zoneOrPods(ctx, w, only.links[0])
	}
	return only, nil
}

// denied tells what the caller may not look at from what the manager may not: this was
// decided with the caller's own permissions.
func (a *asker) denied(ctx context.Context, e *config.Explanation, so answer) answer {
	for _, m := range e.Lacking {
		ref := Ref{Kind: string(m.Object.Kind), Namespace: m.Object.Namespace, Name: m.Object.Name}
		if _, _, err := a.keys(ctx, ref); apierrors.IsForbidden(err) {
			so.links = append(so.links, a.unseen(ref, err))
			return so
		}
	}
	return so
}

// groupRef is the group that a StatefulSet is a zone of.
func (a *asker) groupRef(w *maker) Ref {
	return Ref{Kind: kindGroup, Namespace: w.GetNamespace(), Name: vocabulary.GroupOf(w.GetLabels(), w.GetAnnotations())}
}

// queued goes to the first workload that takes up the budget.
func (a *asker) queued(ctx context.Context, w *maker, so answer) (answer, error) {
	all, err := a.queue(ctx, w.GetNamespace())
	if err != nil {
		return so, fmt.Errorf("who takes up the budget: %w", err)
	}
	nearest := func(same bool) int {
		return slices.IndexFunc(all, func(e config.Explanation) bool {
			return e.State == config.StateRolling && (e.Namespace == w.GetNamespace()) == same
		})
	}
	for _, same := range []bool{true, false} {
		if i := nearest(same); i >= 0 && so.on == nil {
			so.on = a.about(Ref{Kind: all[i].Kind, Namespace: all[i].Namespace, Name: all[i].Name})
		}
	}
	return so, nil
}

// annotator is who has last written an annotation, by the name under which they wrote.
func annotator(obj metav1.Object, key string) string {
	field := []byte(`"f:` + key + `"`)
	for _, entry := range obj.GetManagedFields() {
		if entry.FieldsV1 != nil && bytes.Contains(entry.FieldsV1.GetRawBytes(), field) {
			return entry.Manager
		}
	}
	return ""
}

// zoneOrPods goes to the group of a zone that is not complete, and otherwise to what
// is wrong with the workload itself.
func (a *asker) zoneOrPods(ctx context.Context, w *maker, link Link) (answer, error) {
	group := a.groupRef(w)
	if w.kind != workloads.StatefulSet || group.Name == "" {
		return a.unready(ctx, w, link)
	}
	if complete, err := a.isComplete(ctx, group); complete || err != nil { // its Pods can be told of all the same
		return a.unready(ctx, w, link)
	}
	if link.Reason == "" {
		link.Reason = rollout.ReasonProgressing
		link.Sentence = a.place() + fmt.Sprintf("%s is a zone of group %s, which is not complete", w.name(), group.Name)
	}
	return answer{links: []Link{link}, on: a.about(group)}, nil
}

// controller is a ReplicaSet or a Job.
func (a *asker) controller(ctx context.Context, ref Ref, _ bool) (answer, error) {
	w, err := a.read(ctx, ref)
	if err != nil {
		return answer{}, err
	}
	return a.unready(ctx, &w, a.link(ref, "", "%s is as its template says", w.name()))
}

// unready is what is wrong with a workload whose config is as it should be.
func (a *asker) unready(ctx context.Context, w *maker, link Link) (answer, error) {
	report := w.health()
	only := answer{links: []Link{link}}
	own := &only.links[0]
	runs := isUnfinished(w) // which is as well as a Job can be, and not what it is for
	if report.Health == rollout.Healthy && !runs {
		own.Phase = rollout.PhaseComplete
		return only, nil
	}
	if own.Reason == "" {
		own.Reason, own.Sentence = ReasonNotReady, a.place()+w.name()+" is not ready: "+report.Reason
		if runs {
			own.Sentence = a.place() + w.name() + " is not complete: " + report.Reason
		}
		if report.Health == rollout.Failed {
			own.Reason, own.Sentence = ReasonFailed, a.place()+w.name()+" has failed: "+failureOf(w, report.Reason)
		}
		own.Phase, own.Owner, own.Since = rollout.PhaseWaiting, ownerOf(w.Object), unavailableSince(w)
	}
	switch {
	case w.GetDeletionTimestamp() != nil:
		return a.leaving(w, only), nil
	case w.isUnseen():
		own.Sentence = a.place() + w.name() + " was not looked at by its controller as it is now: is kube-controller-manager running?"
		own.Reason, own.Next = ReasonNotObserved, a.pointless("kubectl get pods -n kube-system -l component=kube-controller-manager")
		return only, nil
	}
	if root := a.heldBack(w); root != nil {
		only.links = append(only.links, *root)
		return only, nil
	}
	return a.podsOf(ctx, w, only)
}

// isUnfinished is true of a Job that is neither complete nor has failed.
func isUnfinished(w *maker) bool {
	job, ok := w.Object.(*batchv1.Job)
	return ok && !slices.ContainsFunc(job.Status.Conditions, func(c batchv1.JobCondition) bool {
		return (c.Type == batchv1.JobComplete || c.Type == batchv1.JobFailed) && c.Status == corev1.ConditionTrue
	})
}

// unavailableSince is since when a Deployment has not been available. Others do not say.
func unavailableSince(w *maker) *time.Time {
	d, ok := w.Object.(*appsv1.Deployment)
	if !ok {
		return nil
	}
	for _, c := range d.Status.Conditions {
		if c.Type == appsv1.DeploymentAvailable && c.Status == corev1.ConditionFalse {
			return momentOrNil(c.LastTransitionTime.Time)
		}
	}
	return nil
}

// heldBack is that somebody has told the controller of a workload to wait, or that a
// Job has failed for good; nil if neither is so.
func (a *asker) heldBack(w *maker) *Link {
	var link Link
	switch o := w.Object.(type) {
	case *appsv1.Deployment:
		if !o.Spec.Paused {
			return nil
		}
		link = a.link(w.ref(), rollout.ReasonPaused, "%s is paused: spec.paused is set", w.name())
		link.Next = a.kubectl("rollout resume", w.ref())
	case *batchv1.Job:
		if o.Spec.Suspend == nil || !*o.Spec.Suspend {
			return nil
		}
		link = a.link(w.ref(), ReasonSuspended, "%s is suspended: spec.suspend is set", w.name())
		link.Next = a.kubectl("patch", w.ref(), "--type=merge", "-p", `'{"spec":{"suspend":false}}'`)
	default:
		return nil
	}
	return &link
}

// leaving is a workload that is being deleted.
func (a *asker) leaving(w *maker, so answer) answer {
	so.links[0].Reason = ReasonTerminating
	so.links[0].Sentence = a.place() + w.name() + " is being deleted"
	if names := w.GetFinalizers(); len(names) > 0 {
		so.links = append(so.links, a.finalizer(w.ref(), names[0]))
	}
	return so
}

// finalizer is the root where something may not go yet.
func (a *asker) finalizer(ref Ref, name string) Link {
	link := a.link(ref, ReasonFinalizer, "%s %s cannot go before finalizer %s is removed by whoever has set it", ref.Kind, ref.Name, name)
	link.Next = a.kubectl("get", ref, "-o", "jsonpath='{.metadata.finalizers}'")
	return link
}

// kept goes to whoever keeps what is being deleted: by a finalizer that is not our own,
// or it is the manager's turn.
func (a *asker) kept(ref Ref, obj client.Object, own string, so answer) answer {
	for _, name := range obj.GetFinalizers() {
		if name != own {
			so.links = append(so.links, a.finalizer(ref, name))
			return so
		}
	}
	so.on = a.manager(ref.Namespace)
	return so
}

// podsOf goes to the Pod that does worst; and where there are too few, to why they
// are not made.
func (a *asker) podsOf(ctx context.Context, w *maker, so answer) (answer, error) {
	pods, err := a.pods(ctx, w)
	if err != nil {
		return so, err
	}
	i := worst(pods)
	if i < 0 || severity(&pods[i]) <= starting {
		refused, err := a.uncreated(ctx, w)
		switch {
		case apierrors.IsForbidden(err):
			so.links = append(so.links, a.unseen(w.ref(), err))
		case err != nil || refused != nil:
			return so.and(refused), err
		}
	}
	if i < 0 {
		return a.noPods(w, so), nil
	}
	so.on = a.about(refTo(kindPod, &pods[i]))
	return so, nil
}

// and goes on with what another answer says.
func (so answer) and(more *answer) answer {
	if more != nil {
		so.links, so.on = append(so.links, more.links...), more.on
	}
	return so
}

// noPods is a workload whose Pods all do well, or that has none.
func (a *asker) noPods(w *maker, so answer) answer {
	if w.created < w.wants || w.kind == kindJob {
		so.links[0].Next = a.kubectl("describe", w.ref())
	}
	return so
}

// failureOf is why a workload has failed for good, as its own conditions say.
func failureOf(w *maker, otherwise string) string {
	if job, ok := w.Object.(*batchv1.Job); ok {
		for _, c := range job.Status.Conditions {
			if c.Type == batchv1.JobFailed && c.Status == corev1.ConditionTrue && c.Message != "" {
				return strings.TrimSuffix(c.Message, ".")
			}
		}
	}
	return otherwise
}

// uncreated is why the Pods of a workload are not made, nil if nobody has said so.
func (a *asker) uncreated(ctx context.Context, w *maker) (*answer, error) {
	if w.kind == workloads.Deployment {
		return a.uncreatedByReplicaSets(ctx, w)
	}
	if w.created >= w.wants && w.kind != kindJob {
		return nil, nil //nolint:nilnil // all are made
	}
	if set, ok := w.Object.(*appsv1.ReplicaSet); ok {
		for _, c := range set.Status.Conditions {
			if c.Type == appsv1.ReplicaSetReplicaFailure && c.Status == corev1.ConditionTrue {
				return a.refusal(ctx, w.ref(), c.Message), nil
			}
		}
		return nil, nil //nolint:nilnil // nothing is wrong
	}
	message, err := a.failedCreate(ctx, w)
	if err != nil || message == "" {
		return nil, err
	}
	return a.refusal(ctx, w.ref(), message), nil
}

func (a *asker) uncreatedByReplicaSets(ctx context.Context, w *maker) (*answer, error) {
	var list appsv1.ReplicaSetList
	if err := a.Client.List(ctx, &list, client.InNamespace(w.GetNamespace())); err != nil {
		return nil, fmt.Errorf("list ReplicaSets: %w", err)
	}
	for i := range list.Items {
		set := makerOf(&list.Items[i])
		if !metav1.IsControlledBy(set.Object, w.Object) {
			continue
		}
		if refused, err := a.uncreated(ctx, &set); err != nil || refused != nil {
			return refused, err
		}
	}
	return nil, nil //nolint:nilnil // nothing is wrong
}

// failedCreate is the last Event that says why a Pod was not made, empty if there is
// none, or if one was made since. StatefulSets, DaemonSets and Jobs say it nowhere else.
func (a *asker) failedCreate(ctx context.Context, w *maker) (string, error) {
	var list corev1.EventList
	err := a.Client.List(ctx, &list, client.InNamespace(w.GetNamespace()), client.MatchingFields{"involvedObject.uid": string(w.GetUID())})
	if err != nil {
		return "", fmt.Errorf("list Events: %w", err)
	}
	var last *corev1.Event
	var made metav1.Time
	for i := range list.Items {
		switch e := &list.Items[i]; {
		case e.Reason == "FailedCreate" && (last == nil || eventTime(last).Before(eventTime(e))):
			last = e
		case e.Reason == "SuccessfulCreate" && made.Before(eventTime(e)):
			made = *eventTime(e)
		}
	}
	if last == nil {
		return "", nil
	}
	if newest, err := a.newestPod(ctx, w); err == nil && made.Before(&newest) {
		made = newest
	}
	if !made.Before(eventTime(last)) { // in the same second it is over: if not, there will be another
		return "", nil
	}
	return last.Message, nil
}

// newestPod is when the newest Pod of a workload was made.
func (a *asker) newestPod(ctx context.Context, w *maker) (metav1.Time, error) {
	pods, err := a.pods(ctx, w)
	var newest metav1.Time
	for i := range pods {
		if newest.Before(&pods[i].CreationTimestamp) {
			newest = pods[i].CreationTimestamp
		}
	}
	return newest, err
}

func eventTime(e *corev1.Event) *metav1.Time {
	if e.LastTimestamp.IsZero() {
		return &metav1.Time{Time: e.EventTime.Time}
	}
	return &e.LastTimestamp
}

// ownerOf is what made an object, as kubectl names it.
func ownerOf(obj metav1.Object) string {
	if owner := metav1.GetControllerOf(obj); owner != nil {
		return Ref{Kind: owner.Kind, Name: owner.Name}.String()
	}
	return ""
}

// isNotFound looks through what an error was wrapped in.
func isNotFound(err error) bool {
	var status apierrors.APIStatus
	return errors.As(err, &status) && status.Status().Reason == metav1.StatusReasonNotFound
}
