package kube_test

import (
	"testing"

	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/spillway-dev/spillway/internal/kube"
)

// TestMeantKind: what is nearly a kind was meant for it, and what may be a kind of others, or of
// a newer Kubernetes, is not judged.
func TestMeantKind(t *testing.T) {
	t.Parallel()
	scheme, err := kube.NewScheme()
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct{ version, kind, want string }{
		{"apps/v1", "Deployment", " "},
		{"apps/v1", "DeploymentList", " "},
		{"apps/v1", "Deploymnt", "kind Deployment"},
		{"apps/v1", "deployments", "kind Deployment"},
		{"apps/v1", "statefulset", "kind StatefulSet"},
		{"v1", "PersistentVolumeclaim", "kind PersistentVolumeClaim"},
		{"v1", "Deployment", "apiVersion apps/v1"},
		{"apps/v1", "ConfigMap", "apiVersion v1"},
		{"apps/v1", "Ingress", "apiVersion networking.k8s.io/v1"},
		{"spillway.dev/v1alpha1", "RolloutGruop", "kind RolloutGroup"},
		{"apps/v1", "Event", " "}, // of two groups
		{"apps/v1", "WorkloadSet", " "},
		{"batch/v1", "JobSet", " "},
		{"v1", "Pot", "kind Pod"},
		{"apps/v9", "Deploymnt", " "},
		{"app/v1", "Deployment", " "},
		{"example.com/v1", "Deploymnt", " "},
		{"kustomize.toolkit.fluxcd.io/v1", "Kustomizatoin", " "},
	} {
		gv, err := schema.ParseGroupVersion(c.version)
		if err != nil {
			t.Fatal(err)
		}
		field, meant := kube.MeantKind(scheme, gv.WithKind(c.kind))
		if got := field + " " + meant; got != c.want {
			t.Errorf("%s %s: meant %q, want %q", c.version, c.kind, got, c.want)
		}
	}
}
