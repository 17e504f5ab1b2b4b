package testenv_test

import (
	"os"
	"os/exec"
	"strings"
	"testing"

	"github.com/spillway-dev/spillway/internal/lab/controlplane"
	"github.com/spillway-dev/spillway/internal/lab/testenv"
)

func TestMain(m *testing.M) { testenv.Main(m, testenv.Options{}) }

// A process whose tests use no control plane starts none, and builds none: here there
// is none that it could start.
func TestControlPlaneStartsOnFirstUse(t *testing.T) {
	if out, err := runWithoutAssets(t, "TestPure"); err != nil {
		t.Errorf("a pure test needs a control plane: %v\n%s", err, out)
	}
	if out, err := runWithoutAssets(t, "TestNamespace"); err == nil || !strings.Contains(out, "start the control plane") {
		t.Errorf("a test that uses the control plane did not start it: %v\n%s", err, out)
	}
}

// runWithoutAssets runs a test of this package in a process of its own that cannot
// start a control plane.
func runWithoutAssets(t *testing.T, test string) (output string, err error) {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), os.Args[0], "-test.run", "^"+test+"$", "-test.count", "1")
	cmd.Env = append(os.Environ(), "KUBEBUILDER_ASSETS="+t.TempDir(), "SPILLWAY_TEST_KUBECONFIG=", controlplane.SharedVariable+"=")
	out, err := cmd.CombinedOutput()
	return string(out), err
}

func TestPure(*testing.T) {}

func TestNamespace(t *testing.T) {
	if first, second := testenv.Namespace(t), testenv.Namespace(t); first == second {
		t.Error("two namespaces have one name")
	}
}
