package rollout_test

import (
	"go/parser"
	"go/token"
	"os"
	"strconv"
	"strings"
	"testing"
)

// TestStandardLibraryOnly keeps the engine free of Kubernetes and of everything
// else: what it imports has no dot in the first element of its path.
func TestStandardLibraryOnly(t *testing.T) {
	files, err := os.ReadDir(".")
	if err != nil {
		t.Fatal(err)
	}

	for _, f := range files {
		if strings.HasSuffix(f.Name(), ".go") && !strings.HasSuffix(f.Name(), "_test.go") {
			checkImports(t, f.Name())
		}
	}
}

// forbidden are packages of the standard library that a pure function has no use for.
var forbidden = map[string]bool{"os": true, "io": true, "net": true, "net/http": true, "context": true, "sync": true, "math/rand": true}

func checkImports(t *testing.T, file string) {
	t.Helper()

	parsed, err := parser.ParseFile(token.NewFileSet(), file, nil, parser.ImportsOnly)
	if err != nil {
		t.Fatal(err)
	}

	for _, i := range parsed.Imports {
		path, err := strconv.Unquote(i.Path.Value)
		if err != nil {
			t.Fatal(err)
		}

		first, _, _ := strings.Cut(path, "/")
		if strings.Contains(first, ".") || forbidden[path] {
			t.Errorf("%s imports %q", file, path)
		}
	}
}

// TestNoClock: the time comes with what was observed, never from a clock.
func TestNoClock(t *testing.T) {
	files, err := os.ReadDir(".")
	if err != nil {
		t.Fatal(err)
	}

	for _, f := range files {
		if !strings.HasSuffix(f.Name(), ".go") || strings.HasSuffix(f.Name(), "_test.go") {
			continue
		}

		source, err := os.ReadFile(f.Name())
		if err != nil {
			t.Fatal(err)
		}

		for _, clock := range []string{"time.Now(", "time.Since(", "time.Until(", "time.After("} {
			if strings.Contains(string(source), clock) {
				t.Errorf("%s reads a clock: %s)", f.Name(), clock)
			}
		}
	}
}
