package docs_test

import (
	"bytes"
	"io"
	"os"
	"os/exec"
	"strings"
	"testing"

	"github.com/spillway-dev/spillway/internal/lab/controlplane"
	"github.com/spillway-dev/spillway/internal/lab/testenv"
)

// TestQuickStart types the quick start from its first line to its last, as a reader does: in
// one shell, on a cluster.
func TestQuickStart(t *testing.T) {
	assets, err := controlplane.Assets(t.Context(), io.Discard) // kubectl is among them
	if err != nil {
		t.Fatal(err)
	}
	var script strings.Builder
	for _, p := range pages(t) {
		for _, b := range p.blocks() {
			if p.name == "docs/quickstart.md" && b.class == "sh" && !strings.HasPrefix(b.note, notRun) {
				script.WriteString(strings.Join(b.body, "\n") + "\n")
			}
		}
	}
	cmd := exec.CommandContext(t.Context(), "bash", "-euxo", "pipefail", "-c", script.String())
	cmd.Dir = root
	cmd.Env = append(os.Environ(), "PATH="+programs(t)+":"+assets+":"+os.Getenv("PATH"), "KUBECONFIG="+testenv.Shared().Kubeconfig(), "COLUMNS=80",
		"SPILLWAY_METRICS_BIND_ADDRESS=0", "SPILLWAY_HEALTH_PROBE_BIND_ADDRESS=0") // other tests use the ports
	var out bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &out
	if err := cmd.Run(); err != nil {
		t.Fatalf("%v\n%s", err, &out)
	}
	for _, says := range []string{
		"ConfigMap web: LOG_LEVEL",
		"Deployment mailer is waiting: Secret smtp not found",
		"kubectl create secret generic smtp",
	} {
		if !strings.Contains(out.String(), says) {
			t.Errorf("it does not say %q:\n%s", says, &out)
		}
	}
}
