package workload

import (
	"strings"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/spillway-dev/spillway/internal/config/content"
	"github.com/spillway-dev/spillway/internal/config/reloader"
)

func reloaded(annotations map[string]string) Workload {
	d := &appsv1.Deployment{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "web", UID: "u", Annotations: annotations}}
	d.Spec.Template.Spec.Containers = []corev1.Container{{
		Env:     []corev1.EnvVar{{ValueFrom: &corev1.EnvVarSource{SecretKeyRef: &corev1.SecretKeySelector{LocalObjectReference: corev1.LocalObjectReference{Name: "db"}, Key: "p"}}}},
		EnvFrom: []corev1.EnvFromSource{{ConfigMapRef: &corev1.ConfigMapEnvSource{LocalObjectReference: corev1.LocalObjectReference{Name: "app"}}}},
	}}
	return ReadReloaded(d, &reloader.Options{})
}

// A write counts only while the annotations are those by which it was decided.
func TestAWriteTestsTheAnnotationsOfReloader(t *testing.T) {
	t.Parallel()
	w := reloaded(map[string]string{"reloader.stakater.com/auto": "true"})
	tests := map[string]any{}
	for _, op := range EditStored(&w).Operations() {
		if op.Op == "test" {
			tests[strings.TrimPrefix(op.Path, "/metadata/annotations/")] = op.Value
		}
	}
	for annotation, want := range map[string]any{
		"reloader.stakater.com~1auto": "true", "secret.reloader.stakater.com~1auto": nil, "configmaps.exclude.reloader.stakater.com~1reload": nil,
		"spillway.dev~1update-on-config-change": nil,
	} {
		if got, tested := tests[annotation]; !tested || got != want {
			t.Errorf("%s: %v, %v", annotation, got, tested)
		}
	}
}

// All keys of an object count, and those that a Pod needs are still needed.
func TestTheDemandOfAReloadedWorkload(t *testing.T) {
	t.Parallel()
	w := reloaded(map[string]string{"reloader.stakater.com/auto": "true", "secret.reloader.stakater.com/reload": "gone,tls-.*"})
	objects := []reloader.Object{
		{Kind: content.ConfigMap, Name: "app", Mark: reloader.Ignored}, {Kind: content.Secret, Name: "db"}, {Kind: content.Secret, Name: "tls-a"}, {Kind: content.Secret, Name: "other"},
	}
	var got []string
	for _, ref := range w.Reloaded.DemandOf(w.Demand, objects).Uses {
		text := ref.Object.From("shop")
		if ref.Whole() {
			text += " whole"
		}
		if ref.Required {
			text += " required"
		}
		got = append(got, text)
	}
	if text := strings.Join(got, ", "); text != "Secret db required, Secret db whole, Secret tls-a whole, Secret gone whole" {
		t.Error(text)
	}
	if w := reloaded(map[string]string{"reloader.stakater.com/auto": "false", "reloader.stakater.com/x": ""}); w.Settings.Tracked || len(w.Settings.Problems) != 1 {
		t.Errorf("it is tracked, or its mistake is not named: %+v", w.Settings)
	}
}
