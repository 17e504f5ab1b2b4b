// Package health tells how an object does, in the engine's terms.
//
// The result is that of kstatus, so that Spillway, kubectl wait, Helm and Flux agree
// on when something is ready.
package health

import (
	"fmt"

	"github.com/fluxcd/cli-utils/pkg/kstatus/status"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/spillway-dev/spillway/rollout"
)

// Report is the health of an object and, as a clause, the reason for it.
type Report struct {
	Health rollout.Health
	Reason string
}

// Of judges an object of the given kind. An object that cannot be judged is Unknown.
func Of(obj runtime.Object, gvk schema.GroupVersionKind) Report {
	content, err := runtime.DefaultUnstructuredConverter.ToUnstructured(judged(obj))
	if err != nil {
		return Report{Health: rollout.Unknown, Reason: fmt.Sprintf("cannot be read (%v)", err)}
	}
	u := &unstructured.Unstructured{Object: content}
	u.SetGroupVersionKind(gvk)
	result, err := status.Compute(u)
	if err != nil {
		return Report{Health: rollout.Unknown, Reason: fmt.Sprintf("cannot be judged (%v)", err)}
	}
	return Report{Health: translate(result.Status), Reason: result.Message}
}

// judged is what kstatus reads of a workload: not its template, which is most of what would
// be converted.
func judged(obj runtime.Object) runtime.Object {
	switch o := obj.(type) {
	case *appsv1.Deployment:
		slim := *o
		slim.ObjectMeta, slim.Spec.Template = judgedMeta(o), corev1.PodTemplateSpec{}
		return &slim
	case *appsv1.StatefulSet:
		slim := *o
		slim.ObjectMeta, slim.Spec.Template, slim.Spec.VolumeClaimTemplates = judgedMeta(o), corev1.PodTemplateSpec{}, nil
		return &slim
	case *appsv1.DaemonSet:
		slim := *o
		slim.ObjectMeta, slim.Spec.Template = judgedMeta(o), corev1.PodTemplateSpec{}
		return &slim
	default:
		return obj
	}
}

func judgedMeta(obj metav1.Object) metav1.ObjectMeta {
	return metav1.ObjectMeta{Generation: obj.GetGeneration(), DeletionTimestamp: obj.GetDeletionTimestamp()}
}

func translate(s status.Status) rollout.Health {
	switch s {
	case status.CurrentStatus:
		return rollout.Healthy
	case status.InProgressStatus:
		return rollout.Progressing
	case status.TerminatingStatus:
		return rollout.Degraded
	case status.FailedStatus:
		return rollout.Failed
	default:
		return rollout.Unknown
	}
}
