package modern_test

import (
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"golang.org/x/tools/txtar"
	"k8s.io/apiextensions-apiserver/pkg/apihelpers"
	"k8s.io/apiextensions-apiserver/pkg/apis/apiextensions"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/schema"
	"k8s.io/apimachinery/pkg/util/yaml"

	"github.com/spillway-dev/spillway/internal/packages/modern"
	"github.com/spillway-dev/spillway/internal/plans/object"
)

var update = flag.Bool("update", false, "write the changes that are found into the cases")

// TestTemplate compares each case with what is wanted. What was changed needs no change
// again.
func TestTemplate(t *testing.T) {
	cases, err := filepath.Glob("testdata/*.txtar")
	if err != nil || len(cases) == 0 {
		t.Fatalf("no cases: %v", err)
	}
	for _, name := range cases {
		t.Run(strings.TrimSuffix(filepath.Base(name), ".txtar"), func(t *testing.T) {
			archive, err := txtar.ParseFile(name)
			if err != nil {
				t.Fatal(err)
			}
			in, want := file(archive, "in"), file(archive, "out")
			if want == nil {
				want = in // nothing is changed
			}
			out, changes := modern.Template(string(in.Data), object.Latest)
			if out != string(want.Data) {
				t.Errorf("it becomes\n%s", out)
			}
			text := said(changes)
			if *update {
				file(archive, "changes").Data = []byte(text)
				if err := os.WriteFile(name, txtar.Format(archive), 0o600); err != nil {
					t.Fatal(err)
				}
			}
			if got := string(file(archive, "changes").Data); got != text {
				t.Errorf("it says\n%s", text)
			}
			again, left := modern.Template(out, object.Latest)
			for _, c := range left {
				if !c.Manual {
					t.Errorf("it is changed again: %v", c)
				}
			}
			if again != out {
				t.Errorf("it becomes another again:\n%s", again)
			}
			definitions(t, out)
		})
	}
}

func file(archive *txtar.Archive, name string) *txtar.File {
	for i := range archive.Files {
		if archive.Files[i].Name == name {
			return &archive.Files[i]
		}
	}
	return nil
}

func said(changes []modern.Change) string {
	var b strings.Builder
	for _, c := range changes {
		by := "changed"
		if c.Manual {
			by = "by hand"
		}
		fmt.Fprintf(&b, "%d: %s: %s: %s\n", c.Line, by, c.Object, c.What)
	}
	return b.String()
}

// definitions checks that an API server accepts those that were changed.
func definitions(t *testing.T, text string) {
	t.Helper()
	for document := range strings.SplitSeq(text, "---\n") {
		if !strings.Contains(document, "apiextensions.k8s.io/v1\n") {
			continue
		}
		document = strings.ReplaceAll(document, "{{ .Params.GROUP }}", "example.com")
		v1 := &apiextensionsv1.CustomResourceDefinition{}
		if err := yaml.UnmarshalStrict([]byte(document), v1); err != nil {
			t.Fatalf("%v:\n%s", err, document)
		}
		if state, why := apihelpers.GetAPIApprovalState(v1.Annotations); apihelpers.IsProtectedCommunityGroup(v1.Spec.Group) && state != apihelpers.APIApproved && state != apihelpers.APIApprovalBypassed {
			t.Errorf("%s: %s", v1.Name, why)
		}
		if len(v1.Spec.Versions) == 0 {
			t.Errorf("%s has no versions", v1.Name)
		}
		for _, version := range v1.Spec.Versions {
			var internal apiextensions.JSONSchemaProps
			if err := apiextensionsv1.Convert_v1_JSONSchemaProps_To_apiextensions_JSONSchemaProps(version.Schema.OpenAPIV3Schema, &internal, nil); err != nil {
				t.Fatal(err)
			}
			structural, err := schema.NewStructural(&internal)
			if err != nil {
				t.Fatal(err)
			}
			for _, problem := range schema.ValidateStructural(nil, structural) {
				t.Errorf("%s: %v", v1.Name, problem)
			}
		}
	}
}

// A version that is asked for is served is left as it is.
func TestOlderKubernetes(t *testing.T) {
	const text = "apiVersion: policy/v1beta1\nkind: PodDisruptionBudget\n"
	if out, changes := modern.Template(text, 24); out != text || len(changes) > 0 {
		t.Errorf("for 1.24 it becomes\n%s, %v", out, changes)
	}
	if _, changes := modern.Template(text, 25); len(changes) != 1 {
		t.Errorf("for 1.25 it is changed by %v", changes)
	}
}

// Lines that are not about a change stay as they are, whatever stands in them.
func FuzzTemplate(f *testing.F) {
	cases, err := filepath.Glob("testdata/*.txtar")
	if err != nil {
		f.Fatal(err)
	}
	for _, name := range cases {
		archive, err := txtar.ParseFile(name)
		if err != nil {
			f.Fatal(err)
		}
		f.Add(string(file(archive, "in").Data))
	}
	f.Add("a: {{ `\r\n---\n}}` }}\r\napiVersion: policy/v1beta1\r\nkind: PodDisruptionBudget")
	f.Fuzz(func(t *testing.T, text string) {
		out, changes := modern.Template(text, object.Latest)
		if len(changes) == 0 && out != text {
			t.Errorf("it was changed without a word:\n%q\n%q", text, out)
		}
	})
}
