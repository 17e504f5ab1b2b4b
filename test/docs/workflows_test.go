package docs_test

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

var pinned = regexp.MustCompile(`^[\w./-]+@[0-9a-f]{40} # v\d+\.\d+\.\d+$`)

// Actions are pinned by commit, with the version that dependabot replaces beside it; and a release
// restores nothing that other jobs have kept, and has no key that could be stolen.
func TestWorkflowsTrustNothingThatMoves(t *testing.T) {
	files, err := filepath.Glob("../../.github/workflows/*.yml")
	if err != nil || len(files) == 0 {
		t.Fatalf("%d workflows: %v", len(files), err)
	}
	for _, file := range files {
		raw, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		text := string(raw)
		if !strings.Contains(text, "\npermissions:\n  contents: read\n") {
			t.Errorf("%s: its token may do more than read by default", file)
		}
		for line := range strings.Lines(text) {
			if _, action, ok := strings.Cut(line, "uses: "); ok && !pinned.MatchString(strings.TrimSpace(action)) {
				t.Errorf("%s: %s is not pinned as OWNER/NAME@COMMIT # vX.Y.Z", file, strings.TrimSpace(action))
			}
		}
		if filepath.Base(file) != "release.yml" {
			continue
		}
		for _, refused := range []string{"actions/cache", "cache-dependency-path", "secrets."} {
			if strings.Contains(text, refused) {
				t.Errorf("%s has %s", file, refused)
			}
		}
		if !strings.Contains(text, "id-token: write") || !strings.Contains(text, "cache: false") {
			t.Errorf("%s: it signs with no identity, or restores the cache of modules", file)
		}
	}
}
