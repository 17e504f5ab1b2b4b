package source_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/spillway-dev/spillway/hack/release/source"
)

func TestCheckVersion(t *testing.T) {
	for version, ok := range map[string]bool{
		"v0.1.0": true, "v1.2.3-rc.1": true, "0.1.0": false, "v1": false, "v1.2": false, "latest": false, "": false, "v1.0.0+build": false, "v01.0.0": false,
	} {
		if err := source.CheckVersion(version); (err == nil) != ok || err != nil && !strings.Contains(err.Error(), "semantic version") {
			t.Errorf("%q: %v", version, err)
		}
	}
}

func TestRead(t *testing.T) {
	root := t.TempDir()
	git := func(args ...string) {
		t.Helper()
		cmd := exec.Command("git", append([]string{"-C", root, "-c", "user.name=a", "-c", "user.email=a@example.test"}, args...)...)
		cmd.Env = append(os.Environ(), "GIT_COMMITTER_DATE=2026-11-22T10:00:00+02:00")
		if out, err := cmd.CombinedOutput(); err != nil {
			t.Fatalf("%v: %s", err, out)
		}
	}
	git("init", "-q")
	if _, err := source.Read(t.Context(), root, "v0.1.0"); err == nil {
		t.Error("a repository without a commit was read")
	}
	file := filepath.Join(root, "file")
	if err := os.WriteFile(file, []byte("x"), 0o600); err != nil {
		t.Fatal(err)
	}
	git("add", "file")
	git("commit", "-q", "-m", "first")
	s, err := source.Read(t.Context(), root, "v0.1.0")
	if err != nil {
		t.Fatal(err)
	}
	if s.Date.Format("15:04 MST") != "08:00 UTC" || len(s.Commit) != 40 {
		t.Errorf("source %+v", s)
	}
	if err := os.WriteFile(file, []byte("y"), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := source.Read(t.Context(), root, "v0.1.0"); err == nil || !strings.Contains(err.Error(), `"M file"`) {
		t.Errorf("a changed tree: %v", err)
	}
}
