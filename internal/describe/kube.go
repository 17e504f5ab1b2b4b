package describe

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
	"github.com/spillway-dev/spillway/internal/health"
	"github.com/spillway-dev/spillway/rollout"
)

// maker is what makes Pods, as far as it is the same for all that do.
type maker struct {
	client.Object

	kind string
	gvk  schema.GroupVersionKind
	// wants is how many Pods it is to have, created how many it has.
	wants, created int32
	observed       int64
	selector       *metav1.LabelSelector
	template       *corev1.PodTemplateSpec
}

func (w *maker) ref() Ref { return refTo(w.kind, w.Object) }

// name is how sentences call it.
func (w *maker) name() string { return w.kind + " " + w.GetName() }

// health is how it does, as kstatus says.
func (w *maker) health() health.Report { return health.Of(w.Object, w.gvk) }

func (w *maker) isHealthy() bool { return w.health().Health == rollout.Healthy }

// isUnseen is true if its controller has not looked at it as it is now. A Job's does
// not say.
func (w *maker) isUnseen() bool { return w.kind != kindJob && w.observed < w.GetGeneration() }

func newOf(kind string) client.Object {
	switch kind {
	case workloads.Deployment:
		return &appsv1.Deployment{}
	case workloads.StatefulSet:
		return &appsv1.StatefulSet{}
	case workloads.DaemonSet:
		return &appsv1.DaemonSet{}
	case kindReplicaSet:
		return &appsv1.ReplicaSet{}
	default:
		return &batchv1.Job{}
	}
}

func listOf(kind string) client.ObjectList {
	switch kind {
	case workloads.Deployment:
		return &appsv1.DeploymentList{}
	case workloads.StatefulSet:
		return &appsv1.StatefulSetList{}
	case workloads.DaemonSet:
		return &appsv1.DaemonSetList{}
	case kindReplicaSet:
		return &appsv1.ReplicaSetList{}
	default:
		return &batchv1.JobList{}
	}
}

func makersIn(kind string, list client.ObjectList) []maker {
	var all []maker
	switch l := list.(type) {
	case *appsv1.DeploymentList:
		all = makersFrom(l.Items, func(o *appsv1.Deployment) client.Object { return o })
	case *appsv1.StatefulSetList:
		all = makersFrom(l.Items, func(o *appsv1.StatefulSet) client.Object { return o })
	case *appsv1.DaemonSetList:
		all = makersFrom(l.Items, func(o *appsv1.DaemonSet) client.Object { return o })
	case *appsv1.ReplicaSetList:
		all = makersFrom(l.Items, func(o *appsv1.ReplicaSet) client.Object { return o })
	case *batchv1.JobList:
		all = makersFrom(l.Items, func(o *batchv1.Job) client.Object { return o })
	}
	for i := range all {
		all[i].kind = kind
	}
	return all
}

func makersFrom[T any](items []T, object func(*T) client.Object) []maker {
	all := make([]maker, len(items))
	for i := range items {
		all[i] = makerOf(object(&items[i]))
	}
	return all
}

// makerOf reads what is the same of all workloads.
func makerOf(obj client.Object) maker {
	w := maker{Object: obj}
	apps, batch := appsv1.SchemeGroupVersion, batchv1.SchemeGroupVersion
	switch o := obj.(type) {
	case *appsv1.Deployment:
		w.kind, w.gvk, w.selector, w.template = workloads.Deployment, apps.WithKind(workloads.Deployment), o.Spec.Selector, &o.Spec.Template
		w.wants, w.created, w.observed = number(o.Spec.Replicas), o.Status.Replicas, o.Status.ObservedGeneration
	case *appsv1.StatefulSet:
		w.kind, w.gvk, w.selector, w.template = workloads.StatefulSet, apps.WithKind(workloads.StatefulSet), o.Spec.Selector, &o.Spec.Template
		w.wants, w.created, w.observed = number(o.Spec.Replicas), o.Status.Replicas, o.Status.ObservedGeneration
	case *appsv1.DaemonSet:
		w.kind, w.gvk, w.selector, w.template = workloads.DaemonSet, apps.WithKind(workloads.DaemonSet), o.Spec.Selector, &o.Spec.Template
		w.wants, w.created, w.observed = o.Status.DesiredNumberScheduled, o.Status.CurrentNumberScheduled, o.Status.ObservedGeneration
	case *appsv1.ReplicaSet:
		w.kind, w.gvk, w.selector, w.template = kindReplicaSet, apps.WithKind(kindReplicaSet), o.Spec.Selector, &o.Spec.Template
		w.wants, w.created, w.observed = number(o.Spec.Replicas), o.Status.Replicas, o.Status.ObservedGeneration
	case *batchv1.Job:
		w.kind, w.gvk, w.selector, w.template = kindJob, batch.WithKind(kindJob), o.Spec.Selector, &o.Spec.Template
		w.wants, w.created = number(o.Spec.Parallelism), o.Status.Active+o.Status.Succeeded+o.Status.Failed
	}
	return w
}

func number(n *int32) int32 {
	if n == nil {
		return 1
	}
	return *n
}

// read reads a workload.
func (a *asker) read(ctx context.Context, ref Ref) (maker, error) {
	obj := newOf(ref.Kind)
	if err := a.get(ctx, ref, obj); err != nil {
		return maker{}, err
	}
	return makerOf(obj), nil
}

// pods are those of a workload; of a Deployment those of all its ReplicaSets.
func (a *asker) pods(ctx context.Context, w *maker) ([]corev1.Pod, error) {
	selector, err := metav1.LabelSelectorAsSelector(w.selector)
	if err != nil {
		return nil, fmt.Errorf("selector of %s: %w", w.name(), err)
	}
	var list corev1.PodList
	if err := a.Client.List(ctx, &list, client.InNamespace(w.GetNamespace()), client.MatchingLabelsSelector{Selector: selector}); err != nil {
		return nil, fmt.Errorf("list Pods: %w", err)
	}
	if w.kind == workloads.Deployment {
		return list.Items, nil
	}
	return slices.DeleteFunc(list.Items, func(p corev1.Pod) bool { return !metav1.IsControlledBy(&p, w.Object) }), nil
}
