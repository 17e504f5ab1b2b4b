package testenv

import (
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
