package lint_test

import (
	"bytes"
	"flag"
	"os"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/spillway-dev/spillway/internal/config/reloader"
	"github.com/spillway-dev/spillway/internal/kube"
	"github.com/spillway-dev/spillway/internal/lint"
	"github.com/spillway-dev/spillway/internal/lint/manifest"
	"github.com/spillway-dev/spillway/internal/lint/report"
	"github.com/spillway-dev/spillway/internal/lint/rules"
	"github.com/spillway-dev/spillway/internal/source"
)

var update = flag.Bool("update", false, "write what is found as what is wanted")

// lintFile is what is found in a file or a directory, and in how many objects.
func lintFile(t *testing.T, path string) ([]report.Finding, int) {
	t.Helper()
	documents, _ := source.Read(nil, path)
	return lintWith(t, path, nil), len(documents)
}

// lintWith is what is found for a manager that may read the annotations of Reloader.
func lintWith(t *testing.T, path string, o *reloader.Options) []report.Finding {
	t.Helper()
	scheme, err := kube.NewScheme()
	if err != nil {
		t.Fatal(err)
	}
	documents, unread := source.Read(nil, path)
	now := time.Date(2026, 5, 4, 12, 0, 0, 0, time.UTC)
	findings, err := lint.Lint(documents, unread, manifest.Options{Scheme: scheme, Namespace: "default", Now: now, Reloader: o})
	if err != nil {
		t.Fatal(err)
	}
	return findings
}

// TestRules: each rule finds what it is for, and says so as the golden file has it;
// and it does not find what is in order, which no other rule finds either.
func TestRules(t *testing.T) {
	for _, rule := range rules.All() {
		t.Run(rule.Code, func(t *testing.T) {
			folder := filepath.Join("testdata", rule.Code)
			findings, objects := lintFile(t, filepath.Join(folder, "finds.yaml"))
			if !slices.ContainsFunc(findings, func(f report.Finding) bool { return f.Code == rule.Code && f.Level == rule.Level }) {
				t.Errorf("%s finds nothing", rule.Code)
			}
			var got bytes.Buffer
			report.WriteText(&got, findings, objects, whole)
			golden(t, filepath.Join(folder, "finds.txt"), got.String())
			findings, _ = lintFile(t, filepath.Join(folder, "fine.yaml"))
			for _, f := range findings {
				t.Errorf("%s: %s: %s", f.Place(), f.Code, f.Message)
			}
		})
	}
}

// whole leaves lines as they are.
func whole(text string, _ int) string { return text }

func golden(t *testing.T, file, got string) {
	t.Helper()
	if *update {
		if err := os.WriteFile(file, []byte(got), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(string(want), got); diff != "" {
		t.Errorf("%s (-want +got)\n%s", file, diff)
	}
}

// A manager that reads the annotations of Reloader leaves nothing to say of them but mistakes, and of what
// another annotation decides.
func TestReloaderReadByTheManager(t *testing.T) {
	t.Parallel()
	for folder, want := range map[string]string{"SPW112": "", "SPW111": "SPW111", "SPW122": "SPW122", "SPW123": "SPW123"} {
		findings := lintWith(t, filepath.Join("testdata", folder, "finds.yaml"), &reloader.Options{})
		for _, f := range findings {
			if f.Code != want {
				t.Errorf("%s: %s %s: %s", folder, f.Place(), f.Code, f.Message)
			}
		}
		if (len(findings) > 0) != (want != "") {
			t.Errorf("%s: %d findings", folder, len(findings))
		}
	}
}
