package health

import (
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/yaml"

	"github.com/spillway-dev/spillway/rollout"
)

func TestOf(t *testing.T) {
	gvk := schema.GroupVersionKind{Group: "apps", Version: "v1", Kind: "Deployment"}
	for name, test := range map[string]struct {
		text string
		want rollout.Health
	}{
		"not seen by its controller": {`{metadata: {generation: 2}, status: {observedGeneration: 1}}`, rollout.Progressing},
		"progressing":                {`{metadata: {generation: 1}, spec: {replicas: 2}, status: {observedGeneration: 1, replicas: 2, updatedReplicas: 1}}`, rollout.Progressing},
		"ready": {`{metadata: {generation: 1}, spec: {replicas: 1}, status: {observedGeneration: 1, replicas: 1, updatedReplicas: 1,
		  readyReplicas: 1, availableReplicas: 1, conditions: [{type: Available, status: "True"}]}}`, rollout.Healthy},
		"too late": {`{metadata: {generation: 1}, spec: {replicas: 1}, status: {observedGeneration: 1, replicas: 1,
		  conditions: [{type: Progressing, status: "False", reason: ProgressDeadlineExceeded}]}}`, rollout.Failed},
		"going": {`{metadata: {generation: 1, deletionTimestamp: "2026-01-01T00:00:00Z"}}`, rollout.Degraded},
	} {
		t.Run(name, func(t *testing.T) {
			d := &appsv1.Deployment{}
			if err := yaml.UnmarshalStrict([]byte(test.text), d); err != nil {
				t.Fatal(err)
			}
			got := Of(d, gvk)
			if got.Health != test.want {
				t.Errorf("health = %v (%s), want %v", got.Health, got.Reason, test.want)
			}
			if got.Health != rollout.Healthy && got.Reason == "" {
				t.Error("it does not say why")
			}
		})
	}
}

func TestOfAKindWithoutStatus(t *testing.T) {
	got := Of(&corev1.ConfigMap{}, schema.GroupVersionKind{Version: "v1", Kind: "ConfigMap"})
	if got.Health != rollout.Healthy {
		t.Errorf("health = %v (%s)", got.Health, got.Reason)
	}
}

// However long the template of a workload is, it is judged at the same cost.
func TestATemplateCostsNothing(t *testing.T) {
	short, long := corev1.PodTemplateSpec{}, corev1.PodTemplateSpec{Spec: corev1.PodSpec{Containers: make([]corev1.Container, 100)}}
	for kind, with := range map[string]func(corev1.PodTemplateSpec) runtime.Object{
		"Deployment": func(p corev1.PodTemplateSpec) runtime.Object {
			return &appsv1.Deployment{Spec: appsv1.DeploymentSpec{Template: p}}
		},
		"StatefulSet": func(p corev1.PodTemplateSpec) runtime.Object {
			return &appsv1.StatefulSet{Spec: appsv1.StatefulSetSpec{Template: p}}
		},
		"DaemonSet": func(p corev1.PodTemplateSpec) runtime.Object {
			return &appsv1.DaemonSet{Spec: appsv1.DaemonSetSpec{Template: p}}
		},
	} {
		gvk := appsv1.SchemeGroupVersion.WithKind(kind)
		costs := func(obj runtime.Object) float64 { return testing.AllocsPerRun(20, func() { Of(obj, gvk) }) }
		if little, much := costs(with(short)), costs(with(long)); much > 1.1*little {
			t.Errorf("%s: %.0f allocations with a short template, %.0f with a long one", kind, little, much)
		}
	}
}
