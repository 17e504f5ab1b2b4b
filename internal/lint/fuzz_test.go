package lint_test

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/spillway-dev/spillway/internal/kube"
	"github.com/spillway-dev/spillway/internal/lint"
	"github.com/spillway-dev/spillway/internal/lint/manifest"
	"github.com/spillway-dev/spillway/internal/lint/report"
	"github.com/spillway-dev/spillway/internal/source"
)

// FuzzLint looks at anything that can be read: it never panics, and every finding
// stands somewhere, is of a rule and says what to do.
func FuzzLint(f *testing.F) {
	files, err := filepath.Glob("testdata/SPW*/*.yaml")
	if err != nil || len(files) == 0 {
		f.Fatal(files, err)
	}
	for _, file := range files {
		raw, err := os.ReadFile(file)
		if err != nil {
			f.Fatal(err)
		}
		f.Add(string(raw))
	}
	scheme, err := kube.NewScheme()
	if err != nil {
		f.Fatal(err)
	}
	f.Fuzz(func(t *testing.T, text string) {
		documents, unread := source.Read(strings.NewReader(text), source.Stdin)
		findings, err := lint.Lint(documents, unread, manifest.Options{Scheme: scheme, Namespace: "default", Now: time.Unix(0, 0)})
		if err != nil {
			t.Fatal(err)
		}
		for _, found := range findings {
			if found.File == "" || found.Code == "" || found.Message == "" || found.Action == "" || found.Line < 0 {
				t.Fatalf("not whole: %+v", found)
			}
		}
		report.WriteText(&bytes.Buffer{}, findings, len(documents), whole)
	})
}

// BenchmarkLint looks at 5,000 objects: Deployments, each with a ConfigMap that it
// uses, one in ten of them with something to fix.
func BenchmarkLint(b *testing.B) {
	scheme, err := kube.NewScheme()
	if err != nil {
		b.Fatal(err)
	}
	var text strings.Builder
	for i := range 2500 {
		key := "a"
		if i%10 == 0 {
			key = "b"
		}
		fmt.Fprintf(&text, `---
apiVersion: v1
kind: ConfigMap
metadata: {name: app-%[1]d}
data: {a: "1"}
---
apiVersion: apps/v1
kind: Deployment
metadata: {name: web-%[1]d, annotations: {spillway.dev/update-on-config-change: "true"}}
spec:
  selector: {matchLabels: {app: web-%[1]d}}
  template:
    metadata: {labels: {app: web-%[1]d}}
    spec: {containers: [{name: web, image: web, env: [{name: A, valueFrom: {configMapKeyRef: {name: app-%[1]d, key: %[2]s}}}]}]}
`, i, key)
	}
	for b.Loop() {
		documents, unread := source.Read(strings.NewReader(text.String()), source.Stdin)
		findings, err := lint.Lint(documents, unread, manifest.Options{Scheme: scheme, Namespace: "default"})
		if err != nil || len(findings) != 250 {
			b.Fatal(len(findings), err)
		}
	}
}
