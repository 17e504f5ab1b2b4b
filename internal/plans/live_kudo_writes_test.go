package plans_test

import (
	"encoding/json"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	"github.com/spillway-dev/spillway/api/kudo/v1beta1"
)

// golden are the objects that KUDO's command writes for the package in testdata/kudo/app,
// by their file.
var golden = map[string]string{"operator": "Operator", "operatorversion": "OperatorVersion", "dependency": "OperatorVersion", "instance": "Instance"}

// TestTheStoredIsWhatKUDOWrote: of what KUDO's command writes the API server drops nothing,
// and adds nothing.
func TestTheStoredIsWhatKUDOWrote(t *testing.T) {
	c := newCluster(t)
	for _, name := range []string{"operator", "operatorversion", "dependency", "instance"} {
		c.send(name)
		want := readGolden(t, name)
		if diff := cmp.Diff(content(want), c.stored(want)); diff != "" {
			t.Errorf("%s: - is what KUDO wrote, + what is stored\n%s", name, diff)
		}
	}
}

// TestInstallWritesWhatKUDOWrites: for the same package and parameters the commands write the
// objects that KUDO's command writes, and no field that KUDO does not know. Where KUDO has
// installed the package, nothing is left to write.
func TestInstallWritesWhatKUDOWrites(t *testing.T) {
	const install = "package install testdata/kudo/app my-app -p PLAIN=4"
	ours, theirs := newCluster(t), newQuietCluster(t)
	ours.says(install, "instance/my-app created")
	for _, name := range []string{"operator", "operatorversion", "dependency", "instance"} {
		want := readGolden(t, name)
		for _, field := range []string{"connectionString", "upgradableFrom"} { // which a package cannot set
			unstructured.RemoveNestedField(want, "spec", field)
		}
		theirs.installed(want)
		got := ours.stored(want)
		if diff := cmp.Diff(content(want), got); diff != "" {
			t.Errorf("%s: - is what KUDO writes, + what the command writes\n%s", name, diff)
		}
		checkFields(t, name, got["spec"], fieldsOfKUDO(t)[golden[name]])
	}
	theirs.says(install, "operator/app unchanged", "operatorversion/db-3.4-0.1.0 unchanged", "operatorversion/app-3.4-0.1.0 unchanged", "instance/my-app unchanged")
	ours.asks(theirs)
}

// asks runs the commands that change an Instance, beside what KUDO knows of the result.
func (c *cluster) asks(theirs *cluster) {
	c.t.Helper()
	c.says(`package update instance/my-app -p MAP={"a":"c"} -p BOOLEAN=false`, "instance/my-app changed")
	c.says("plan trigger my-app backup", "plan backup requested")
	got := c.stored(map[string]any{"kind": "Instance", "metadata": map[string]any{"name": "my-app"}})
	checkFields(c.t, "instance", got["spec"], fieldsOfKUDO(c.t)["Instance"])
	execution, _, _ := unstructured.NestedMap(got, "spec", "planExecution")
	if execution["planName"] != "backup" || execution["uid"] == "" {
		c.t.Errorf("the plan was requested by %v", execution)
	}
	i := theirs.now("my-app")
	i.Spec.PlanExecution = v1beta1.PlanExecution{PlanName: "backup", UID: "5a8bd8ac-9d6a-4a12-b2b9-8b8b4e3d6a03"}
	if err := theirs.client.Update(c.t.Context(), i); err != nil {
		c.t.Errorf("a plan is not requested as KUDO does: %v", err)
	}
}

// installed creates an object.
func (c *cluster) installed(o map[string]any) {
	c.t.Helper()
	u := &unstructured.Unstructured{Object: runtime.DeepCopyJSON(o)}
	u.SetNamespace(c.namespace)
	if err := c.client.Create(c.t.Context(), u); err != nil {
		c.t.Fatal(err)
	}
}

// readGolden is an object as KUDO writes it.
func readGolden(t *testing.T, name string) map[string]any {
	t.Helper()
	raw, err := os.ReadFile(filepath.Join("testdata/kudo", name+".json"))
	if err != nil {
		t.Fatal(err)
	}
	var o map[string]any
	if err := json.Unmarshal(raw, &o); err != nil {
		t.Fatal(err)
	}
	return o
}

// stored reads an object of the same kind and name, without fields that are empty.
func (c *cluster) stored(like map[string]any) map[string]any {
	c.t.Helper()
	u := &unstructured.Unstructured{}
	u.SetGroupVersionKind(v1beta1.GroupVersion.WithKind(fmt.Sprint(like["kind"])))
	name, _, _ := unstructured.NestedString(like, "metadata", "name")
	if err := c.client.Get(c.t.Context(), client.ObjectKey{Namespace: c.namespace, Name: name}, u); err != nil {
		c.t.Fatal(err)
	}
	return content(u.Object)
}

// content is what a client writes of an object, without fields that are empty.
func content(o map[string]any) map[string]any {
	all, _ := withoutEmpty(runtime.DeepCopyJSON(o)).(map[string]any)
	metadata, _ := all["metadata"].(map[string]any)
	for field := range metadata {
		if field != "name" && field != "labels" {
			delete(metadata, field)
		}
	}
	delete(all, "status")
	return all
}

// withoutEmpty is a value without null, "" and {} in it, which mean the same as nothing. What
// a parameter has is kept: its default may be "".
func withoutEmpty(value any) any {
	switch v := value.(type) {
	case map[string]any:
		_, isParameter := v["required"]
		for name, field := range maps.Clone(v) {
			if field = withoutEmpty(field); field == nil || field == "" && !isParameter {
				delete(v, name)
			} else {
				v[name] = field
			}
		}
		if len(v) == 0 {
			return nil
		}
	case []any:
		for i := range v {
			v[i] = withoutEmpty(v[i])
		}
	}
	return value
}

// fieldsOfKUDO are the fields of the kinds as KUDO documents them.
func fieldsOfKUDO(t *testing.T) map[string]any {
	t.Helper()
	raw, err := os.ReadFile("testdata/kudo/fields.yaml")
	if err != nil {
		t.Fatal(err)
	}
	var fields map[string]any
	if err := yaml.Unmarshal(raw, &fields); err != nil {
		t.Fatal(err)
	}
	return fields
}

// checkFields finds fields that KUDO does not know, or knows with another type.
func checkFields(t *testing.T, at string, value, known any) {
	t.Helper()
	switch known := known.(type) {
	case map[string]any:
		fields, ok := value.(map[string]any)
		if !ok {
			t.Errorf("%s is %v, and KUDO expects fields", at, value)
		}
		for name, field := range fields {
			of, isKnown := known[name]
			if !isKnown {
				of, isKnown = known["*"]
			}
			if !isKnown {
				t.Errorf("KUDO does not know %s.%s", at, name)
				continue
			}
			checkFields(t, at+"."+name, field, of)
		}
	case []any:
		items, ok := value.([]any)
		if !ok {
			t.Errorf("%s is %v, and KUDO expects a list", at, value)
		}
		for _, item := range items {
			checkFields(t, at, item, known[0])
		}
	default:
		_, isText := value.(string)
		_, isBool := value.(bool)
		if isText != (known == "string") || isBool != (known == "boolean") {
			t.Errorf("%s is %v, and KUDO expects a %v", at, value, known)
		}
	}
}
