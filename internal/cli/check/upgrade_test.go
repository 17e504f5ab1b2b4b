package check

import (
	"strings"
	"testing"

	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/util/sets"
	"sigs.k8s.io/yaml"
)

// crd is a kind with versions, whose schemas are given.
func crd(t *testing.T, versions string) *unstructured.Unstructured {
	t.Helper()
	u := &unstructured.Unstructured{}
	if err := yaml.Unmarshal([]byte("{metadata: {name: things.example.test}, status: {storedVersions: [v1]}, spec: {versions: ["+versions+"]}}"), &u.Object); err != nil {
		t.Fatal(err)
	}
	return u
}

func version(name, properties string) string {
	return "{name: " + name + ", schema: {openAPIV3Schema: {properties: {spec: {properties: {" + properties + "}}}}}}"
}

// What is added, what is lost, and what could not be read any more.
func TestUpgradeKind(t *testing.T) {
	const (
		list  = "rules: {items: {properties: {name: {type: string}}}}"
		more  = "rules: {items: {properties: {name: {type: string}, weight: {type: integer}}}}"
		table = "labels: {additionalProperties: {properties: {value: {}}}}"
	)
	for name, test := range map[string]struct {
		before, after string
		says          []string
		fixed         bool
	}{
		"a field more":      {version("v1", list), version("v1", more), []string{"kind things.example.test v1 gets 1 field: spec.rules.weight"}, true},
		"a field less":      {version("v1", more), version("v1", list), []string{"kind things.example.test v1 loses 1 field: spec.rules.weight"}, true},
		"one of each":       {version("v1", list), version("v1", table), []string{"loses 2 fields: spec.rules; spec.rules.name", "gets 2 fields: spec.labels; spec.labels.value"}, true},
		"a version more":    {version("v1", list), version("v1", list) + "," + version("v2", list), []string{"gets version v2"}, true},
		"the stored is not": {version("v1", list), version("v2", list), []string{"no longer has version v1, in which objects may be stored", "gets version v2"}, false},
	} {
		t.Run(name, func(t *testing.T) {
			findings := upgradeKind(t.Context(), nil, crd(t, test.before), crd(t, test.after))
			var said []string
			for _, f := range findings {
				said = append(said, f.What)
			}
			text := strings.Join(said, "\n")
			for _, want := range test.says {
				if !strings.Contains(text, want) {
					t.Errorf("it does not say %q but %q", want, text)
				}
			}
			if len(findings) != len(test.says) || (verdict(findings) == nil) != test.fixed {
				t.Errorf("findings %+v", findings)
			}
		})
	}
}

func TestGranted(t *testing.T) {
	all := granted([]rbacv1.PolicyRule{
		{APIGroups: []string{""}, Resources: []string{"pods"}, Verbs: []string{"get", "delete"}},
		{APIGroups: []string{"apps"}, Resources: []string{"deployments"}, Verbs: []string{"patch"}, ResourceNames: []string{"a", "b"}},
	})
	if want := sets.New("get pods", "delete pods", "patch deployments.apps named a, b"); !all.Equal(want) {
		t.Errorf("%v, want %v", all, want)
	}
}

func TestCounted(t *testing.T) {
	if got := counted([]string{"a"}, "field"); got != "1 field: a" {
		t.Error(got)
	}
	if got := counted(strings.Split("a b c d e f g h i j k l", " "), "field"); got != "12 fields: a; b; c; d; e; f; g; h; i; j and 2 more" {
		t.Error(got)
	}
}
