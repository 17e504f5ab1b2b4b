package explain_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/spillway-dev/spillway/internal/cli/act"
	"github.com/spillway-dev/spillway/internal/describe"
	"github.com/spillway-dev/spillway/internal/describe/explain"
)

// What a tenant writes where a name belongs runs nothing in the shell of who copies a command, and
// writes no file elsewhere: as the name of a cluster, a namespace, a kind or any other word.
func TestCommandsRunNothingOfATenant(t *testing.T) {
	for _, hostile := range []string{"$(touch owned);x", "`touch owned`", "x; touch owned", "x\ntouch owned", "'; touch owned; '", "../owned", "x > owned"} {
		dir := t.TempDir()
		work := filepath.Join(dir, "work")
		if err := os.Mkdir(work, 0o700); err != nil {
			t.Fatal(err)
		}
		ref := describe.Ref{APIVersion: hostile + "/v1", Kind: hostile, Namespace: hostile, Name: hostile}
		for _, command := range append(explain.CommandsAbout(ref),
			act.Module{Ref: ref}.Command("explain", "--cluster", hostile),
			"spillway "+strings.Join(act.Words(act.Request{Ref: ref, Verb: act.Pause, To: hostile, Cluster: hostile}), " "),
		) {
			run := exec.CommandContext(t.Context(), "sh", "-c", "kubectl() { :; }; spillway() { :; }; "+command)
			run.Dir = work
			if out, err := run.CombinedOutput(); err != nil {
				t.Errorf("%s: %v: %s", command, err, out)
			}
			found, err := filepath.Glob(filepath.Join(dir, "*owned*"))
			here, err2 := filepath.Glob(filepath.Join(work, "owned*"))
			if len(found)+len(here) > 0 || err != nil || err2 != nil {
				t.Fatalf("%s: there is %v %v", command, found, here)
			}
		}
	}
}
