package docs_test

import (
	"encoding/json"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"sigs.k8s.io/yaml"

	"github.com/spillway-dev/spillway/internal/vocabulary"
)

// aboutFields are the codes of lint about one object alone: its fields, values, labels and
// annotations. What is missing beside it is not on the page.
var aboutFields = []string{"SPW101", "SPW201", "SPW901", "SPW902", "SPW903", "SPW904", "SPW905", "SPW906", "SPW907"}

// checkYAML is an error unless a block is YAML, its kinds have the fields that it sets, and
// its labels and annotations exist.
func (b block) checkYAML(t *testing.T) {
	t.Helper()
	text := strings.Join(b.body, "\n")
	for doc := range strings.SplitSeq(text, "\n---\n") {
		var value map[string]any
		if err := yaml.UnmarshalStrict([]byte(doc), &value); err != nil {
			t.Errorf("is no YAML: %v", err)
			continue
		}
		if value["kind"] == nil {
			checkKeys(t, value)
			continue
		}
		lintManifest(t, doc)
	}
}

// lintManifest is an error for what lint finds in one manifest.
func lintManifest(t *testing.T, doc string) {
	t.Helper()
	file := filepath.Join(t.TempDir(), "page.yaml")
	if err := os.WriteFile(file, []byte(doc), 0o600); err != nil {
		t.Fatal(err)
	}
	var findings []struct {
		Object  string `json:"object"`
		Code    string `json:"code"`
		Message string `json:"message"`
	}
	if err := json.Unmarshal([]byte(shell(t, "spillway lint --fail-on=never -o json "+file)), &findings); err != nil {
		t.Fatal(err)
	}
	for _, f := range findings {
		if slices.Contains(aboutFields, f.Code) {
			t.Errorf("%s: %s [%s]", f.Object, f.Message, f.Code)
		}
	}
}

// checkKeys is an error for a label or annotation of Spillway, in a part of a manifest, that
// does not exist.
func checkKeys(t *testing.T, part map[string]any) {
	t.Helper()
	for key, value := range part {
		if inner, ok := value.(map[string]any); ok {
			checkKeys(t, inner)
		}
		if strings.HasPrefix(key, "spillway.dev/") && !isKey(key) {
			t.Errorf("no label or annotation is named %s", key)
		}
	}
}

func isKey(name string) bool {
	return slices.ContainsFunc(vocabulary.Entries(), func(e vocabulary.Entry) bool { return slices.Contains(e.Names(), name) })
}
