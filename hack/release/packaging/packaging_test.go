package packaging_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/spillway-dev/spillway/hack/release/packaging"
	"github.com/spillway-dev/spillway/hack/release/program"
	"github.com/spillway-dev/spillway/hack/release/source"
)

// What krew's index asks of a manifest, its own checker asks of ours. It downloads nothing.
func TestKrewTakesTheManifest(t *testing.T) {
	t.Parallel()
	s := source.Source{Version: "v0.1.0"}
	var archives []packaging.Archive
	for _, p := range []program.Platform{{OS: "linux", Arch: "amd64"}, {OS: "darwin", Arch: "arm64"}, {OS: "windows", Arch: "amd64"}} {
		archives = append(archives, packaging.Archive{Platform: p, Name: packaging.ArchiveName(s, p), SHA256: strings.Repeat("0", 64)})
	}
	manifest, err := packaging.Krew(s, archives)
	if err != nil {
		t.Fatal(err)
	}
	file := filepath.Join(t.TempDir(), "spillway.yaml")
	if err := os.WriteFile(file, manifest, 0o600); err != nil {
		t.Fatal(err)
	}
	said, err := exec.CommandContext(t.Context(), "go", "run", "sigs.k8s.io/krew/cmd/validate-krew-manifest@v0.4.3", "-skip-install", "-manifest", file).CombinedOutput()
	if err != nil {
		t.Errorf("%v: %s", err, said)
	}
}
