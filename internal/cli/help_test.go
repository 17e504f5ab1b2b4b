package cli

import (
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/spf13/cobra"

	"github.com/spillway-dev/spillway/internal/cli/command"
)

func noVariables(string) (string, bool) { return "", false }

// helped is what a command says of itself.
func helped(t *testing.T, args ...string) string {
	t.Helper()
	var b strings.Builder
	if code := Run(t.Context(), command.Environment{Args: append(args, "--help"), Out: &b, Err: &b, Lookup: noVariables, Now: time.Now}); code != 0 {
		t.Fatalf("%v: exit code %d: %s", args, code, b.String())
	}
	return b.String()
}

// Every command says what it does, gives an example, and says what its exit code means;
// in lines that any terminal can hold.
func TestEveryCommandHelps(t *testing.T) {
	root := newRoot(command.Environment{Args: []string{"spillway"}, Lookup: noVariables, Now: time.Now})
	each(root, func(cmd *cobra.Command) {
		path := strings.Fields(cmd.CommandPath())
		t.Run(strings.Join(path, " "), func(t *testing.T) {
			text := helped(t, path...)
			for line := range strings.SplitSeq(text, "\n") {
				if length := utf8.RuneCountInString(line); length > helpWidth {
					t.Errorf("%d columns: %s", length, line)
				}
				if strings.HasSuffix(line, " ") {
					t.Errorf("blanks at the end of %q", line)
				}
			}
			if cmd.Short == "" || strings.HasSuffix(cmd.Short, ".") {
				t.Errorf("its short help is %q", cmd.Short)
			}
			if !cmd.Runnable() || cmd.Name() == "help" {
				return
			}
			if !strings.Contains(text, "Examples:\n  spillway ") {
				t.Error("there is no example")
			}
			if !strings.Contains(text, "exit code") {
				t.Error("it says nothing of its exit code")
			}
		})
	})
}

// As a plugin it is called by another name.
func TestThePluginCallsItselfSo(t *testing.T) {
	text := helped(t, "/usr/local/bin/kubectl-spillway", "history")
	for _, want := range []string{"\n  kubectl spillway history KIND/NAME", "\n  kubectl spillway history instance/zookeeper -n shop"} {
		if !strings.Contains(text, want) {
			t.Errorf("%q is missing in:\n%s", want, text)
		}
	}
	if strings.Contains(text, "  spillway ") {
		t.Errorf("it is called by its other name in:\n%s", text)
	}
}
