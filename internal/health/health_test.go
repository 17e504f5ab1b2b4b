package health

import (
	"math"
	"testing"

	"github.com/fluxcd/cli-utils/pkg/kstatus/status"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/intstr"
	"pgregory.net/rapid"
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

// TestAWorkloadIsJudgedByAllOfIt compares the judgment with that of kstatus about the whole object.
func TestAWorkloadIsJudgedByAllOfIt(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		obj, kind := anyWorkload(t)
		content, err := runtime.DefaultUnstructuredConverter.ToUnstructured(obj)
		if err != nil {
			t.Fatal(err)
		}
		u := &unstructured.Unstructured{Object: content}
		u.SetGroupVersionKind(appsv1.SchemeGroupVersion.WithKind(kind))
		whole, err := status.Compute(u)
		if err != nil {
			t.Fatal(err)
		}
		want := Report{Health: translate(whole.Status), Reason: whole.Message}
		if got := Of(obj, appsv1.SchemeGroupVersion.WithKind(kind)); got != want {
			t.Fatalf("%+v, and all of it: %+v", got, want)
		}
	})
}

// anyWorkload is a workload in any state.
func anyWorkload(t *rapid.T) (obj runtime.Object, kind string) {
	few, spec := rapid.Int32Range(0, 2), rapid.Ptr(rapid.Int32Range(0, 2), true)
	meta := metav1.ObjectMeta{Name: "web", Generation: rapid.Int64Range(0, 2).Draw(t, "generation"), Labels: map[string]string{"app": "web"}}
	if rapid.Bool().Draw(t, "going") {
		meta.DeletionTimestamp = new(metav1.Unix(1e9, 0))
	}
	seen := rapid.Int64Range(0, 2).Draw(t, "observed")
	template := corev1.PodTemplateSpec{Spec: corev1.PodSpec{Containers: []corev1.Container{{Name: "c", Image: "x"}}}}
	switch kind = rapid.SampledFrom([]string{"Deployment", "StatefulSet", "DaemonSet"}).Draw(t, "kind"); kind {
	case "Deployment":
		conditions := rapid.SliceOfN(rapid.Custom(func(t *rapid.T) appsv1.DeploymentCondition {
			return appsv1.DeploymentCondition{
				Type:   rapid.SampledFrom([]appsv1.DeploymentConditionType{appsv1.DeploymentAvailable, appsv1.DeploymentProgressing, "Reconciling", "Stalled", "Ready"}).Draw(t, "type"),
				Status: rapid.SampledFrom([]corev1.ConditionStatus{corev1.ConditionTrue, corev1.ConditionFalse}).Draw(t, "status"),
				Reason: rapid.SampledFrom([]string{"", "NewReplicaSetAvailable", "ProgressDeadlineExceeded"}).Draw(t, "reason"), LastUpdateTime: metav1.Unix(1e9, 0),
			}
		}), 0, 3).Draw(t, "conditions")
		return &appsv1.Deployment{ObjectMeta: meta, Spec: appsv1.DeploymentSpec{Replicas: spec.Draw(t, "replicas"), Template: template, ProgressDeadlineSeconds: rapid.SampledFrom([]*int32{nil, new(int32(600)), new(int32(math.MaxInt32))}).Draw(t, "deadline")}, Status: appsv1.DeploymentStatus{
			ObservedGeneration: seen, Replicas: few.Draw(t, "are"), UpdatedReplicas: few.Draw(t, "updated"), ReadyReplicas: few.Draw(t, "ready"), AvailableReplicas: few.Draw(t, "available"), Conditions: conditions,
		}}, kind
	case "StatefulSet":
		strategy := rapid.SampledFrom([]appsv1.StatefulSetUpdateStrategy{
			{}, {Type: appsv1.OnDeleteStatefulSetStrategyType}, {Type: appsv1.RollingUpdateStatefulSetStrategyType},
			{Type: appsv1.RollingUpdateStatefulSetStrategyType, RollingUpdate: &appsv1.RollingUpdateStatefulSetStrategy{MaxUnavailable: new(intstr.FromString("20%"))}},
			{Type: appsv1.RollingUpdateStatefulSetStrategyType, RollingUpdate: &appsv1.RollingUpdateStatefulSetStrategy{Partition: new(int32(1))}},
		}).Draw(t, "strategy")
		return &appsv1.StatefulSet{ObjectMeta: meta, Spec: appsv1.StatefulSetSpec{Replicas: spec.Draw(t, "replicas"), Template: template, UpdateStrategy: strategy}, Status: appsv1.StatefulSetStatus{
			ObservedGeneration: seen, Replicas: few.Draw(t, "are"), ReadyReplicas: few.Draw(t, "ready"), CurrentReplicas: few.Draw(t, "current"), UpdatedReplicas: few.Draw(t, "updated"),
			CurrentRevision: rapid.SampledFrom([]string{"a", "b"}).Draw(t, "at"), UpdateRevision: "b",
		}}, kind
	default:
		return &appsv1.DaemonSet{ObjectMeta: meta, Spec: appsv1.DaemonSetSpec{Template: template}, Status: appsv1.DaemonSetStatus{
			ObservedGeneration: seen, DesiredNumberScheduled: few.Draw(t, "are"), CurrentNumberScheduled: few.Draw(t, "current"), UpdatedNumberScheduled: few.Draw(t, "updated"), NumberReady: few.Draw(t, "ready"), NumberAvailable: few.Draw(t, "available"),
		}}, kind
	}
}
