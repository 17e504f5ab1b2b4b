package cli

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/spillway-dev/spillway/internal/cli/command"
)

// listing are the commands that list objects.
var listing = []string{"status", "events", "watch", "fleet status"}

// noConnection are the commands that ask no cluster, or choose it in another way: each with why.
var noConnection = map[string]string{
	"completion bash": "it prints a script", "completion fish": "it prints a script", "completion kubectl": "it prints a script",
	"completion powershell": "it prints a script", "completion zsh": "it prints a script",
	"demo":    "it starts a control plane, or writes to the cluster of a kubeconfig",
	"manager": "it runs as its own user; who runs it elsewhere gives a kubeconfig",
	"lint":    "it reads files", "version": "it is about the program",
	"package create": "it reads files", "package list maintainers": "it reads files", "package list parameters": "it reads files", "package list plans": "it reads files", "package list tasks": "it reads files", "package permissions": "it reads files",
	"package render": "it reads files", "package verify": "it reads files", "package modernize": "it edits files", "package new": "it writes files",
	"package add maintainer": "it edits files", "package add parameter": "it edits files", "package add plan": "it edits files",
	"package add task": "it edits files", "package push": "it asks a registry", "package search": "it asks repositories",
	"package repo add": "it edits a file", "package repo context": "it edits a file", "package repo index": "it writes a file",
	"package repo list": "it reads a file", "package repo remove": "it edits a file",
	"migrate rewrite": "it edits files", "replay": "it reads files",
}

// noForms are the commands that have no other form than the one that they print.
var noForms = map[string]string{
	"completion bash": "a script", "completion fish": "a script", "completion kubectl": "a script", "completion powershell": "a script",
	"completion zsh": "a script", "dashboard": "pages", "dashboard serve": "pages", "demo": "a story", "manager": "--log-format chooses",
	"package create": "the path of the archive", "package permissions": "YAML", "package render": "YAML",
	"package diff": "a difference", "package modernize": "lines of files", "package new": "a path",
	"package add maintainer": "a line", "package add parameter": "a line", "package add plan": "a line", "package add task": "a line",
	"fleet clusters": "a table", "fleet import": "YAML", "fleet register": "lines of what was done", "fleet rotate": "lines of what was done", "fleet unregister": "lines of what was done",
	"package push": "a digest", "package search": "a table", "package diagnostics": "the path of an archive", "package repo add": "a line",
	"package repo context": "a line", "package repo index": "a path", "package repo remove": "a line",
	"migrate do": "lines of what was done", "migrate undo": "lines of what was done", "migrate rewrite": "lines of files",
}

// commandsWithNames are all commands that can be run, by what is typed after the program's name.
func commandsWithNames() map[string]*cobra.Command {
	root := newRoot(command.Environment{Args: []string{"spillway"}, Lookup: noVariables, Now: time.Now})
	all := map[string]*cobra.Command{}
	each(root, func(cmd *cobra.Command) {
		if cmd.Runnable() && cmd.Name() != "help" {
			all[strings.TrimPrefix(cmd.CommandPath(), "spillway ")] = cmd
		}
	})
	return all
}

// Every command has the flags that a user of kubectl expects of it, or there is a reason.
func TestEveryCommandHasTheStandardFlags(t *testing.T) {
	all := commandsWithNames()
	for name, cmd := range all {
		var want []string
		if noConnection[name] == "" {
			want = append(want, "kubeconfig", "context", "namespace", "as", "as-group", "as-uid", "token", "server", "request-timeout",
				"certificate-authority", "client-certificate", "client-key", "insecure-skip-tls-verify", "tls-server-name")
		}
		if slices.Contains(listing, name) {
			want = append(want, "selector", "field-selector", "sort-by", "all-namespaces")
		}
		if noForms[name] == "" {
			want = append(want, "output")
		}
		for _, flag := range want {
			if cmd.Flags().Lookup(flag) == nil {
				t.Errorf("spillway %s has no --%s", name, flag)
			}
		}
		for letter, flag := range map[string]string{"n": "namespace", "l": "selector", "o": "output", "A": "all-namespaces", "f": "filename", "w": "watch"} {
			if f := cmd.Flags().ShorthandLookup(letter); f != nil && f.Name != flag && !slices.Contains([]string{"package repo index -w", "package repo add -f"}, name+" -"+letter) { // as in KUDO
				t.Errorf("spillway %s: -%s is --%s, and elsewhere --%s", name, letter, f.Name, flag)
			}
		}
	}
	for _, exceptions := range []map[string]string{noConnection, noForms} {
		for name := range exceptions {
			if all[name] == nil {
				t.Errorf("%q is an exception, and no command", name)
			}
		}
	}
}

