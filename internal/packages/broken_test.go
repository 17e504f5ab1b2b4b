package packages_test

import (
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"

	"github.com/spillway-dev/spillway/internal/packages"
	"github.com/spillway-dev/spillway/internal/plans/choice"
)

const described = "name: x\noperatorVersion: 0.1.0\n"

// Text that is no YAML, or not of the right types, is named with file, line and what is wrong,
// in a folder and in an archive.
func TestMistakesAreNamedWithTheirLine(t *testing.T) {
	for name, test := range map[string]struct{ operator, params, want string }{
		"no YAML":              {described + "tasks: [\n", "", "operator.yaml:4: invalid YAML: did not find expected node content; fix the text there"},
		"no YAML, in a line":   {"name: x\noperatorVersion: 0.1.0\n url: y\n", "", "operator.yaml:3: invalid YAML: mapping values are not allowed in this context; fix the text there"},
		"no YAML, parameters":  {described, "parameters:\n- name: \"A\n", "params.yaml:3: invalid YAML: found unexpected end of stream; fix the text there"},
		"tasks are a number":   {described + "tasks: 7\n", "", "operator.yaml:3: tasks is a number; it must be a list"},
		"resources are text":   {described + "tasks:\n- {name: a, kind: Dummy}\n- name: b\n  kind: Apply\n  spec:\n    resources: b.yaml\n", "", "operator.yaml:8: tasks.spec.resources is a string; it must be a list"},
		"steps are a map":      {described + "plans:\n  deploy:\n    phases:\n    - name: a\n      steps: {b: c}\n", "", "operator.yaml:7: plans.phases.steps is a map; it must be a list"},
		"plans are a list":     {described + "plans:\n- deploy\n", "", "operator.yaml:4: plans is a list; it must be a map"},
		"a maintainer is text": {described + "maintainers:\n- {name: A}\n- B\n", "", "operator.yaml:5: maintainers is a string; it must be a map"},
		"required is text":     {described, "parameters:\n- name: A\n  required: true\n- name: B\n  required: ja\n", "params.yaml:5: parameters.required is a string; it must be true or false"},
		"a path as a name":     {"name: ../x\noperatorVersion: 0.1.0\n", "", "operator.yaml:1: name: invalid value \"../x\": may not contain '/'; use letters, digits, - and ."},
		"a path as a version":  {"name: x\noperatorVersion: ../1\n", "", "operator.yaml:2: operatorVersion: invalid value \"../1\": may not contain '/'; use letters, digits, - and ."},
		"a path as another":    {described + "appVersion: '..'\n", "", "operator.yaml:3: appVersion: invalid value \"..\": may not be '..'; use letters, digits, - and ."},
		"parameters are a map": {described, "parameters:\n  A: {}\n", "params.yaml:2: parameters is a map; it must be a list"},
	} {
		t.Run(name, func(t *testing.T) {
			folder := t.TempDir()
			for file, text := range map[string]string{"operator.yaml": test.operator, "params.yaml": test.params} {
				if err := os.WriteFile(filepath.Join(folder, file), []byte(text), 0o600); err != nil {
					t.Fatal(err)
				}
			}
			packed := archive(t, entry{name: "app/operator.yaml", text: test.operator}, entry{name: "app/params.yaml", text: test.params})
			for _, from := range []string{folder, packed} {
				if _, err := packages.Load(from); err == nil || err.Error() != from+"/"+test.want {
					t.Errorf("it says %v, want %s/%s", err, from, test.want)
				}
			}
		})
	}
}

// An archive that is not whole, or has no package or several, says so.
func TestArchivesThatAreNotWhole(t *testing.T) {
	whole, err := os.ReadFile(archive(t, entry{name: "operator.yaml", text: operator}, entry{name: "templates/a.yaml", text: strings.Repeat("kind: A\n", 1000)}))
	if err != nil {
		t.Fatal(err)
	}
	damaged := append([]byte{}, whole...)
	damaged[len(damaged)-6] ^= 0xff // in the checksum
	for name, test := range map[string]struct {
		at   string
		want string
	}{
		"nothing":             {write(t, "empty.tgz", nil), "is empty; pack or download it again"},
		"half":                {write(t, "half.tgz", whole[:len(whole)/2]), "ends early; pack or download it again"},
		"without its end":     {write(t, "end.tgz", whole[:len(whole)-4]), "ends early; pack or download it again"},
		"its beginning":       {write(t, "beginning.tgz", whole[:5]), "ends early; pack or download it again"},
		"damaged":             {write(t, "damaged.tgz", damaged), "is damaged: gzip: invalid checksum; pack or download it again"},
		"no gzip":             {write(t, "text.tgz", []byte("<html>not found</html>")), "is no archive of a package: it is not compressed with gzip; name a directory or a .tgz file"},
		"no files":            {archive(t), "has no operator.yaml; pack a package with: spillway package create DIR"},
		"a manifest alone":    {archive(t, entry{name: "templates/operator.yaml", text: operatorManifest}), "has no operator.yaml; pack a package with: spillway package create DIR"},
		"two that are broken": {archive(t, entry{name: "a/operator.yaml", text: "a: ["}, entry{name: "b/operator.yaml", text: "a: ["}), "has 2 packages, want one: a/operator.yaml, b/operator.yaml; pack the folder of one package"},
	} {
		t.Run(name, func(t *testing.T) {
			if _, err := packages.Load(test.at); err == nil || err.Error() != test.at+": "+test.want {
				t.Errorf("it says %v, want %s", err, test.want)
			}
		})
	}
}

const operatorManifest = "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: a}\n"

// A folder with the package one below names it.
func TestAFolderAboveAPackageNamesIt(t *testing.T) {
	folder := t.TempDir()
	if err := os.MkdirAll(filepath.Join(folder, "operator"), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(folder, "operator", "operator.yaml"), []byte(operator), 0o600); err != nil {
		t.Fatal(err)
	}
	want := folder + ": has no operator.yaml; the package is in " + filepath.Join(folder, "operator")
	if _, err := packages.Load(folder); err == nil || err.Error() != want {
		t.Errorf("it says %v, want %s", err, want)
	}
}

// A list or a map without a default is empty, as in KUDO, and need not be set; a text must be.
func TestListsWithoutADefaultAreEmpty(t *testing.T) {
	p, err := packages.Load(archive(t, entry{name: "operator.yaml", text: described}, entry{name: "params.yaml", text: "parameters:\n- {name: LIST, type: array, default: }\n- {name: MAP, type: map}\n- {name: TEXT}\n"}))
	if err != nil {
		t.Fatal(err)
	}
	version, err := p.VersionObject()
	if err != nil {
		t.Fatal(err)
	}
	for i, want := range []string{"null\n", "null\n", ""} {
		got := version.Spec.Parameters[i].Default
		if must := want == ""; (got == nil) != must || got != nil && *got != want || p.Parameters[i].MustBeSet() != must {
			t.Errorf("%s: the default is %v, and it must be set: %v", p.Parameters[i].Name, got, p.Parameters[i].MustBeSet())
		}
	}
	values, problems := choice.Values(&version.Spec, map[string]string{"TEXT": "a"}, nil)
	if len(problems) > 0 || !reflect.DeepEqual(values["LIST"], []any{}) || !reflect.DeepEqual(values["MAP"], map[string]any{}) {
		t.Errorf("%#v, %v", values, problems)
	}
}
