package source_test

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	appsv1 "k8s.io/api/apps/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/spillway-dev/spillway/internal/kube"
	"github.com/spillway-dev/spillway/internal/source"
)

// tree writes files below a new directory, and makes it the current one.
func tree(t *testing.T, files map[string]string) {
	t.Helper()
	t.Chdir(t.TempDir())
	for name, content := range files {
		if err := os.MkdirAll(filepath.Dir(name), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(name, []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
	}
}

// shown is what was read, one document a line, and then the mistakes.
func shown(documents []source.Document, err error) string {
	var b strings.Builder
	for _, d := range documents {
		fmt.Fprintf(&b, "%s:%d %s %s\n", d.File, d.Line, d.Object.GetKind(), d.Object.GetName())
	}
	for _, e := range source.Errors(err) {
		fmt.Fprintf(&b, "%s\n", e)
	}
	return b.String()
}

func same(t *testing.T, want, got string) {
	t.Helper()
	if diff := cmp.Diff(strings.TrimLeft(want, "\n"), got); diff != "" {
		t.Errorf("(-want +got)\n%s", diff)
	}
}

func TestReadsOneFile(t *testing.T) {
	for name, c := range map[string]struct{ text, want string }{
		"documents, comments and empty ones between them": {`# first a comment
---
# about a
apiVersion: v1
kind: ConfigMap
metadata: {name: a}
--- # and a comment here
---
apiVersion: v1
kind: ConfigMap
metadata: {name: b}
---
`, `
- :4 ConfigMap a
- :9 ConfigMap b
`},
		"a mark of the byte order, and lines of Windows": {"\xef\xbb\xbfapiVersion: v1\r\nkind: ConfigMap\r\nmetadata: {name: a}\r\n---\r\napiVersion: v1\r\nkind: Secret\r\nmetadata: {name: b}\r\n", `
- :1 ConfigMap a
- :5 Secret b
`},
		"a list within a list": {`apiVersion: v1
kind: List
items:
- apiVersion: v1
  kind: ConfigMap
  metadata: {name: a}
- apiVersion: v1
  kind: List
  items:
  - apiVersion: v1
    kind: Secret
    metadata: {name: b}
`, `
- :4 ConfigMap a
- :10 Secret b
`},
		"a list of which the items do not say their kind": {`{"apiVersion": "v1", "kind": "PodList", "items": [
  {"metadata": {"name": "a"}},
  {"metadata": {"name": "b"}}]}
`, `
- :2 Pod a
- :3 Pod b
`},
		"an empty list":                        {"apiVersion: v1\nkind: List\nitems: []\n", "-: there is no manifest; manifests are objects of Kubernetes in files that end in .yaml, .yml or .json\n"},
		"JSON objects that follow one another": {"{\"apiVersion\": \"v1\",\n \"kind\": \"Secret\", \"metadata\": {\"name\": \"a\"}}\n\n{\"apiVersion\": \"v1\",\n \"kind\": \"Secret\",\n \"metadata\": {\"name\": \"b\"}}\n", "- :1 Secret a\n- :4 Secret b\n"},
		"YAML that begins with a brace":        {"{apiVersion: v1, kind: Secret, metadata: {name: a}}\n---\n{apiVersion: v1, kind: Secret, metadata: {name: b}}\n", "- :1 Secret a\n- :3 Secret b\n"},
		"JSON that is indented by tabs":        {"{\n\t\"apiVersion\": \"v1\",\n\t\"kind\": \"Secret\",\n\t\"metadata\": {\n\t\t\"name\": \"a\"\n\t}\n}\n", "- :1 Secret a\n"},
		"a name that is to be generated":       {"apiVersion: v1\nkind: Pod\nmetadata: {generateName: a-}\n", "- :1 Pod \n"},
		"nothing":                              {"", "-: there is no manifest; manifests are objects of Kubernetes in files that end in .yaml, .yml or .json\n"},
	} {
		t.Run(name, func(t *testing.T) {
			got := strings.ReplaceAll(shown(source.Read(strings.NewReader(c.text), source.Stdin)), "-:", "- :")
			same(t, strings.ReplaceAll(c.want, "-: ", "- : "), got)
		})
	}
}

func TestSaysWhatIsWrongAndWhere(t *testing.T) {
	const head = "apiVersion: v1\nkind: ConfigMap\n"
	for name, c := range map[string]struct{ text, want string }{
		"no YAML":               {head + "metadata:\n  name: a\n bad: b\n", `-:5: invalid YAML: did not find expected key; fix the text there`},
		"in a second document":  {head + "metadata: {name: a}\n---\n" + head + "metadata: {name: [b}\n", `-:7: invalid YAML: did not find expected ',' or ']'; fix the text there`},
		"objects run together":  {head + "metadata: {name: a}\n" + head + "metadata: {name: b}\n", `-:4: another object begins without a separator; put three dashes, ---, alone on a line before it`},
		"a key twice":           {head + "metadata: {name: a}\ndata:\n  x: \"1\"\n  x: \"2\"\n", `-:6: invalid YAML: key "x" already set in map; fix the text there`},
		"no separator":          {head + "metadata: {name: a}\n--- {}\n", `-:4: another document begins without a line of its own; put three dashes, ---, alone on a line before it`},
		"text alone":            {"hello\n", `-:1: is not a Kubernetes object; give it apiVersion, kind and metadata.name, or leave the file out`},
		"no kind":               {"\n\nreplicaCount: 1\n", `-:3: has no apiVersion; give it apiVersion, kind and metadata.name, or leave the file out`},
		"no name":               {head + "metadata:\n  labels: {a: b}\n", `-:3: has no metadata.name; give it apiVersion, kind and metadata.name, or leave the file out`},
		"a name that is none":   {head + "metadata:\n  name: 123\n", `-:4: metadata.name is not a string; put the value in quotes`},
		"metadata that is none": {head + "metadata: a\n", `-:3: metadata is not a map; write it as a map of names to values`},
		"a boolean of old YAML": {head + "metadata:\n  name: a\n  annotations:\n    x: \"1\"\n    spillway.dev/pause: yes\n", `-:7: metadata.annotations: the value of spillway.dev/pause is not a string; put the value in quotes`},
		"a label of the template": {"apiVersion: apps/v1\nkind: Deployment\nmetadata: {name: a}\nspec:\n  template:\n    metadata:\n      labels:\n        version: 1.0\n",
			`-:8: spec.template.metadata.labels: the value of version is not a string; put the value in quotes`},
		"annotations that are a list": {head + "metadata:\n  name: a\n  annotations: [x]\n", `-:5: metadata.annotations is not a map; write it as a map of names to values`},
		"an item that is none":        {"apiVersion: v1\nkind: List\nitems: [a]\n", `-:1: has an item that is not a Kubernetes object; give it apiVersion, kind and metadata.name, or leave the file out`},
		"a circle":                    {head + "metadata: &m {name: a, self: *m}\n", `-:1: invalid YAML: anchor 'm' value contains itself; fix the text there`},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := source.Read(strings.NewReader(c.text), source.Stdin)
			if diff := cmp.Diff(c.want, fmt.Sprint(err)); diff != "" {
				t.Errorf("(-want +got)\n%s", diff)
			}
		})
	}
}

