//go:build linux

package cli_test

import (
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/spf13/cobra"

	"github.com/spillway-dev/spillway/internal/cli"
	"github.com/spillway-dev/spillway/internal/lab/testenv"
)

// plainCommands are what is typed in a terminal: every command that prints something for people,
// in the world of the mistakes. A watch and the dashboard are interrupted once they have
// shown something.
var plainCommands = []string{
	"check", "check --upgrade", "diff deployment/web", "events -A", "explain deployment/web", "explain rolloutgroup/ingester", "explain instance/app",
	"explain module/shop", "fleet history shop", "fleet pin shop --cluster none", "fleet rollback shop", "fleet status", "fleet unpin shop --cluster none",
	"fleet approve shop", "fleet clusters", "fleet import none", "fleet register none", "fleet rotate none", "fleet unregister none", "history deployment/web", "history rolloutgroup/ingester", "install --export -o name", "lint web.yaml", "package create greeter",
	"package diff app greeter", "package install greeter hello --dry-run=client", "package list parameters greeter", "package list plans greeter", "package list tasks greeter", "package list maintainers greeter", "package permissions greeter", "package render greeter",
	"package uninstall app --dry-run=client", "package update app -p A=b --dry-run=client", "package upgrade app greeter --dry-run=client", "package verify greeter",
	"pause rolloutgroup/ingester", "resume rolloutgroup/ingester", "retry rolloutgroup/ingester", "approve rolloutgroup/ingester", "refuse rolloutgroup/ingester", "plan abandon app", "plan history app", "plan retry app",
	"plan status app", "plan status app --wait --timeout 2s", "plan trigger app deploy --wait --timeout 2s", "rollback deployment/web", "rollback instance/app --dry-run=client", "simulate -f web.yaml",
	"simulate -f web.yaml --change next.yaml", "prove -f web.yaml --change next.yaml", "replay none", "upgrade --shadow", "status", "status -o wide", "uninstall -n none", "version", "watch", "demo --stop=none",
	"forecast", "forecast --if pause=none", "dashboard --port 0", "package get instances", "package search none", "package repo list", "package repo remove none", "package repo context none",
	"package repo add none http://127.0.0.1:1", "package repo index none", "package push none oci://127.0.0.1:1/none:1", "package modernize none",
	"package diagnostics none", "package new greeter", "package add maintainer none Ann ann@example.com", "package add parameter none A",
	"migrate --from kudo", "migrate do --from kudo", "migrate undo", "migrate rewrite web.yaml", "package add plan none p --step a/b=c", "package add task none t --kind Apply --resource a.yaml",
}

// notTyped are the commands that print nothing for people, with why.
var notTyped = map[string]string{
	"manager": "a log", "dashboard serve": "a log", "completion bash": "a script", "completion fish": "a script", "completion kubectl": "a script",
	"completion powershell": "a script", "completion zsh": "a script",
}

var (
	escapes = regexp.MustCompile("\x1b")
	colors  = regexp.MustCompile("\x1b\\[[0-9;]*[1-9][0-9;]*m")
	foreign = regexp.MustCompile("[^\x00-\x7f]+")
)

// terminals are what a terminal says of itself, and what must not be written to it then.
var terminals = map[string][]*regexp.Regexp{
	"TERM=dumb": {escapes, foreign}, "LC_ALL=C": {escapes, foreign}, "NO_COLOR=1": {colors},
}

// Whatever is typed, a terminal without colors is written none, and one that has no more than
// ASCII is written nothing else.
func TestPlainTerminals(t *testing.T) {
	namespace := makeMistakenWorld(t)
	if err := os.CopyFS("greeter", os.DirFS(filepath.Join(sources(t), "examples", "packages", "greeter"))); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile("next.yaml", []byte(nextWeb), 0o600); err != nil {
		t.Fatal(err)
	}
	program, err := exec.LookPath("spillway") // the test binary, by the name of the command
	if err != nil {
		t.Fatal(err)
	}
	for i, line := range plainCommands {
		t.Run(line, func(t *testing.T) {
			for j := range testenv.Size(1, len(terminals)) {
				variable := slices.Sorted(maps.Keys(terminals))[(i+j)%len(terminals)]
				args := strings.Fields(line)
				if commandOf(t, line).Flags().Lookup("namespace") != nil && !strings.Contains(line, " -n ") && !strings.Contains(line, "-A") {
					args = append(args, "-n", namespace)
				}
				text := printedIn(t, variable, program, args)
				for _, never := range terminals[variable] {
					if found := never.FindString(text); found != "" {
						t.Errorf("%s: %q is written: %q", variable, found, text)
					}
				}
			}
		})
	}
}

// nextWeb is the workload of web.yaml with another image.
const nextWeb = `apiVersion: apps/v1
kind: Deployment
metadata: {name: web}
spec:
  selector: {matchLabels: {app: web}}
  template:
    metadata: {labels: {app: web}}
    spec: {containers: [{name: c, image: registry.local/c:2}]}
`

// printedIn is what a command writes to a terminal. What does not end is interrupted once
// something was written.
func printedIn(t *testing.T, variable, program string, args []string) string {
	t.Helper()
	term := inTerminalWith(t, []string{variable}, 100, 30, program, args...)
	switch args[0] {
	case "watch":
		term.shows(t, "ingester")
		term.press(t, "q\x03")
	case "dashboard":
		term.shows(t, "Ctrl+C")
		term.press(t, "\x03")
	}
	select {
	case <-term.done:
	case <-time.After(patience):
		t.Fatalf("%s %v does not end: %q", variable, args, term.screen)
	}
	return term.screen.String()
}

// sources is the root of the repository.
func sources(t *testing.T) string {
	t.Helper()
	root, err := filepath.Abs(filepath.Join(startedIn, "..", ".."))
	if err != nil {
		t.Fatal(err)
	}
	return root
}

// startedIn is the folder of this package; tests change to others.
var startedIn, _ = os.Getwd()

// commandOf is the command of a line.
func commandOf(t *testing.T, line string) *cobra.Command {
	t.Helper()
	cmd, _, err := cli.Commands().Find(strings.Fields(line))
	if err != nil {
		t.Fatal(err)
	}
	return cmd
}

// No command is left out above, and help has no other characters than ASCII.
func TestPlainCommandsAreAll(t *testing.T) {
	typed := map[string]bool{}
	for _, line := range plainCommands {
		typed[commandOf(t, line).CommandPath()] = true
	}
	var visit func(cmd *cobra.Command)
	visit = func(cmd *cobra.Command) {
		if name := strings.TrimPrefix(cmd.CommandPath(), "spillway "); cmd.Runnable() && !typed[cmd.CommandPath()] && notTyped[name] == "" && name != "help" {
			t.Errorf("%s is typed by no test of plain terminals", cmd.CommandPath())
		}
		if found := foreign.FindString(cli.Help(cmd)); found != "" {
			t.Errorf("the help of %s has %q", cmd.CommandPath(), found)
		}
		for _, beneath := range cmd.Commands() {
			visit(beneath)
		}
	}
	visit(cli.Commands())
}
