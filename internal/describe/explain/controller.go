package explain

import (
	"context"
	"fmt"
	"slices"

	appsv1 "k8s.io/api/apps/v1"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
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
	gvk  schema.GroupVersionKind
	// wants is how many Pods it is to have, created how many it has.
	Wants, created int32
	observed       int64
	selector       *metav1.LabelSelector
	template       *corev1.PodTemplateSpec
}

// IsHealthy is true if kstatus says that the workload is complete.
func (w *Workload) IsHealthy() bool { return w.health().Health == rollout.Healthy }

// health is how it does, as kstatus says.
func (w *Workload) health() health.Report { return health.Of(w.Object, w.gvk) }

// IsUnseen is true if its controller has not looked at it as it is now. A Job's does
// not say.
func (w *Workload) IsUnseen() bool {
	return w.Kind != describe.KindJob && w.observed < w.GetGeneration()
}

func listOf(kind string) client.ObjectList {
	switch kind {
	case workloads.Deployment:
		return &appsv1.DeploymentList{}
	case workloads.StatefulSet:
		return &appsv1.StatefulSetList{}
	case workloads.DaemonSet:
		return &appsv1.DaemonSetList{}
	case describe.KindReplicaSet:
		return &appsv1.ReplicaSetList{}
	default:
		return &batchv1.JobList{}
	}
}

func workloadsIn(kind string, list client.ObjectList) []Workload {
	var all []Workload
	switch l := list.(type) {
	case *appsv1.DeploymentList:
		all = workloadsFrom(l.Items, func(o *appsv1.Deployment) client.Object { return o })
	case *appsv1.StatefulSetList:
		all = workloadsFrom(l.Items, func(o *appsv1.StatefulSet) client.Object { return o })
	case *appsv1.DaemonSetList:
		all = workloadsFrom(l.Items, func(o *appsv1.DaemonSet) client.Object { return o })
	case *appsv1.ReplicaSetList:
		all = workloadsFrom(l.Items, func(o *appsv1.ReplicaSet) client.Object { return o })
	case *batchv1.JobList:
		all = workloadsFrom(l.Items, func(o *batchv1.Job) client.Object { return o })
	}
	for i := range all {
		all[i].Kind = kind
	}
	return all
}

func workloadsFrom[T any](items []T, object func(*T) client.Object) []Workload {
	all := make([]Workload, len(items))
	for i := range items {
		all[i] = workloadOf(object(&items[i]))
	}
	return all
}

// read reads a workload.
func (a *asker) read(ctx context.Context, ref describe.Ref) (Workload, error) {
	obj := newOf(ref.Kind)
	if err := a.get(ctx, ref, obj); err != nil {
		return Workload{}, err
	}
	return workloadOf(obj), nil
}

// Ref names the workload.
func (w *Workload) Ref() describe.Ref { return describe.RefTo(w.Kind, w.Object) }

func newOf(kind string) client.Object {
	switch kind {
	case workloads.Deployment:
		return &appsv1.Deployment{}
	case workloads.StatefulSet:
		return &appsv1.StatefulSet{}
	case workloads.DaemonSet:
		return &appsv1.DaemonSet{}
	case describe.KindReplicaSet:
		return &appsv1.ReplicaSet{}
	default:
		return &batchv1.Job{}
	}
}

// workloadOf reads what is the same of all workloads.
func workloadOf(obj client.Object) Workload {
	w := Workload{Object: obj}
	apps, batch := appsv1.SchemeGroupVersion, batchv1.SchemeGroupVersion
	switch o := obj.(type) {
	case *appsv1.Deployment:
		w.Kind, w.gvk, w.selector, w.template = workloads.Deployment, apps.WithKind(workloads.Deployment), o.Spec.Selector, &o.Spec.Template
		w.Wants, w.created, w.observed = number(o.Spec.Replicas), o.Status.Replicas, o.Status.ObservedGeneration
	case *appsv1.StatefulSet:
		w.Kind, w.gvk, w.selector, w.template = workloads.StatefulSet, apps.WithKind(workloads.StatefulSet), o.Spec.Selector, &o.Spec.Template
		w.Wants, w.created, w.observed = number(o.Spec.Replicas), o.Status.Replicas, o.Status.ObservedGeneration
	case *appsv1.DaemonSet:
		w.Kind, w.gvk, w.selector, w.template = workloads.DaemonSet, apps.WithKind(workloads.DaemonSet), o.Spec.Selector, &o.Spec.Template
		w.Wants, w.created, w.observed = o.Status.DesiredNumberScheduled, o.Status.CurrentNumberScheduled, o.Status.ObservedGeneration
	case *appsv1.ReplicaSet:
		w.Kind, w.gvk, w.selector, w.template = describe.KindReplicaSet, apps.WithKind(describe.KindReplicaSet), o.Spec.Selector, &o.Spec.Template
		w.Wants, w.created, w.observed = number(o.Spec.Replicas), o.Status.Replicas, o.Status.ObservedGeneration
	case *batchv1.Job:
		w.Kind, w.gvk, w.selector, w.template = describe.KindJob, batch.WithKind(describe.KindJob), o.Spec.Selector, &o.Spec.Template
		w.Wants, w.created = number(o.Spec.Parallelism), o.Status.Active+o.Status.Succeeded+o.Status.Failed
	}
	return w
}

func number(n *int32) int32 {
	if n == nil {
		return 1
	}
	return *n
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
