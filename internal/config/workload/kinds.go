package workload

import (
	"fmt"
	"strings"

	appsv1 "k8s.io/api/apps/v1"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// The kinds of workload.
const (
	Deployment  = "Deployment"
	StatefulSet = "StatefulSet"
	DaemonSet   = "DaemonSet"
)

// These are no workloads: nothing of them is rolled by a hash, but they may follow their config ([ReadRun]).
const (
	CronJob     = "CronJob"
	ArgoRollout = "Rollout"
)

// Kinds are the kinds of workload, sorted.
func Kinds() []string { return []string{DaemonSet, Deployment, StatefulSet} }

// New returns an empty workload of a kind.
func New(kind string) client.Object {
	switch kind {
	case StatefulSet:
		return &appsv1.StatefulSet{}
	case DaemonSet:
		return &appsv1.DaemonSet{}
	default:
		return &appsv1.Deployment{}
	}
}

// NewList returns an empty list of workloads of a kind.
func NewList(kind string) client.ObjectList {
	switch kind {
	case StatefulSet:
		return &appsv1.StatefulSetList{}
	case DaemonSet:
		return &appsv1.DaemonSetList{}
	default:
		return &appsv1.DeploymentList{}
	}
}

// TemplateOf is the Pod template of a workload, not a copy.
func TemplateOf(obj client.Object) *corev1.PodTemplateSpec {
	switch o := obj.(type) {
	case *appsv1.Deployment:
		return &o.Spec.Template
	case *appsv1.StatefulSet:
		return &o.Spec.Template
	case *appsv1.DaemonSet:
		return &o.Spec.Template
	case *batchv1.CronJob:
		return &o.Spec.JobTemplate.Spec.Template
	case *Rollout:
		return &o.Spec.Template
	default:
		return &corev1.PodTemplateSpec{}
	}
}

// shallow copies the top of a workload, so that keeping it does not keep alive the
// list that it was in.
func shallow(obj client.Object) client.Object {
	switch o := obj.(type) {
	case *appsv1.Deployment:
		c := *o
		return &c
	case *appsv1.StatefulSet:
		c := *o
		return &c
	case *appsv1.DaemonSet:
		c := *o
		return &c
	case *batchv1.CronJob:
		c := *o
		return &c
	case *Rollout:
		c := *o
		return &c
	default:
		return obj
	}
}

// Name identifies a workload.
type Name struct {
	Kind, Namespace, Name string
}

// String is the name as kubectl takes it, with its namespace.
func (n Name) String() string {
	return n.Namespace + "/" + strings.ToLower(n.Kind) + "/" + n.Name
}

// NameOf names a workload.
func NameOf(obj client.Object) Name {
	return Name{Kind: KindOf(obj), Namespace: obj.GetNamespace(), Name: obj.GetName()}
}

// KindOf is the kind of a workload; typed objects do not have it set.
func KindOf(obj client.Object) string {
	switch obj.(type) {
	case *appsv1.Deployment:
		return Deployment
	case *appsv1.StatefulSet:
		return StatefulSet
	case *appsv1.DaemonSet:
		return DaemonSet
	case *batchv1.CronJob:
		return CronJob
	case *Rollout:
		return ArgoRollout
	default:
		return fmt.Sprintf("%T", obj)
	}
}
