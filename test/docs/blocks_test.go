package docs_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/spf13/cobra"

	"github.com/spillway-dev/spillway/internal/cli"
)

// notRun is what a comment above a block begins with that is not run although it could be.
// The reason follows.
const notRun = "not run:"

// TestBlocks holds every code block of every page to what its class promises; the
// package's documentation lists the classes.
func TestBlocks(t *testing.T) {
	for _, p := range pages(t) {
		for _, b := range p.blocks() {
			t.Run(b.String(), func(t *testing.T) { b.check(t) })
		}
	}
}

// mostNotRun is how many blocks may say that they are not run.
const mostNotRun = 14

// TestEveryBlockIsRunOrSaysWhy counts what becomes of blocks.
func TestEveryBlockIsRunOrSaysWhy(t *testing.T) {
	number, not := map[string]int{}, 0
	for _, p := range pages(t) {
		for _, b := range p.blocks() {
			number[b.fate()]++
			reason, ok := strings.CutPrefix(b.note, notRun)
			if !ok {
				continue
			}
			not++
			t.Logf("%s is not run:%s", b, reason)
			if len(reason) < 10 || !slices.Contains([]string{"sh", "console", "yaml"}, b.class) {
				t.Errorf("%s: %q is no reason, or the block is not one to run", b, reason)
			}
		}
	}
	t.Logf("blocks: %v", number)
	if not > mostNotRun {
		t.Errorf("%d blocks are not run, more than %d", not, mostNotRun)
	}
}

// fate is what becomes of a block.
func (b block) fate() string {
	switch {
	case strings.HasPrefix(b.note, notRun):
		return "not run"
	case typed[b.page] != nil && b.class == "sh":
		return "run with all of the page"
	case b.onCluster():
		return "run on the cluster"
	case b.class == "sh" || b.class == "console":
		return "run without a cluster"
	case b.class == "yaml":
		return "applied by dry run"
	case b.class == "json":
		return "read"
	default:
		return "shown"
	}
}

func (b block) check(t *testing.T) {
	t.Helper()
	switch b.class {
	case "sh":
		for _, c := range commandsOf(strings.Join(b.body, "\n")) {
			checkCommand(t, c)
		}
		b.runLines(t)
	case "console":
		for _, s := range b.sessions() {
			for _, c := range commandsOf(s.line) {
				checkCommand(t, c)
			}
			b.runSession(t, s)
		}
	case "yaml":
		b.checkYAML(t)
	case "json":
		if !json.Valid([]byte(strings.Join(b.body, "\n"))) {
			t.Error("is no JSON")
		}
	case "text":
	default:
		t.Errorf("class %q: name what the block is: sh, console, yaml, json, or text for what is shown and not typed", b.class)
	}
}

// checkCommand is an error unless a command exists, with its arguments and flags.
func checkCommand(t *testing.T, c invocation) {
	t.Helper()
	words := c.words
	if words[0] == "kubectl" && len(words) > 1 && words[1] == "spillway" {
		words = words[1:]
	}
	switch words[0] {
	case "spillway", "bin/spillway":
		if err := parses(words[1:]); err != nil {
			t.Errorf("%s: %v", strings.Join(c.words, " "), err)
		}
	case "make":
		checkTarget(t, words[1:])
	}
}

// parses is an error unless the program accepts the arguments. Nothing is run.
func parses(args []string) error {
	top := cli.Commands()
	cmd, rest, err := top.Find(args)
	if err != nil {
		return fmt.Errorf("find the command: %w", err)
	}
	if err := cmd.ParseFlags(rest); err != nil {
		return fmt.Errorf("read the flags: %w", err)
	}
	positional := cmd.Flags().Args()
	if dash := cmd.ArgsLenAtDash(); cmd.Name() == "install" && dash >= 0 {
		if err := parses(append([]string{"manager"}, positional[dash:]...)); err != nil {
			return err
		}
		positional = positional[:dash]
	}
	if !cmd.Runnable() {
		return nil // it prints its help
	}
	return validArgs(cmd, positional)
}

func validArgs(cmd *cobra.Command, args []string) error {
	if err := cmd.ValidateArgs(args); err != nil {
		return fmt.Errorf("read the arguments: %w", err)
	}
	return nil
}

// checkTarget is an error unless the Makefile has the targets.
func checkTarget(t *testing.T, args []string) {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(root, "Makefile"))
	if err != nil {
		t.Fatal(err)
	}
	for _, arg := range args {
		if !strings.Contains(arg, "=") && !strings.HasPrefix(arg, "-") && !strings.Contains(string(text), "\n"+arg+":") {
			t.Errorf("make %s: the Makefile has no such target", arg)
		}
	}
}

// offline is true of a command that needs no cluster: the page promises that it does what it
// says wherever the repository is.
func (c invocation) offline() bool {
	if slices.Contains([]string{"sed", "cat", "grep", "head", "echo"}, c.words[0]) && c.file == "" {
		return true
	}
	if c.words[0] != "spillway" || len(c.words) < 2 || c.file != "" {
		return false
	}
	switch c.words[1] {
	case "lint", "version", "completion":
		return true
	case "package":
		return len(c.words) > 2 && slices.Contains([]string{"verify", "list", "render", "permissions"}, c.words[2]) // create writes a file
	case "simulate":
		return !slices.Contains(c.words, "--cluster")
	case "install":
		return slices.Contains(c.words, "--export")
	default:
		return slices.Contains(c.words, "--help")
	}
}

// isRun is true if all commands of lines are offline, and the page does not say otherwise.
func (b block) isRun(lines string) bool {
	commands := commandsOf(lines)
	return len(commands) > 0 && !strings.HasPrefix(b.note, notRun) && !b.prepared && typed[b.page] == nil &&
		!slices.ContainsFunc(commands, func(c invocation) bool { return !c.offline() })
}

// runLines runs the lines of a block that need no cluster, each as it stands.
func (b block) runLines(t *testing.T) {
	t.Helper()
	for line := range strings.SplitSeq(strings.ReplaceAll(strings.Join(b.body, "\n"), "\\\n", " "), "\n") {
		if b.isRun(line) {
			shell(t, line)
		}
	}
}

// runSession runs a command that needs no cluster, and compares what it prints.
func (b block) runSession(t *testing.T, s session) {
	t.Helper()
	if !b.isRun(s.line) {
		return
	}
	got := strings.Split(strings.TrimSuffix(shell(t, s.line), "\n"), "\n")
	if len(s.output) > 0 && !slices.Equal(got, s.output) {
		t.Errorf("$ %s\nprints:\n%s\nthe page has:\n%s", s.line, strings.Join(got, "\n"), strings.Join(s.output, "\n"))
	}
}

// shell runs a line in the root of the repository.
func shell(t *testing.T, line string) string {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), "bash", "-euo", "pipefail", "-c", line)
	cmd.Dir = root
	cmd.Env = append(os.Environ(), "PATH="+programs(t)+":"+os.Getenv("PATH"), "KUBECONFIG=/nowhere", "COLUMNS=80")
	var stdout, stderr bytes.Buffer
	cmd.Stdout, cmd.Stderr = &stdout, &stderr
	if err := cmd.Run(); err != nil {
		t.Errorf("$ %s: %v\n%s%s", line, err, &stdout, &stderr)
	}
	return stdout.String()
}

// programs is a folder with this test as the program spillway.
func programs(t *testing.T) string {
	t.Helper()
	dir := t.TempDir()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink(self, filepath.Join(dir, "spillway")); err != nil {
		t.Fatal(err)
	}
	return dir
}