// installing are the commands that change objects of the cluster, and take no reason for it.
var installing = []string{"install", "uninstall", "package install", "package uninstall", "package update", "package upgrade"}

// Every command that changes objects of the cluster can be tried before, and says which dry
// runs there are in the same words.
func TestEveryChangeHasADryRun(t *testing.T) {
	for name, cmd := range commandsWithNames() {
		flags := cmd.Flags()
		changes := flags.Lookup("reason") != nil || slices.Contains(installing, name)
		if dry := flags.Lookup("dry-run"); changes && (dry == nil || !strings.Contains(dry.Usage, "client") || !strings.Contains(dry.Usage, "server")) {
			t.Errorf("spillway %s has no --dry-run with client and server", name)
		}
	}
}

// What a flag means is said, in the way in which all are said.
func TestEveryFlagIsDescribed(t *testing.T) {
	for name, cmd := range commandsWithNames() {
		flags := cmd.Flags()
		flags.VisitAll(func(f *pflag.Flag) {
			if f.Hidden {
				return
			}
			if f.Usage == "" || strings.HasSuffix(f.Usage, ".") || strings.ToUpper(f.Usage[:1]) == f.Usage[:1] && !isProperName(f.Usage) {
				t.Errorf("spillway %s --%s: %q", name, f.Name, f.Usage)
			}
		})
	}
}

// isProperName is true of a text that begins with a word that is written so everywhere.
func isProperName(text string) bool {
	word, _, _ := strings.Cut(text, " ")
	return slices.Contains([]string{"DNS", "UID", "Pods", "`", `"client"`}, strings.Trim(word, ",")) || strings.HasPrefix(text, `"`)
}

// What can be typed as an argument is completed: an object, a name, a file, or one of some
// words. Only the name of what does not exist yet is not.
func TestEveryArgumentIsCompleted(t *testing.T) {
	known := []string{"KIND/NAME", "instance/NAME", "MODULE", "CLUSTER", "KUSTOMIZATION", "INSTANCE", "PLAN", "PACKAGE", "REPOSITORY", "PATH", "DIR", "maintainers|parameters|plans|tasks", "instances|operators|operatorversions|all"}
	for name, cmd := range commandsWithNames() {
		if cmd.ValidArgsFunction == nil {
			t.Errorf("spillway %s: nothing completes its arguments", name)
		}
		for _, word := range strings.Fields(cmd.Use)[1:] {
			if strings.HasPrefix(strings.TrimLeft(word, "["), "-") {
				break // flags, which follow the arguments
			}
			if word = strings.Trim(word, "[]."); !slices.Contains(known, word) && !isFree(name, word) {
				t.Errorf("spillway %s: it is not known how %s is completed", name, word)
			}
		}
	}
}

// isFree is true of an argument that is the name of something new, or a text.
func isFree(name, word string) bool {
	command, _, _ := strings.Cut(strings.TrimPrefix(name, "package "), " ")
	return slices.Contains([]string{"install", "new", "add", "repo", "search", "push"}, command) &&
		slices.Contains([]string{"NAME", "EMAIL", "URL", "TEXT", "oci://REGISTRY/NAME:TAG"}, word)
}

// Flags that name something of the cluster, or one of a few words, complete it.
func TestFlagsAreCompleted(t *testing.T) {
	completed := []string{"output", "namespace", "context", "rings", "to", "from", "cluster", "stage", "gate", "dry-run", "sort-by", "log-level", "log-format", "suspend-by", "fail-on", "webhook-cert-source"}
	for name, cmd := range commandsWithNames() {
		for _, flag := range completed {
			f := cmd.Flags().Lookup(flag)
			if f == nil || f.Value.Type() == "bool" {
				continue
			}
			if _, ok := cmd.GetFlagCompletionFunc(flag); !ok {
				t.Errorf("spillway %s --%s is not completed", name, flag)
			}
		}
	}
}

// Every command is on the page of the commands, and has a man page.
func TestEveryCommandIsDocumented(t *testing.T) {
	docs := filepath.Join("..", "..", "docs")
	page, err := os.ReadFile(filepath.Join(docs, "commands.md"))
	if err != nil {
		t.Fatal(err)
	}
	for name, cmd := range commandsWithNames() {
		if !strings.Contains(string(page), "\n## spillway "+name+"\n") {
			t.Errorf("docs/commands.md has no section for spillway %s", name)
		}
		if !strings.Contains(string(page), "): "+cmd.Short+"\n") {
			t.Errorf("docs/commands.md does not say of spillway %s: %s", name, cmd.Short)
		}
		if _, err := os.Stat(filepath.Join(docs, "man", "spillway-"+strings.ReplaceAll(name, " ", "-")+".1")); err != nil {
			t.Error(err)
		}
	}
}
