//go:build upgrade

package upgrade_test

import (
	"context"
	"errors"
	"os/exec"
	"path/filepath"
	"regexp"
	"testing"
	"time"

	"github.com/spillway-dev/spillway/internal/lab/testenv"
)

// servingAt is what the registry says once it listens.
var servingAt = regexp.MustCompile(`serving on port (\d+)`)

// newRegistry starts a registry on loopback, and returns its host with the port. It keeps what
// it has in memory.
func newRegistry(t *testing.T) string {
	t.Helper()
	program, said := filepath.Join(t.TempDir(), "registry"), &testenv.Buffer{}
	compile(t, filepath.Join(root, "hack", "release"), program, "github.com/google/go-containerregistry/cmd/registry")
	cmd := exec.Command(program, "-port=0")
	cmd.Stderr = said
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = cmd.Process.Kill()
		_ = cmd.Wait()
	})
	var port string
	testenv.Eventually(t, func(context.Context) error {
		m := servingAt.FindStringSubmatch(said.String())
		if m == nil {
			return errors.New("the registry does not serve")
		}
		port = m[1]
		return nil
	})
	return "localhost:" + port
}

// The way of a user: a release is made, pushed and verified; the chart is pulled from the
// registry, and installed until its Deployment is ready; the image, unpacked into an empty root,
// is its manager; then a change of config rolls, once, in order.
func TestFromARegistry(t *testing.T) {
	w := newWorld(t)
	h, host := newHelm(t, testenv.Shared().Kubeconfig(), w.system), newRegistry(t)
	now := released(t, host)

	began := time.Now()
	h.must(t, "install", "spillway", "oci://"+host+"/charts/spillway", "--version=0.1.0", "--plain-http", "--create-namespace", "--take-ownership", "--force-conflicts",
		"--set=webhooks.enabled=false,packageKinds=true,args={--max-rolling=1}", "--wait", "--timeout=3m")
	t.Logf("helm install from a registry, until the Deployment is ready: %s", time.Since(began).Round(time.Millisecond))
	manager := w.manage(now)
	w.create()
	rolls := w.rolls()
	w.change(1)
	w.settled(1)
	w.rolledOnce(rolls)
	manager.stop()
	w.removed(h, now)
}