func TestWhatIsRightIsReadBesideWhatIsWrong(t *testing.T) {
	text := "a: b\n---\napiVersion: v1\nkind: Secret\nmetadata: {name: a}\n---\n[\n"
	same(t, `
-:3 Secret a
-:1: has no apiVersion; give it apiVersion, kind and metadata.name, or leave the file out
-:7: invalid YAML: did not find expected node content; fix the text there
`, shown(source.Read(strings.NewReader(text), source.Stdin)))
}

func TestReadsDirectories(t *testing.T) {
	object := func(name string) string { return "apiVersion: v1\nkind: Secret\nmetadata: {name: " + name + "}\n" }
	tree(t, map[string]string{
		"shop/b.yaml": object("b"), "shop/a.yml": object("a"), "shop/deep/er/c.json": `{"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "c"}}`,
		"shop/README.md": "no manifest", "shop/.git/x.yaml": "[", "shop/.hidden.yaml": "[", "extra.txt": object("extra"),
	})
	if err := os.Symlink("..", "shop/deep/circle.yaml"); err != nil {
		t.Fatal(err)
	}
	same(t, `
extra.txt:1 Secret extra
shop/a.yml:1 Secret a
shop/b.yaml:1 Secret b
shop/deep/er/c.json:1 Secret c
-:1 Secret piped
`, shown(source.Read(strings.NewReader(object("piped")), "extra.txt", "./shop", "shop/b.yaml", source.Stdin, source.Stdin)))
	t.Chdir("shop/.git")
	same(t, "../a.yml:1 Secret a\n", shown(source.Read(nil, "../a.yml")))
}

