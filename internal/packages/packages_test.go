package packages_test

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/spillway-dev/spillway/api/kudo/v1beta1"
	"github.com/spillway-dev/spillway/internal/packages"
)

const operator = "apiVersion: kudo.dev/v1beta1\nname: app\noperatorVersion: 0.1.0\nplans: {deploy: {phases: []}}\n"

// entry is a file of an archive.
type entry struct {
	name, text string
	kind       byte
}

// archive writes a .tgz, and returns where.
func archive(t testing.TB, entries ...entry) string {
	t.Helper()
	var b bytes.Buffer
	z := gzip.NewWriter(&b)
	w := tar.NewWriter(z)
	for _, e := range entries {
		if e.kind == 0 {
			e.kind = tar.TypeReg
		}
		h := &tar.Header{Typeflag: e.kind, Name: e.name, Linkname: "/etc/passwd", Size: int64(len(e.text)), Mode: 0o644}
		if err := w.WriteHeader(h); err != nil {
			t.Fatal(err)
		}
		if _, err := w.Write([]byte(e.text)); err != nil {
			t.Fatal(err)
		}
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	if err := z.Close(); err != nil {
		t.Fatal(err)
	}
	return write(t, "app.tgz", b.Bytes())
}

func write(t testing.TB, name string, content []byte) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), name)
	if err := os.WriteFile(path, content, 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

// An archive may come from anywhere: what is hostile is refused, with what is wrong with it.
func TestHostileArchives(t *testing.T) {
	many := make([]entry, packages.MostFiles+1)
	for i := range many {
		many[i] = entry{name: fmt.Sprintf("templates/t%d.yaml", i)}
	}
	for name, test := range map[string]struct {
		entries []entry
		want    string
	}{
		"a path that leaves it":          {[]entry{{name: "../operator.yaml", text: operator}}, `has a file with the path "../operator.yaml", which leaves the package`},
		"a path that leaves it later":    {[]entry{{name: "templates/../../x", text: operator}}, "which leaves the package"},
		"an absolute path":               {[]entry{{name: "/operator.yaml", text: operator}}, "which leaves the package"},
		"a path of Windows":              {[]entry{{name: `templates\..\..\x`, text: operator}}, "which leaves the package"},
		"a link":                         {[]entry{{name: "operator.yaml", kind: tar.TypeSymlink}}, `has "operator.yaml", which is a link or a device; pack files only`},
		"a hard link":                    {[]entry{{name: "operator.yaml", kind: tar.TypeLink}}, "which is a link"},
		"a device":                       {[]entry{{name: "operator.yaml", kind: tar.TypeBlock}}, "which is a link or a device"},
		"too many files":                 {many, "has more than 1000 files; remove what is no template"},
		"too large a file":               {[]entry{{name: "templates/a", text: strings.Repeat("x", packages.MostBytes+1)}}, "has more than 4 MiB of files"},
		"too large files":                {[]entry{{name: "templates/a", text: strings.Repeat("x", packages.MostBytes/2)}, {name: "templates/b", text: strings.Repeat("x", packages.MostBytes/2+1)}}, "has more than 4 MiB of files"},
		"a bomb of what does not belong": {[]entry{{name: "dir", kind: tar.TypeDir}, {name: ".hidden", text: strings.Repeat("\x00", 16*packages.MostBytes)}, {name: "operator.yaml", text: operator}}, "has more than 64 MiB"},
		"a file twice":                   {[]entry{{name: "operator.yaml", text: operator}, {name: "./operator.yaml", text: operator}}, `has the file "operator.yaml" twice`},
		"no package":                     {[]entry{{name: "README.md", text: "x"}}, "has no operator.yaml; pack a package with: spillway package create DIR"},
		"two packages":                   {[]entry{{name: "a/operator.yaml", text: operator}, {name: "b/operator.yaml", text: operator}}, "has 2 packages, want one: a/operator.yaml, b/operator.yaml; pack the folder of one package"},
		"an alias bomb": {[]entry{{name: "operator.yaml", text: operator}, {name: "params.yaml", text: "a: &a [x,x,x,x,x,x,x,x,x]\n" + aliases()}},
			"params.yaml: "},
	} {
		t.Run(name, func(t *testing.T) {
			if _, err := packages.Load(archive(t, test.entries...)); err == nil || !strings.Contains(err.Error(), test.want) {
				t.Errorf("it says %v, want %q", err, test.want)
			}
		})
	}
}

// aliases doubles a list again and again.
func aliases() string {
	var b strings.Builder
	for c := 'b'; c < 'k'; c++ {
		p := string(c - 1)
		fmt.Fprintf(&b, "%c: &%c [*%s,*%s,*%s,*%s,*%s,*%s,*%s,*%s,*%s]\n", c, c, p, p, p, p, p, p, p, p, p)
	}
	return b.String()
}

// An archive may be packed with its folder, and with what systems add.
func TestAnArchiveIsTheSameAsItsFolder(t *testing.T) {
	packed := archive(t,
		entry{name: "app/", kind: tar.TypeDir}, entry{name: "app/operator.yaml", text: operator}, entry{name: "app/._operator.yaml", text: "\x00"},
		entry{name: "app/docs/README.md", text: "x"}, entry{name: "app/templates/sub/a.yaml", text: "kind: A"}, entry{name: "app/templates/operator.yaml", text: "kind: Deployment"})
	p, err := packages.Load(packed)
	if err != nil {
		t.Fatal(err)
	}
	if len(p.Templates) != 2 || p.Templates["sub/a.yaml"] != "kind: A" {
		t.Errorf("the templates are %v", p.Templates)
	}
	var first, second bytes.Buffer
	if err := p.Archive(&first); err != nil {
		t.Fatal(err)
	}
	again, err := packages.Load(write(t, "again.tgz", first.Bytes()))
	if err != nil {
		t.Fatal(err)
	}
	if err := again.Archive(&second); err != nil {
		t.Fatal(err)
	}
	if !bytes.Equal(first.Bytes(), second.Bytes()) {
		t.Error("packed again it is another archive")
	}
}

// Values in params.yaml have types; in an OperatorVersion they are text. What says nothing is
// required.
func TestParameters(t *testing.T) {
	params := `parameters:
- {name: TEXT, default: "3"}
- {name: NUMBER, type: integer, default: 12345678901234567890, required: false}
- {name: FLAG, type: boolean, default: false, immutable: true}
- {name: LIST, type: array, default: [a, 1]}
- {name: MAP, type: map, default: {a: {b: c}}}
- {name: NONE, default: null, trigger: deploy}
- {name: EMPTY, default: ""}
- {name: ENUM, enum: [a, 2, true]}
`
	p, err := packages.Load(archive(t, entry{name: "operator.yaml", text: operator + "appVersion: 3.4.5\n"}, entry{name: "params.yaml", text: params}))
	if err != nil {
		t.Fatal(err)
	}
	v, err := p.VersionObject()
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, o := range v.Spec.Parameters {
		value := "none"
		if o.Default != nil {
			value = fmt.Sprintf("%q", *o.Default)
		}
		got = append(got, fmt.Sprintf("%s %s %t %t %s", o.Name, value, o.IsRequired(), o.IsImmutable(), o.Trigger))
	}
	want := `TEXT "3" true false 
NUMBER "12345678901234567890" false false 
FLAG "false" true true 
LIST "- a\n- 1\n" true false 
MAP "a:\n  b: c\n" true false 
NONE none true false deploy
EMPTY "" true false 
ENUM none true false `
	if text := strings.Join(got, "\n"); text != want {
		t.Errorf("the parameters are\n%s\nwant\n%s", text, want)
	}
	if enum := v.Spec.Parameters[7].Enum; fmt.Sprint(*enum) != "[a 2 true]" {
		t.Errorf("the enum is %v", *enum)
	}
	if v.Name != "app-3.4.5-0.1.0" || v.Spec.Operator.Name != "app" {
		t.Errorf("it is %s of %s", v.Name, v.Spec.Operator.Name)
	}
}

// Values may be written in other YAML, as KUDO writes them; texts and all else are compared as
// they are.
func TestSameContent(t *testing.T) {
	text := func(s string) *string { return &s }
	with := func(kind v1beta1.ParameterType, value string) *v1beta1.OperatorVersionSpec {
		return &v1beta1.OperatorVersionSpec{Parameters: []v1beta1.Parameter{{Name: "A", Type: kind, Default: text(value), Enum: &[]string{value}}}}
	}
	for _, test := range []struct {
		kind v1beta1.ParameterType
		a, b string
		same bool
	}{
		{v1beta1.ArrayType, `["a", {"b": 1}]`, "- a\n- b: 1\n", true},
		{v1beta1.ArrayType, "[a, b]", "[b, a]", false},
		{v1beta1.MapType, "b: 1\na: 2", `{"a":2,"b":1}`, true},
		{v1beta1.NumberType, "1e+07", "10000000", true},
		{v1beta1.StringType, "1e+07", "10000000", false},
		{"", "[a]", "- a\n", false},
		{v1beta1.MapType, "{", "{", true},
	} {
		a, b := with(test.kind, test.a), with(test.kind, test.b)
		if got := packages.SameContent(a, b); got != test.same {
			t.Errorf("%s %q and %q are the same: %t", test.kind, test.a, test.b, got)
		}
		if *a.Parameters[0].Default != test.a || (*a.Parameters[0].Enum)[0] != test.a {
			t.Errorf("%q was changed", test.a)
		}
	}
}

// The examples are packages without mistakes, and a folder with a manifest named
// operator.yaml is none.
func TestIsPackage(t *testing.T) {
	found, err := filepath.Glob("../../examples/packages/*")
	if err != nil || len(found) == 0 {
		t.Fatalf("no examples: %v", err)
	}
	for _, path := range found {
		if _, err := packages.Load(path); err != nil || !packages.IsPackage(path) {
			t.Errorf("%s is no package: %v", path, err)
		}
	}
	manifest := write(t, "operator.yaml", []byte("apiVersion: apps/v1\nkind: Deployment\noperatorVersion: x\n"))
	if packages.IsPackage(filepath.Dir(manifest)) {
		t.Error("a manifest is taken for a package")
	}
	for name, test := range map[string]struct {
		files map[string]string
		want  bool
	}{
		"no YAML":             {map[string]string{"operator.yaml": operator + "tasks: [\n"}, true},
		"no YAML, a manifest": {map[string]string{"operator.yaml": "kind: A\nspec: [\n"}, false},
		"no operator.yaml":    {map[string]string{"params.yaml": "parameters: []\n", "templates/a.yaml": ""}, true},
		"no templates":        {map[string]string{"params.yaml": "parameters: []\n"}, false},
		"other parameters":    {map[string]string{"params.yaml": "a: b\n", "templates/a.yaml": ""}, false},
	} {
		dir := t.TempDir()
		for file, text := range test.files {
			if err := errors.Join(os.MkdirAll(filepath.Dir(filepath.Join(dir, file)), 0o700), os.WriteFile(filepath.Join(dir, file), []byte(text), 0o600)); err != nil {
				t.Fatal(err)
			}
		}
		if got := packages.IsPackage(dir); got != test.want {
			t.Errorf("%s: a package is found: %v", name, got)
		}
	}
}

// A package of before KUDO 0.9 is refused with what to change.
func TestFormerFormat(t *testing.T) {
	for _, text := range []string{
		"name: a\nversion: 0.1.0\nplans: {deploy: {}}\n",
		"name: a\noperatorVersion: 0.1.0\ntasks: {deploy: {resources: [a.yaml]}}\n",
	} {
		_, err := packages.Load(filepath.Dir(write(t, "operator.yaml", []byte(text))))
		if err == nil || !strings.Contains(err.Error(), "operator.yaml: has the format of KUDO before 0.9; rename version to operatorVersion; tasks must be a list") {
			t.Errorf("%q: %v", text, err)
		}
	}
}

func FuzzLoad(f *testing.F) {
	for _, path := range []string{archive(f, entry{name: "operator.yaml", text: operator}), archive(f, entry{name: "a/operator.yaml", text: operator}, entry{name: "a/params.yaml", text: "parameters: [{name: A, default: {a: 1}}]"})} {
		raw, err := os.ReadFile(path)
		if err != nil {
			f.Fatal(err)
		}
		f.Add(raw)
	}
	f.Fuzz(func(t *testing.T, raw []byte) {
		p, err := packages.Load(write(t, "fuzz.tgz", raw))
		if err != nil {
			return
		}
		if documents, err := p.Documents(); err == nil && len(documents) != 2 {
			t.Errorf("%d documents", len(documents))
		}
	})
}

// The name of a parameter that YAML reads as a boolean is refused, with its line.
func TestUnquotedNames(t *testing.T) {
	load := func(operator, params string) error {
		_, err := packages.Load(archive(t, entry{name: "operator.yaml", text: operator}, entry{name: "params.yaml", text: params}))
		return err
	}
	toggle := operator + "tasks:\n- name: on\n  kind: Toggle\n  spec:\n    parameter: "
	for name, err := range map[string]error{
		`params.yaml:3: parameter N: YAML reads the word as a boolean`:     load(operator, "parameters:\n- name: A\n- name: N\n"),
		`params.yaml:2: parameter yes: YAML reads the word as a boolean`:   load(operator, "parameters:\n- &a {default: 1, name: yes}\n- *a\n"),
		`operator.yaml:9: parameter Off: YAML reads the word as a boolean`: load(toggle+"Off\n", ""),
		`line 2: parameter on: YAML reads the word as a boolean`:           func() error { _, err := packages.Values([]byte("a: 1\non: 2\n")); return err }(),
	} {
		if err == nil || !strings.Contains(err.Error(), name) || !strings.Contains(err.Error(), `write it in quotes: "`) {
			t.Errorf("%v; want %s", err, name)
		}
	}
	if err := load(toggle+"\"Off\"\n", "parameters: [{name: 'N'}, {name: \"yes\"}, {name: true}, {name: \"false\"}, {name: NO_X}]\n"); err != nil {
		t.Error(err)
	}
	if values, err := packages.Values([]byte("'on': no\ntrue: x\n")); err != nil || values["on"] != "false" || values["true"] != "x" {
		t.Errorf("%v, %v", values, err)
	}
}
