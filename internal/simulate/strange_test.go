package simulate_test

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/runtime"

	"github.com/spillway-dev/spillway/internal/kube"
	"github.com/spillway-dev/spillway/internal/simulate"
	"github.com/spillway-dev/spillway/internal/source"
)

// TestAnyFieldMayBeAnything puts unexpected values in the place of each field
// of manifests, one after the other. Whatever the rings and the models make of it,
// nothing panics, also where it was not found to be wrong before.
func TestAnyFieldMayBeAnything(t *testing.T) {
	t.Parallel()
	scheme, err := kube.NewScheme()
	if err != nil {
		t.Fatal(err)
	}
	documents, err := source.Read(nil, "testdata/strange.yaml")
	if err != nil {
		t.Fatal(err)
	}
	tried := 0
	for i := range documents {
		given := []any{documents[i].Object.Object}
		if i > 0 && strings.HasSuffix(documents[i].Object.GetKind(), "Instance") || documents[i].Object.GetKind() == "Module" {
			given = append(given, documents[i-1].Object.Object) // which it needs
		}
		everywhere(given, func() {
			tried++
			raw, err := json.Marshal(map[string]any{"apiVersion": "v1", "kind": "List", "items": given})
			if err != nil {
				t.Fatal(err)
			}
			simulated(t, scheme, string(raw))
		})
	}
	if tried < 500 {
		t.Errorf("only %d were tried", tried)
	}
}

// strange are the values.
func strange() []any {
	return []any{nil, "-1%", int64(-1), []any{nil}}
}

// everywhere calls try with each value in each place.
func everywhere(value any, try func()) {
	put := func(set func(any), was any) {
		for _, s := range strange() {
			set(s)
			try()
		}
		set(was)
		everywhere(was, try)
	}
	switch v := value.(type) {
	case []any:
		for i := range v {
			put(func(s any) { v[i] = s }, v[i])
		}
	case map[string]any:
		for key, was := range v {
			put(func(s any) { v[key] = s }, was)
		}
	}
}

// simulated installs what stands in a text, whether that was found to be wrong or not.
func simulated(t *testing.T, scheme *runtime.Scheme, text string) {
	t.Helper()
	defer func() {
		if r := recover(); r != nil {
			t.Fatal(text, fmt.Sprint(r))
		}
	}()
	documents, _ := source.Read(strings.NewReader(text), source.Stdin)
	_ = simulate.Check(documents, scheme)
	o := benchOptions()
	o.Within = time.Hour
	if _, err := simulate.Run(t.Context(), nil, objects(documents), o); err != nil {
		_ = simulate.Locate(err, documents).Error()
	}
}

// large is a number of Pods that no cluster has.
var large = regexp.MustCompile(`[0-9_]{4}|[0-9.][eE]|0[xX]`)

// FuzzRun installs anything that can be read: it never panics.
func FuzzRun(f *testing.F) {
	raw, err := os.ReadFile(filepath.Join("testdata", "strange.yaml"))
	if err != nil {
		f.Fatal(err)
	}
	for one := range strings.SplitSeq(string(raw), "---\n") {
		f.Add(one)
	}
	scheme, err := kube.NewScheme()
	if err != nil {
		f.Fatal(err)
	}
	f.Fuzz(func(t *testing.T, text string) {
		if large.MatchString(text) {
			return
		}
		simulated(t, scheme, text)
	})
}