func TestSaysHowToRender(t *testing.T) {
	tree(t, map[string]string{
		"all/overlay/kustomization.yaml": "resources: [../base]", "all/overlay/patch.yaml": "[",
		"all/chart/Chart.yaml": "name: c", "all/chart/templates/x.yaml": "{{ bad }}",
		"all/z.yaml": "apiVersion: v1\nkind: Secret\nmetadata: {name: z}\n", "empty/x.txt": "",
	})
	same(t, `
all/z.yaml:1 Secret z
all/chart: is a Helm chart, which is not rendered here; render it first, and pipe that to -f -: helm template all/chart
all/overlay: is a Kustomize overlay, which is not rendered here; render it first, and pipe that to -f -: kubectl kustomize all/overlay
`, shown(source.Read(nil, "all")))
	same(t, `
all/overlay: is a Kustomize overlay, which is not rendered here; render it first, and pipe that to -f -: kubectl kustomize all/overlay
nowhere: cannot be read: no such file or directory; give a file or directory that exists and can be read, or - for standard input
`, shown(source.Read(nil, "all/overlay/kustomization.yaml", "nowhere")))
	same(t, "empty: there is no manifest; manifests are objects of Kubernetes in files that end in .yaml, .yml or .json\n", shown(source.Read(nil, "empty")))
}

const deployment = `# a comment
---
apiVersion: apps/v1
kind: Deployment
metadata:
  name: shop
  labels: &labels
    app: shop
  annotations:
    spillway.dev/pause: "true"
spec:
  replicas: 2
  selector:
    matchLabels: *labels
  template:
    metadata:
      labels: *labels
    spec:
      containers:
      - name: one
      - name: two
        image: x
`

func read(t *testing.T, text string) source.Document {
	t.Helper()
	documents, err := source.Read(strings.NewReader(text), source.Stdin)
	if err != nil || len(documents) != 1 {
		t.Fatalf("got %d documents: %v", len(documents), err)
	}
	return documents[0]
}

func TestRepositoriesHoldOtherFiles(t *testing.T) {
	const manifest = "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: %s}\n"
	named := func(name string) string { return fmt.Sprintf(manifest, name) }
	tree(t, map[string]string{
		"a.yaml": named("a"), "mixed.yaml": "x: 1\n---\n" + named("mixed"), "config.json": "{}", "values.yaml": "a: 1", "empty.yaml": "",
		"template.yaml": "{{ if .Values.x }}\napiVersion: v1\nkind: ConfigMap\n{{ end }}", "list.yaml": "- a\n- b\n", "broken.yaml": "a: [",
		"kind.yaml": "apiVersion: kind.x-k8s.io/v1alpha4\nkind: Cluster\n", "chart/Chart.yaml": "name: x", "chart/templates/b.yaml": named("b"),
		"overlay/kustomization.yaml": "resources: [c.yaml]", "overlay/c.yaml": named("c"),
		".gitignore": "# made\n/out/\n", "out/d.yaml": named("d"), "sub/out/e.yaml": named("e"), "sub/.spillwayignore": "f.yaml\n", "sub/f.yaml": named("f"),
		"testdata/g.yaml": named("g"), "wrong.yaml": "apiVersion: v1\nkind: ConfigMap\n", "half.yaml": "kind: ConfigMap\nmetadata: {name: half}\n",
		"typo.yaml": "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: [}\n",
	})
	var skipped []string
	o := source.Options{Exclude: []string{"testdata/"}, Skip: func(s source.Skipped) { skipped = append(skipped, s.Path+" is "+s.Why) }}
	documents, err := source.ReadTree(nil, o, ".")
	same(t, `
a.yaml:1 ConfigMap a
mixed.yaml:3 ConfigMap mixed
sub/out/e.yaml:1 ConfigMap e
half.yaml:1: has no apiVersion; give it apiVersion, kind and metadata.name, or leave the file out
typo.yaml:3: invalid YAML: did not find expected node content; fix the text there
wrong.yaml:1: has no metadata.name; give it apiVersion, kind and metadata.name, or leave the file out
`, shown(documents, err))
	same(t, `
broken.yaml is a file without manifests
chart is a Helm chart
config.json is a file without manifests
empty.yaml is a file without manifests
kind.yaml is a file without manifests
list.yaml is a file without manifests
overlay is a Kustomize overlay
template.yaml is a file without manifests
values.yaml is a file without manifests`, strings.Join(skipped, "\n"))
}

