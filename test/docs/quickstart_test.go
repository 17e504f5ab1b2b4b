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

// typed are the pages whose lines belong together, with what they print.
var typed = map[string][]string{
	"docs/quickstart.md": {
		"ConfigMap web: LOG_LEVEL",
		"Deployment mailer is waiting: Secret smtp not found",
		"kubectl create secret generic smtp",
	},
	"docs/tutorial-zones.md": {
		"zone     store-zone-c  Complete",
		"rolloutgroup/store paused",
		"the database moves",
		"next   spillway resume rolloutgroup/store",
		"rolloutgroup/store store-zone-a-0 is updated: r1 → r2",
	},
	"docs/tutorial-fleet.md": {
		"5 objects checked, no problems found",
		"1.      +0s  fleet  module/shop eu-1 is assigned v1.4.0 → v1.5.0",
		"2.   +10m0s  fleet  module/shop eu-1 is assigned v1.5.0 → v1.4.0",
		"the other clusters never had it",
		"canary is waiting: gate approve is pending",
		"4. +1h1m30s  fleet  module/shop",
	},
	"docs/first-package.md": {
		"2 objects checked, no problems found",
		"parameter COLOR added to",
		"instance/door: plan update would run (COLOR)",
		"plan update COMPLETE",
		"plan upgrade COMPLETE",
		"instance/door deleted",
	},
}

// TestPagesThatAreTyped types pages from their first line to their last, as a reader does: in
// one shell, on a cluster.
func TestPagesThatAreTyped(t *testing.T) {
	for page, says := range typed {
		t.Run(page, func(t *testing.T) { typePage(t, page, says) })
	}
}

func typePage(t *testing.T, page string, says []string) {
	t.Helper()
	assets, err := controlplane.Assets(t.Context(), io.Discard) // kubectl is among them
	if err != nil {
		t.Fatal(err)
	}
	var script strings.Builder
	for _, p := range pages(t) {
		for _, b := range p.blocks() {
			if p.name == page && b.class == "sh" && !strings.HasPrefix(b.note, notRun) {
				script.WriteString(strings.Join(b.body, "\n") + "\n")
			}
		}
	}
	cmd := exec.CommandContext(t.Context(), "bash", "-euxo", "pipefail", "-c", script.String())
	cmd.Dir = root
	cmd.Env = append(os.Environ(), "PATH="+programs(t)+":"+assets+":"+os.Getenv("PATH"), "KUBECONFIG="+testenv.Shared().Kubeconfig(), "COLUMNS=80",
		"TMPDIR="+t.TempDir(), "SPILLWAY_METRICS_BIND_ADDRESS=0", "SPILLWAY_HEALTH_PROBE_BIND_ADDRESS=0") // other tests use the ports
	var out bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &out
	if err := cmd.Run(); err != nil {
		t.Fatalf("%v\n%s", err, &out)
	}
	for _, text := range says {
		if !strings.Contains(out.String(), text) {
			t.Errorf("it does not say %q:\n%s", text, &out)
		}
	}
}
