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

// That there is no room for new Pods, and that there is again, matters though the workload stays as ready as it
// was; and so does each available Pod of one that was not ready before its roll: by that it is judged.
func TestWhatAReleaseIsJudgedByMatters(t *testing.T) {
	two := int32(2)
	version := 0
	app := func(available int32, record, refusal string) *appsv1.Deployment {
		version++
		d := &appsv1.Deployment{
			ObjectMeta: metav1.ObjectMeta{Name: "app", Generation: 2, ResourceVersion: fmt.Sprint(version), Annotations: map[string]string{
				"spillway.dev/update-on-config-change": "true", "spillway.dev/config-change": record,
			}},
			Spec:   appsv1.DeploymentSpec{Replicas: &two},
			Status: appsv1.DeploymentStatus{ObservedGeneration: 2, Replicas: 3, UpdatedReplicas: 1, ReadyReplicas: available, AvailableReplicas: available},
		}
		if refusal != "" {
			d.Status.Conditions = []appsv1.DeploymentCondition{{Type: appsv1.DeploymentReplicaFailure, Status: corev1.ConditionTrue, Reason: "FailedCreate", Message: refusal}}
		}
		return d
	}
	const sick, well, full = `{"at":"2026-11-25T12:00:00Z","unready":true}`, `{"at":"2026-11-25T12:00:00Z"}`, `pods "a" is forbidden: exceeded quota: full, used: pods=1`
	for name, test := range map[string]struct {
		before, after *appsv1.Deployment
		matters       bool
	}{
		"there is no room":                      {app(1, well, ""), app(1, well, full), true},
		"there is room again":                   {app(1, well, full), app(1, well, ""), true},
		"one is refused as the last was":        {app(1, well, full), app(1, well, full), false},
		"it was not ready before, and recovers": {app(0, sick, ""), app(1, sick, ""), true},
		"it was ready before":                   {app(0, well, ""), app(1, well, ""), false},
	} {
		if got := workloadMatters(&tracker{}).Update(event.UpdateEvent{ObjectOld: test.before, ObjectNew: test.after}); got != test.matters {
			t.Errorf("%s: %t", name, got)
		}
	}
}