// What is not text is left out of a directory, and is a mistake if it is named.
func TestNotText(t *testing.T) {
	named := "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: a}"
	tree(t, map[string]string{"a.yaml": named, "binary.yaml": "\x7fELF\x00\x01"})
	var left []string
	o := source.Options{NotText: func(path string) { left = append(left, path) }}
	documents, err := source.ReadTree(nil, o, ".")
	same(t, "a.yaml:1 ConfigMap a\n", shown(documents, err))
	same(t, "binary.yaml", strings.Join(left, " "))
	_, err = source.ReadTree(nil, o, "binary.yaml")
	same(t, "binary.yaml: is not text; name a manifest, in YAML or JSON\n", shown(nil, err))
}

func TestWhatIsNamedIsRead(t *testing.T) {
	tree(t, map[string]string{"values.yaml": "a: 1", ".gitignore": "*\n", "chart/Chart.yaml": "name: x"})
	o := source.Options{Skip: func(s source.Skipped) { t.Errorf("%s was left out", s.Path) }}
	documents, err := source.ReadTree(nil, o, "values.yaml", "chart")
	same(t, `
values.yaml:1: has no apiVersion; give it apiVersion, kind and metadata.name, or leave the file out
chart: is a Helm chart, which is not rendered here; render it first, and pipe that to -f -: helm template chart
`, shown(documents, err))
}

func TestIgnoreFilesOfTheRepositoryCount(t *testing.T) {
	tree(t, map[string]string{
		".git/HEAD": "", ".gitignore": "*.gen.yaml\n", "deploy/a.gen.yaml": "apiVersion: v1", "deploy/b.yaml": "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: b}",
	})
	documents, err := source.ReadTree(nil, source.Options{Skip: func(source.Skipped) {}}, "deploy")
	same(t, "deploy/b.yaml:1 ConfigMap b\n", shown(documents, err))
}

func TestLineOf(t *testing.T) {
	d := read(t, deployment)
	for path, want := range map[string]int{
		"": 3, "kind": 4, "metadata": 5, "metadata|annotations|spillway.dev/pause": 10, "metadata|annotations|other": 9,
		"spec|replicas": 12, "spec|replicas|deeper": 12, "spec|template|spec|containers|1|image": 22, "spec|template|spec|containers|1|env": 21,
		"spec|template|spec|containers|7": 19, "spec|template|spec|containers|x": 19, "spec|template|metadata|labels|app": 8, "status": 3,
	} {
		if got := d.LineOf(strings.FieldsFunc(path, func(r rune) bool { return r == '|' })...); got != want {
			t.Errorf("%q: line %d, want %d", path, got, want)
		}
	}
}

func TestInto(t *testing.T) {
	scheme, err := kube.NewScheme()
	if err != nil {
		t.Fatal(err)
	}
	t.Run("the kind", func(t *testing.T) {
		d := read(t, deployment)
		typed, err := d.Into(scheme)
		if err != nil {
			t.Fatal(err)
		}
		if got, ok := typed.(*appsv1.Deployment); !ok || *got.Spec.Replicas != 2 || got.Spec.Template.Labels["app"] != "shop" {
			t.Errorf("got %v", typed)
		}
	})
	t.Run("a kind that is not known", func(t *testing.T) {
		d := read(t, "apiVersion: example.com/v1\nkind: Thing\nmetadata: {name: a}\n")
		if _, err := d.Into(scheme); !errors.Is(err, source.ErrUnknownKind) {
			t.Errorf("got %v", err)
		}
	})
	for name, c := range map[string]struct{ change, into, want string }{
		"unknown fields": {"replicas: 2", "replica: 2", `-:12: Deployment has no field spec.replica; fix its spelling or its place, or take it out`},
		"deep unknown":   {"image: x", "imagen: x", `-:22: Deployment has no field spec.template.spec.containers[1].imagen; fix its spelling or its place, or take it out`},
		"a wrong type":   {"replicas: 2", "replicas: two", `-:12: spec.replicas is a string; give it a value of type int32`},
		"a wrong map":    {"    matchLabels: *labels", "    matchLabels: [x]", `-:14: spec.selector.matchLabels is a array; give it a value of type map[string]string`},
	} {
		t.Run(name, func(t *testing.T) {
			d := read(t, strings.Replace(deployment, c.change, c.into, 1))
			_, err := d.Into(scheme)
			if diff := cmp.Diff(c.want, fmt.Sprint(err)); diff != "" {
				t.Errorf("(-want +got)\n%s", diff)
			}
		})
	}
}

