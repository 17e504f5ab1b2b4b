package testenv

import (
	"context"
	"os"
	"path/filepath"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"
)

// InstallKinds installs the CustomResourceDefinitions in some files, given by patterns,
// and waits until they are established.
func InstallKinds(t testing.TB, c client.Client, patterns ...string) {
	t.Helper()
	for _, pattern := range patterns {
		files, err := filepath.Glob(pattern)
		if err != nil || len(files) == 0 {
			t.Fatalf("no kinds in %s: %v", pattern, err)
		}
		for _, file := range files {
			installKind(t, c, file)
		}
	}
}

func installKind(t testing.TB, c client.Client, file string) {
	t.Helper()
	raw, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	crd := &unstructured.Unstructured{}
	if err := yaml.Unmarshal(raw, &crd.Object); err != nil {
		t.Fatal(err)
	}
	Kinds(t, c, []client.Object{crd})
}

// ApplyManifest applies an object that is given as YAML.
func ApplyManifest(t testing.TB, c client.Client, manifest string) {
	t.Helper()
	u := &unstructured.Unstructured{}
	if err := yaml.Unmarshal([]byte(manifest), &u.Object); err != nil {
		t.Fatal(err)
	}
	Apply(t, c, u)
}

// InstallRollouts makes the kind Rollout of Argo known to the API server, as far as it matters here, and waits until it is.
func InstallRollouts(t testing.TB, c client.Client) {
	t.Helper()
	ApplyManifest(t, c, `{apiVersion: apiextensions.k8s.io/v1, kind: CustomResourceDefinition, metadata: {name: rollouts.argoproj.io}, spec: {group: argoproj.io, scope: Namespaced, names: {kind: Rollout, plural: rollouts, singular: rollout, listKind: RolloutList},
versions: [{name: v1alpha1, served: true, storage: true, subresources: {status: {}}, schema: {openAPIV3Schema: {type: object, x-kubernetes-preserve-unknown-fields: true}}}]}}`)
	Eventually(t, func(ctx context.Context) error {
		list := &unstructured.UnstructuredList{}
		list.SetAPIVersion("argoproj.io/v1alpha1")
		list.SetKind("RolloutList")
		return c.List(ctx, list, client.Limit(1))
	})
}
