package lint_test

import (
	"encoding/json"
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/runtime"

	"github.com/spillway-dev/spillway/internal/kube"
	"github.com/spillway-dev/spillway/internal/lint"
	"github.com/spillway-dev/spillway/internal/lint/manifest"
	"github.com/spillway-dev/spillway/internal/source"
)

// TestAnyFieldMayBeAnything puts values that nobody expects in the place of each
// field of the manifests that the rules find something in, one after the other.
// Whatever the rings' own code makes of it, nothing panics.
func TestAnyFieldMayBeAnything(t *testing.T) {
	scheme, err := kube.NewScheme()
	if err != nil {
		t.Fatal(err)
	}
	files, err := filepath.Glob("testdata/SPW*/finds.yaml")
	if err != nil || len(files) == 0 {
		t.Fatal(files, err)
	}
	tried := 0
	for _, file := range files {
		documents, _ := source.Read(nil, file)
		objects := make([]any, len(documents))
		for i := range documents {
			objects[i] = documents[i].Object.Object
		}
		for few := range slices.Chunk(objects, 6) { // what belongs together stands together
			everywhere(few, func() {
				tried++
				lintObjects(t, scheme, file, few)
			})
		}
	}
	if tried < 5_000 {
		t.Errorf("only %d were tried", tried)
	}
}

// strange are the values.
func strange() []any {
	return []any{nil, "-1%", int64(-1), []any{nil}}
}

// everywhere calls try with each value in each place.
func everywhere(value any, try func()) {
	switch v := value.(type) {
	case []any:
		for i := range v {
			was := v[i]
			for _, s := range strange() {
				v[i] = s
				try()
			}
			v[i] = was
			everywhere(was, try)
		}
	case map[string]any:
		for key, was := range v {
			for _, s := range strange() {
				v[key] = s
				try()
			}
			v[key] = was
			everywhere(was, try)
		}
	}
}

func lintObjects(t *testing.T, scheme *runtime.Scheme, file string, objects []any) {
	t.Helper()
	raw, err := json.Marshal(map[string]any{"apiVersion": "v1", "kind": "List", "items": objects})
	if err != nil {
		t.Fatal(err)
	}
	defer func() {
		if r := recover(); r != nil {
			t.Fatal(file, string(raw), fmt.Sprint(r))
		}
	}()
	documents, unread := source.Read(strings.NewReader(string(raw)), source.Stdin)
	if _, err := lint.Lint(documents, unread, manifest.Options{Scheme: scheme, Namespace: "default", Now: time.Unix(0, 0)}); err != nil {
		t.Fatal(err)
	}
}
