package workload

import (
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/spillway-dev/spillway/internal/config/content"
	"github.com/spillway-dev/spillway/internal/vocabulary"
)

// TestManifestOf checks that a manifest is read as by the ring.
func TestManifestOf(t *testing.T) {
	d := &appsv1.Deployment{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "web", Annotations: map[string]string{
		vocabulary.ConfigTracked.Native: "true", vocabulary.ExtraSecrets.Native: "vault/token", vocabulary.Priority.Native: "high",
	}}}
	d.Spec.Template.Spec.InitContainers = []corev1.Container{{EnvFrom: []corev1.EnvFromSource{
		{ConfigMapRef: &corev1.ConfigMapEnvSource{LocalObjectReference: corev1.LocalObjectReference{Name: "app"}}},
	}}}
	m := ManifestOf(d)
	if !m.Tracked || len(m.Problems) != 1 || m.Problems[0].Annotation != vocabulary.Priority.Native {
		t.Errorf("tracked %v, problems %v", m.Tracked, m.Problems)
	}
	want := []content.Object{{Kind: content.Secret, Namespace: "vault", Name: "token"}, {Kind: content.ConfigMap, Namespace: "shop", Name: "app"}}
	if len(m.Uses) != len(want) || m.Uses[0].Object != want[0] || m.Uses[1].Object != want[1] {
		t.Errorf("it uses %v, want %v", m.Uses, want)
	}
	secret := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Annotations: map[string]string{vocabulary.SharedWith.Native: "payments, shop"}}}
	if !content.IsSharedWith(secret, "shop") || content.IsSharedWith(secret, "pay") {
		t.Error("it is shared with payments and shop, and no other namespace")
	}
}
