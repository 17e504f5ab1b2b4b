package hub_test

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/spillway-dev/spillway/api/fleet/v1alpha1"
	spillway "github.com/spillway-dev/spillway/api/spillway/v1alpha1"
	"github.com/spillway-dev/spillway/internal/lab/testenv"
)

// The example of a rollout of one's own does what its first lines say.
func TestTheExampleOfAnExternalRollout(t *testing.T) {
	w := newWorld(t)
	w.manage()
	w.clusters("a", "b", "c")
	w.module("v1", everywhere+", strategy: External")
	w.then(func() error { return w.targets(1) })
	if said, err := w.example("a", "b", "c"); err != nil || strings.Count(said, " has succeeded at ") != 3 {
		t.Fatalf("%v: %s", err, said)
	}
	w.comes("a:v1 b:v1 c:v1")

	w.player.decree(v1alpha1.StateFailed, "v2")
	w.module("v2", everywhere+", strategy: External")
	w.then(func() error { return w.targets(2) })
	if said, err := w.example("a", "b", "c"); err == nil || !strings.Contains(said, "a has failed at ") || strings.Contains(said, "b has") {
		t.Errorf("%v: %s", err, said)
	}
	w.comes("a:v2! b:v1 c:v1")
}

// It assigns the bindings of the control plane as well, and the commit once it is known
// what the tag is, but not where the tag is meant to move.
func TestTheExampleOfAnExternalRolloutAssignsWhatTheRevisionSays(t *testing.T) {
	w := newWorld(t)
	w.manage()
	w.clusters("a", "b")
	w.player.tagged(map[string]string{"v1": commitOne})
	w.module("v1", everywhere+", strategy: External")
	w.then(func() error { return w.targets(1) })
	w.patch(&v1alpha1.Module{}, app, `{"spec":{"template":{"spec":{"controlPlaneBindings":[{"name":"REGION","value":"eu"}]}}}}`)
	w.then(func() error { return w.targets(2) })
	if said, err := w.example("a"); err != nil {
		t.Fatalf("%v: %s", err, said)
	}
	r := &spillway.ModuleRevision{}
	w.then(func() error {
		if err := w.get(r, w.status().TargetRevision); err != nil {
			return err
		}
		if r.Status.Resolved == "" {
			return errors.New("the tag is not resolved")
		}
		return nil
	})
	if said, err := w.example("b"); err != nil {
		t.Fatalf("%v: %s", err, said)
	}
	w.comes("a:v1 b:" + commitOne)
	b := &v1alpha1.ProxyAssemblage{}
	if err := w.get(b, "b"); err != nil || len(b.Spec.Assemblage.Syncs) != 1 || len(b.Spec.Assemblage.Syncs[0].ControlPlaneBindings) != 1 {
		t.Errorf("%+v %v", b.Spec.Assemblage.Syncs, err)
	}
}

// example runs the script with these clusters.
func (w *world) example(clusters ...string) (said string, err error) {
	w.t.Helper()
	args := append([]string{"../../../examples/external/rollout.sh", w.namespace, app}, clusters...)
	cmd := exec.CommandContext(w.t.Context(), "bash", args...)
	cmd.Env = append(os.Environ(), "KUBECONFIG="+testenv.Shared().Kubeconfig(),
		"PATH="+os.Getenv("KUBEBUILDER_ASSETS")+string(filepath.ListSeparator)+os.Getenv("PATH"))
	out, err := cmd.CombinedOutput()
	return string(out), err
}

// targets is nil once the module targets its n-th revision.
func (w *world) targets(n int) error {
	r := &spillway.ModuleRevision{}
	if err := w.get(r, w.status().TargetRevision); err != nil {
		return err
	}
	if r.Spec.Number != int64(n) {
		return fmt.Errorf("it targets revision %d", r.Spec.Number)
	}
	return nil
}
