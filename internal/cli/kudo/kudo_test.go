package kudo_test

import (
	"bytes"
	"strings"
	"testing"
	"time"

	"github.com/spillway-dev/spillway/internal/cli"
	"github.com/spillway-dev/spillway/internal/cli/command"
	"github.com/spillway-dev/spillway/internal/vocabulary"
)

// Each command accepts all of its flags, in both forms in which scripts write values. The command
// test, which runs kuttl, has those of kuttl.
func TestEveryCommandAndFlagOfKUDOIsThere(t *testing.T) {
	t.Parallel()
	for _, c := range vocabulary.KUDOCommands() {
		t.Run(c.Words, func(t *testing.T) {
			t.Parallel()
			want := "kubectl kudo " + strings.ReplaceAll(c.Words, " X", "")
			for _, form := range []string{"=", " "} {
				args := strings.Fields(c.Words + " " + strings.ReplaceAll(c.Flags+" "+vocabulary.KUDOGlobal, "=", form))
				if code, out := run(t, args...); code != 0 || !strings.Contains(out, "Usage:\n  "+want+" ") {
					t.Errorf("kubectl kudo %s: exit code %d, want the help of %s:\n%s", strings.Join(args, " "), code, want, out)
				}
			}
		})
	}
}

func run(t *testing.T, args ...string) (code int, out string) {
	t.Helper()
	var b bytes.Buffer
	nothing := func(string) (string, bool) { return "", false }
	code = cli.Run(t.Context(), command.Environment{Args: append([]string{"kubectl-kudo"}, args...), Out: &b, Err: &b, Lookup: nothing, Now: time.Now})
	return code, b.String()
}
