package config

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/spillway-dev/spillway/internal/vocabulary"
)

// The kinds of workload.
const (
	Deployment  = "Deployment"
	StatefulSet = "StatefulSet"
	DaemonSet   = "DaemonSet"
)

var workloadKinds = map[string]bool{Deployment: true, StatefulSet: true, DaemonSet: true}

// sortedKinds are the kinds of workload by name.
func sortedKinds() []string { return slices.Sorted(maps.Keys(workloadKinds)) }

// emptyWorkload is a new object of a kind, empty but for its type.
func emptyWorkload(kind string) client.Object {
	switch kind {
	case StatefulSet:
		return &appsv1.StatefulSet{}
	case DaemonSet:
		return &appsv1.DaemonSet{}
	default:
		return &appsv1.Deployment{}
	}
}

// emptyWorkloads is a new list of workloads of a kind.
func emptyWorkloads(kind string) client.ObjectList {
	switch kind {
	case StatefulSet:
		return &appsv1.StatefulSetList{}
	case DaemonSet:
		return &appsv1.DaemonSetList{}
	default:
		return &appsv1.DeploymentList{}
	}
}

// kindOf is the kind of a workload; typed objects do not carry it.
func kindOf(obj client.Object) string {
	switch obj.(type) {
	case *appsv1.Deployment:
		return Deployment
	case *appsv1.StatefulSet:
		return StatefulSet
	case *appsv1.DaemonSet:
		return DaemonSet
	default:
		return fmt.Sprintf("%T", obj)
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
	default:
		return &corev1.PodTemplateSpec{}
	}
}

// shallow copies the top of a workload, so that keeping it does not keep the
// list alive that it came in.
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
	default:
		return obj
	}
}

// inSight is true for workloads that the ring has anything to do with: those
// that mention tracking, and those on which the ring or its predecessor left
// something to clean up.
func inSight(obj client.Object) bool {
	annotations := obj.GetAnnotations()
	_, _, tracked := vocabulary.ConfigTracked.Lookup(annotations)
	_, _, disabled := vocabulary.SchedulingDisabled.Lookup(annotations)
	_, _, marked := vocabulary.Suspended.Lookup(annotations)
	_, _, conditioned := vocabulary.ConfigStatus.Lookup(annotations)
	return tracked || disabled || marked || conditioned ||
		suspensionOf(obj).suspended() || hasFinalizer(obj)
}

func hasFinalizer(obj client.Object) bool {
	return slices.Contains(obj.GetFinalizers(), vocabulary.ConfigFinalizer)
}

// Name identifies a workload.
type Name struct {
	Kind, Namespace, Name string
}

// String is the name as kubectl takes it, with its namespace.
func (n Name) String() string {
	return n.Namespace + "/" + strings.ToLower(n.Kind) + "/" + n.Name
}
