// Package health tells how an object does, in the engine's terms.
//
// The result is that of kstatus, so that Spillway, kubectl wait, Helm and Flux agree
// on when something is ready.
package health

import (
	"fmt"

	"github.com/fluxcd/cli-utils/pkg/kstatus/status"
	appsv1 "k8s.io/api/apps/v1"
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

// judged is what kstatus reads of a workload. The rest is most of what would be converted, and a
// manager and its commands judge thousands.
func judged(obj runtime.Object) any {
	switch o := obj.(type) {
	case *appsv1.Deployment:
		return &judgedWorkload{metaOf(o), judgedSpec{Replicas: o.Spec.Replicas, Deadline: o.Spec.ProgressDeadlineSeconds}, &o.Status}
	case *appsv1.StatefulSet:
		strategy := o.Spec.UpdateStrategy
		if strategy.RollingUpdate != nil {
			strategy.RollingUpdate = &appsv1.RollingUpdateStatefulSetStrategy{Partition: strategy.RollingUpdate.Partition}
		}
		return &judgedWorkload{metaOf(o), judgedSpec{Replicas: o.Spec.Replicas, Strategy: &strategy}, &o.Status}
	case *appsv1.DaemonSet:
		return &judgedWorkload{metaOf(o), judgedSpec{}, &o.Status}
	default:
		return obj
	}
}

// judgedWorkload is a workload as kstatus reads it.
type judgedWorkload struct {
	Metadata judgedMeta `json:"metadata"`
	Spec     judgedSpec `json:"spec"`
	Status   any        `json:"status"`
}

type judgedMeta struct {
	Generation        int64        `json:"generation,omitempty"`
	DeletionTimestamp *metav1.Time `json:"deletionTimestamp,omitempty"`
}

type judgedSpec struct {
	Replicas *int32                            `json:"replicas,omitempty"`
	Deadline *int32                            `json:"progressDeadlineSeconds,omitempty"`
	Strategy *appsv1.StatefulSetUpdateStrategy `json:"updateStrategy,omitempty"`
}

func metaOf(obj metav1.Object) judgedMeta {
	return judgedMeta{Generation: obj.GetGeneration(), DeletionTimestamp: obj.GetDeletionTimestamp()}
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