func TestInNamespace(t *testing.T) {
	text := "apiVersion: v1\nkind: List\nitems:\n- {apiVersion: v1, kind: Secret, metadata: {name: a}}\n- {apiVersion: v1, kind: Secret, metadata: {name: b, namespace: own}}\n- {apiVersion: v1, kind: Namespace, metadata: {name: c}}\n"
	documents, err := source.Read(strings.NewReader(text), source.Stdin)
	if err != nil {
		t.Fatal(err)
	}
	source.InNamespace(documents, "shop")
	for i, want := range []string{"shop", "own", ""} {
		if got := documents[i].Object.GetNamespace(); got != want {
			t.Errorf("document %d is in %q, want %q", i, got, want)
		}
	}
	for kind, want := range map[schema.GroupKind]bool{
		{Group: "apps", Kind: "Deployment"}: true, {Kind: "Node"}: false, {Group: "storage.k8s.io", Kind: "StorageClass"}: false,
		{Group: "storage.k8s.io", Kind: "CSIStorageCapacity"}: true, {Group: "apiextensions.k8s.io", Kind: "CustomResourceDefinition"}: false,
		{Group: "example.com", Kind: "Thing"}: true,
	} {
		if got := source.IsNamespaced(kind); got != want {
			t.Errorf("%s: %v, want %v", kind, got, want)
		}
	}
}

// FuzzRead feeds anything: it never panics, and what it has read stands somewhere.
func FuzzRead(f *testing.F) {
	f.Add([]byte(deployment))
	f.Add([]byte("{\"apiVersion\": \"v1\"}\n{}"))
	f.Add([]byte("apiVersion: v1\nkind: List\nitems:\n- &a {x: *a}\n--- !!x\n"))
	scheme, err := kube.NewScheme()
	if err != nil {
		f.Fatal(err)
	}
	f.Fuzz(func(t *testing.T, raw []byte) {
		documents, err := source.Read(strings.NewReader(string(raw)), source.Stdin)
		if len(documents) == 0 && err == nil {
			t.Fatal("nothing was read, and nothing is wrong")
		}
		source.InNamespace(documents, "default")
		lines := strings.Count(string(raw), "\n") + 1
		for _, d := range documents {
			_, _ = d.Into(scheme)
			if at := d.LineOf("metadata", "name"); d.Line < 1 || at < 1 || at > lines {
				t.Fatalf("lines %d and %d of %d", d.Line, at, lines)
			}
		}
	})
}

// What a revision of git has is read under the names that git has for it.
func TestReadRevision(t *testing.T) {
	const one, broken = "apiVersion: v1\nkind: ConfigMap\nmetadata:\n  name: one\n", "a: [\n"
	tree(t, map[string]string{"shop/a.yaml": one, "shop/deep/b.yaml": strings.ReplaceAll(one, "one", "two"), "bad/c.yaml": broken, "shop/new.yaml": one})
	git := func(args ...string) {
		cmd := exec.CommandContext(t.Context(), "git", append([]string{"-c", "user.name=a", "-c", "user.email=a@b.example"}, args...)...)
		if out, err := cmd.CombinedOutput(); err != nil {
			t.Fatalf("%v: %s", err, out)
		}
	}
	git("init", "-q", ".")
	git("add", "shop/a.yaml", "shop/deep", "bad")
	git("commit", "-qm", "before")
	t.Chdir("shop")
	if err := os.WriteFile("a.yaml", []byte(strings.ReplaceAll(one, "one", "now")), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct{ paths, want string }{
		{".", "HEAD:a.yaml:1 ConfigMap one\nHEAD:deep/b.yaml:1 ConfigMap two\n"},
		{"a.yaml new.yaml", "HEAD:a.yaml:1 ConfigMap one\n"},
		{"../shop/deep", "HEAD:../shop/deep/b.yaml:1 ConfigMap two\n"},
		{"new.yaml", ""},
		{"../bad", "HEAD:../bad/c.yaml:1: invalid YAML: did not find expected node content; fix the text there\n"},
	} {
		documents, err := source.ReadRevision(t.Context(), "HEAD", source.Options{}, strings.Fields(c.paths)...)
		if diff := cmp.Diff(c.want, shown(documents, err)); diff != "" {
			t.Errorf("%s (-want +got):\n%s", c.paths, diff)
		}
	}
	if _, err := source.ReadRevision(t.Context(), "--help", source.Options{}, "."); err == nil || !strings.Contains(err.Error(), "Not a valid object name") {
		t.Errorf("no revision: %v", err)
	}
}
