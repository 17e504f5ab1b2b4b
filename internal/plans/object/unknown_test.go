package object

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/yaml"
)

func TestUndeclaredFields(t *testing.T) {
	const one = `failed to create typed patch object (shop/app; apps/v1, Kind=Deployment): `
	for answer, want := range map[string]string{
		one + ".spec.replica: field not declared in schema": ".spec.replica",
		one + "errors:\n  .spec.a: field not declared in schema\n  .spec.template.spec.containers[name=\"c\"].b: field not declared in schema": `.spec.a .spec.template.spec.containers[name="c"].b`,
		one + "errors:\n  .spec.a: field not declared in schema\n  .spec.replicas: expected numeric (int or float), got string":                "",
		one + ".spec.replicas: expected numeric (int or float), got string":                                                                    "",
		"Deployment.apps \"app\" is invalid: .spec.a: field not declared in schema":                                                            "",
		"": "",
	} {
		if got := strings.Join(UndeclaredFields(answer), " "); got != want {
			t.Errorf("%s: %q", answer, got)
		}
	}
}

func TestDrop(t *testing.T) {
	const manifest = `
spec:
  a: 1
  "b.c": {d: 1}
  ports: [{containerPort: 80, x: 1}, {containerPort: 81, protocol: UDP, x: 1}]
  list: [{y: 1, z: 2}]
`
	for path, want := range map[string]string{
		".spec.a":         "  a: 1\n",
		".spec.b.c":       "  \"b.c\": {d: 1}\n",
		".spec.b.c.d":     "d: 1",
		".spec.list[0].z": ", z: 2",
		`.spec.ports[containerPort=80,protocol="TCP"].x`: "80, x: 1",
		`.spec.ports[containerPort=81,protocol="UDP"].x`: "UDP, x: 1",
		`.spec.ports[containerPort=82,protocol="UDP"].x`: "",
		".spec.none":    "",
		".spec.a.b":     "",
		"spec":          "",
		".spec.list[0]": "",
		".spec.list[":   "",
		"":              "",
	} {
		read := func(text string) *unstructured.Unstructured {
			u := &unstructured.Unstructured{}
			if err := yaml.Unmarshal([]byte(text), &u.Object); err != nil {
				t.Fatal(err)
			}
			return u
		}
		kept := strings.Replace(want, ", x: 1", "", 1)
		if kept == want {
			kept = ""
		}
		u, expected := read(manifest), read(manifest)
		if want != "" {
			expected = read(strings.Replace(manifest, want, kept, 1))
		}
		if got := Drop(u, path); got != (want != "") {
			t.Errorf("%s: dropped %v", path, got)
		}
		if diff := cmp.Diff(expected.Object, u.Object); diff != "" {
			t.Errorf("%s: %s", path, diff)
		}
	}
}
