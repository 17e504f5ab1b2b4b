package config

import (
	"fmt"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/event"
)

// A Deployment whose Pods stay ready while it rolls matters once its controller has observed the
// roll, because the ring sets a clock for it then, and not again for each progress.
func TestARollThatIsObservedMatters(t *testing.T) {
	one, within := int32(1), int32(2)
	rolling := func(observed int64, progress time.Time) *appsv1.Deployment {
		return &appsv1.Deployment{
			ObjectMeta: metav1.ObjectMeta{Name: "app", Generation: 2, ResourceVersion: fmt.Sprint(observed, progress.Unix()), Annotations: map[string]string{"spillway.dev/update-on-config-change": "true"}},
			Spec:       appsv1.DeploymentSpec{Replicas: &one, ProgressDeadlineSeconds: &within},
			Status: appsv1.DeploymentStatus{
				ObservedGeneration: observed, Replicas: 2, UpdatedReplicas: 1, ReadyReplicas: 1, AvailableReplicas: 1,
				Conditions: []appsv1.DeploymentCondition{{
					Type: appsv1.DeploymentProgressing, Status: corev1.ConditionTrue, Reason: "ReplicaSetUpdated", LastUpdateTime: metav1.NewTime(progress),
				}},
			},
		}
	}
	at := time.Date(2026, 11, 25, 12, 0, 0, 0, time.UTC)
	before, observed, later := rolling(1, at), rolling(2, at), rolling(2, at.Add(time.Second))
	p := workloadMatters(&tracker{})
	if !p.Update(event.UpdateEvent{ObjectOld: before, ObjectNew: observed}) {
		t.Error("no pass is made once the roll is observed")
	}
	if p.Update(event.UpdateEvent{ObjectOld: observed, ObjectNew: later}) {
		t.Error("a pass is made for each progress")
	}
}
