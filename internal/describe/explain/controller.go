package explain

import (
	"context"
	"fmt"
	"slices"

	appsv1 "k8s.io/api/apps/v1"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	apimeta "k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	workloads "github.com/spillway-dev/spillway/internal/config/workload"
	"github.com/spillway-dev/spillway/internal/describe"
	"github.com/spillway-dev/spillway/internal/health"
	"github.com/spillway-dev/spillway/rollout"
)

// Workload is what makes Pods, as far as it is the same for all that do.
type Workload struct {
	client.Object

	Kind string
	// wants is how many Pods it is to have, created how many it has.
	Wants, created int32
	observed       int64
	selector       *metav1.LabelSelector
	template       *corev1.PodTemplateSpec
}

// IsHealthy is true if kstatus says that the workload is complete.
func (w *Workload) IsHealthy() bool { return w.health().Health == rollout.Healthy }

// health is how it does, as kstatus says.
func (w *Workload) health() health.Report {
	gvk, _ := describe.KindNamed(w.Kind)
	return health.Of(w.Object, gvk)
}

// IsUnseen is true if its controller has not looked at it as it is now. A Job's does
// not say.
func (w *Workload) IsUnseen() bool {
	return w.Kind != describe.KindJob && w.observed < w.GetGeneration()
}

// workloads are those of a kind in a namespace.
func (a *asker) workloads(ctx context.Context, kind, namespace string) ([]Workload, error) {
	gvk, _ := describe.KindNamed(kind)
	made, err := a.Client.Scheme().New(gvk.GroupVersion().WithKind(kind + "List"))
	list, _ := made.(client.ObjectList)
	if err == nil {
		err = a.Client.List(ctx, list, client.InNamespace(namespace))
	}
	if err != nil {
		return nil, fmt.Errorf("list %ss: %w", kind, err)
	}
	var all []Workload
	err = apimeta.EachListItem(list, func(item runtime.Object) error {
		obj, _ := item.(client.Object) // it is
		all = append(all, workloadOf(obj))
		return nil
	})
	return all, err //nolint:wrapcheck // there is none of a list
}

// read reads a workload.
func (a *asker) read(ctx context.Context, ref describe.Ref) (Workload, error) {
	gvk, _ := describe.KindNamed(ref.Kind)
	made, err := a.Client.Scheme().New(gvk)
	if err != nil {
		return Workload{}, fmt.Errorf("get %s %s: %w", ref.Kind, ref.Name, err)
	}
	obj, _ := made.(client.Object) // it is
	if err := a.get(ctx, ref, obj); err != nil {
		return Workload{}, err
	}
	return workloadOf(obj), nil
}

// Ref names the workload.
func (w *Workload) Ref() describe.Ref { return describe.RefTo(w.Kind, w.Object) }

// workloadOf reads what is the same of all workloads.
func workloadOf(obj client.Object) Workload {
	w := Workload{Object: obj}
	switch o := obj.(type) {
	case *appsv1.Deployment:
		w.Kind, w.selector, w.template = workloads.Deployment, o.Spec.Selector, &o.Spec.Template
		w.Wants, w.created, w.observed = ptr.Deref(o.Spec.Replicas, 1), o.Status.Replicas, o.Status.ObservedGeneration
	case *appsv1.StatefulSet:
		w.Kind, w.selector, w.template = workloads.StatefulSet, o.Spec.Selector, &o.Spec.Template
		w.Wants, w.created, w.observed = ptr.Deref(o.Spec.Replicas, 1), o.Status.Replicas, o.Status.ObservedGeneration
	case *appsv1.DaemonSet:
		w.Kind, w.selector, w.template = workloads.DaemonSet, o.Spec.Selector, &o.Spec.Template
		w.Wants, w.created, w.observed = o.Status.DesiredNumberScheduled, o.Status.CurrentNumberScheduled, o.Status.ObservedGeneration
	case *appsv1.ReplicaSet:
		w.Kind, w.selector, w.template = describe.KindReplicaSet, o.Spec.Selector, &o.Spec.Template
		w.Wants, w.created, w.observed = ptr.Deref(o.Spec.Replicas, 1), o.Status.Replicas, o.Status.ObservedGeneration
	case *batchv1.Job:
		w.Kind, w.selector, w.template = describe.KindJob, o.Spec.Selector, &o.Spec.Template
		w.Wants, w.created = ptr.Deref(o.Spec.Parallelism, 1), o.Status.Active+o.Status.Succeeded+o.Status.Failed
	}
	return w
}

// pods are those of a workload; of a Deployment those of all its ReplicaSets.
func (a *asker) pods(ctx context.Context, w *Workload) ([]corev1.Pod, error) {
	selector, err := metav1.LabelSelectorAsSelector(w.selector)
	if err != nil {
		return nil, fmt.Errorf("selector of %s: %w", w.Name(), err)
	}
	var list corev1.PodList
	if err := a.Client.List(ctx, &list, client.InNamespace(w.GetNamespace()), client.MatchingLabelsSelector{Selector: selector}); err != nil {
		return nil, fmt.Errorf("list Pods: %w", err)
	}
	if w.Kind == workloads.Deployment {
		return list.Items, nil
	}
	return slices.DeleteFunc(list.Items, func(p corev1.Pod) bool { return !metav1.IsControlledBy(&p, w.Object) }), nil
}

// Name is how sentences call it.
func (w *Workload) Name() string { return w.Kind + " " + w.GetName() }

// uncreated is why the Pods of a workload are not created, nil if no Event or condition says so.
func (a *asker) uncreated(ctx context.Context, w *Workload) (*answer, error) {
	if w.Kind == workloads.Deployment {
		return a.uncreatedByReplicaSets(ctx, w)
	}
	if w.created >= w.Wants && w.Kind != describe.KindJob {
		return nil, nil //nolint:nilnil // all are made
	}
	if set, ok := w.Object.(*appsv1.ReplicaSet); ok {
		for _, c := range set.Status.Conditions {
			if c.Type == appsv1.ReplicaSetReplicaFailure && c.Status == corev1.ConditionTrue {
				return a.refusal(ctx, w.Ref(), c.Message), nil
			}
		}
		return nil, nil //nolint:nilnil // nothing is wrong
	}
	message, err := a.failedCreate(ctx, w)
	if err != nil || message == "" {
		return nil, err
	}
	return a.refusal(ctx, w.Ref(), message), nil
}

func (a *asker) uncreatedByReplicaSets(ctx context.Context, w *Workload) (*answer, error) {
	sets, err := a.workloads(ctx, describe.KindReplicaSet, w.GetNamespace())
	if err != nil {
		return nil, err
	}
	for i := range sets {
		if !metav1.IsControlledBy(sets[i].Object, w.Object) {
			continue
		}
		if refused, err := a.uncreated(ctx, &sets[i]); err != nil || refused != nil {
			return refused, err
		}
	}
	return nil, nil //nolint:nilnil // nothing is wrong
}

// failedCreate is the last Event that says why a Pod was not made, empty if there is
// none, or if one was made since. StatefulSets, DaemonSets and Jobs say it nowhere else.
func (a *asker) failedCreate(ctx context.Context, w *Workload) (string, error) {
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
func (a *asker) newestPod(ctx context.Context, w *Workload) (metav1.Time, error) {
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
