package offline

import (
	"bytes"
	"path/filepath"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/spillway-dev/spillway/internal/cli/display"
	"github.com/spillway-dev/spillway/internal/kube"
	"github.com/spillway-dev/spillway/internal/lint"
	"github.com/spillway-dev/spillway/internal/lint/manifest"
	"github.com/spillway-dev/spillway/internal/lint/report"
	"github.com/spillway-dev/spillway/internal/lint/rules"
	"github.com/spillway-dev/spillway/internal/source"
)

// On a terminal no line is longer than it that has a place to break, whatever is found.
func TestFindingsFitATerminal(t *testing.T) {
	scheme, err := kube.NewScheme()
	if err != nil {
		t.Fatal(err)
	}
	files, err := filepath.Glob("../../lint/testdata/*/finds.yaml")
	if err != nil || len(files) != len(rules.All()) {
		t.Fatalf("%d files with mistakes, %v", len(files), err)
	}
	for _, file := range files {
		documents, unread := source.Read(nil, file)
		findings, err := lint.Lint(documents, unread, manifest.Options{Scheme: scheme, Namespace: "default", Now: time.Unix(1e9, 0)})
		if err != nil || len(findings) == 0 {
			t.Fatalf("%s: %d findings, %v", file, len(findings), err)
		}
		var out bytes.Buffer
		report.WriteText(&out, findings, len(documents), display.Style{Width: 80}.Fold)
		for line := range strings.Lines(out.String()) {
			if line = strings.TrimSuffix(line, "\n"); utf8.RuneCountInString(line) > 80 && strings.Contains(strings.TrimSpace(line), " ") {
				t.Errorf("%d columns: %s", utf8.RuneCountInString(line), line)
			}
		}
	}
}
