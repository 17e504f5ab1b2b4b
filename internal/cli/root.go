// Package cli is the command line: the manager and the commands of the kubectl
// plugin.
//
// An error is printed once, in one line, with what is wrong and how to fix it;
// the exit code is then 1, unless the command says otherwise in its help.
package cli

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/go-logr/logr"
	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
	"k8s.io/klog/v2"
	"sigs.k8s.io/controller-runtime/pkg/log"

	"github.com/spillway-dev/spillway/internal/cli/act"
	"github.com/spillway-dev/spillway/internal/cli/check"
	"github.com/spillway-dev/spillway/internal/cli/command"
	"github.com/spillway-dev/spillway/internal/cli/dashboard"
	"github.com/spillway-dev/spillway/internal/cli/display"
	"github.com/spillway-dev/spillway/internal/cli/fleet"
	"github.com/spillway-dev/spillway/internal/cli/kudo"
	"github.com/spillway-dev/spillway/internal/cli/lifecycle"
	"github.com/spillway-dev/spillway/internal/cli/migrate"
	"github.com/spillway-dev/spillway/internal/cli/offline"
	"github.com/spillway-dev/spillway/internal/cli/ops"
	"github.com/spillway-dev/spillway/internal/cli/show"
	"github.com/spillway-dev/spillway/internal/cli/watch"
	"github.com/spillway-dev/spillway/internal/nearest"
)

// pluginName is the name of the link by which kubectl finds the plugin.
const pluginName = "kubectl-spillway"

// Run runs the command in args and returns the exit code.
func Run(ctx context.Context, env command.Environment) int {
	if display.IsASCII(env.Lookup) {
		env.Out, env.Err = display.ASCII(env.Out), display.ASCII(env.Err)
	}
	root, words := newRoot(env), func(text string) string { return text }
	if filepath.Base(env.Args[0]) == kudo.PluginName {
		words = kudo.Words
		env.KUDO, env.Out, env.Err = true, display.Replacing(env.Out, words), display.Replacing(env.Err, words)
		root = newKUDO(env)
	}
	root.SetArgs(env.Args[1:])
	root.SetOut(env.Out)
	root.SetErr(env.Err)
	err := unknownCommand(root, env.Args[1:])
	if err == nil {
		err = root.ExecuteContext(ctx)
	}
	if err != nil {
		coded := command.ExitError{Code: 1}
		_ = errors.As(err, &coded)
		if !coded.Said {
			_, _ = io.WriteString(env.Err, errorText(display.StyleOf(env.Err, env.Lookup), errors.New(words(command.PlainError(err).Error()))))
		}
		return coded.Code
	}
	return 0
}

// newKUDO is the command line as KUDO has it, on the commands of this program.
func newKUDO(env command.Environment) *cobra.Command {
	root := kudo.New(env, func(ctx context.Context, out io.Writer, args ...string) error {
		mine := env
		mine.Args, mine.Out = append([]string{"spillway"}, args...), out
		root := newRoot(mine)
		root.SetArgs(args)
		root.SetOut(out)
		root.SetErr(env.Err)
		return root.ExecuteContext(ctx)
	})
	root.SetFlagErrorFunc(command.FlagError)
	each(root, func(cmd *cobra.Command) { cmd.Long, cmd.Example = kudo.Words(cmd.Long), kudo.Words(cmd.Example) })
	finish(root, env)
	return root
}

// unknownCommand is an error if a word that stands where a command must be is none.
func unknownCommand(root *cobra.Command, args []string) error {
	root.InitDefaultHelpCmd()
	if len(args) > 1 && args[0] == "help" {
		args = args[1:]
	}
	group, rest, _ := root.Find(args)
	if group == nil || group.Runnable() || len(rest) == 0 || strings.HasPrefix(rest[0], "-") || strings.HasPrefix(rest[0], "__") {
		return nil
	}
	var known []string
	for _, cmd := range group.Commands() {
		known = append(known, cmd.Name())
	}
	help := fmt.Sprintf("(see %s --help)", group.CommandPath())
	if near := cmp.Or(ofRollout(rest, known), otherWord(rest[0], known), nearest.Meant(rest[0], known)); near != "" {
		return fmt.Errorf("unknown command: %s %s; did you mean %s? %s", group.CommandPath(), typedAs(rest), near, help)
	}
	return fmt.Errorf("unknown command: %s %s %s", group.CommandPath(), typedAs(rest), help)
}

// errorText says what went wrong: in one line, unless the error has more or it is a
// terminal on which that would not fit.
func errorText(s display.Style, err error) string {
	const lead = "error: "
	var text strings.Builder
	for line := range strings.Lines(lead + err.Error()) {
		text.WriteString(s.Fold(strings.TrimSuffix(line, "\n"), len(lead)) + "\n")
	}
	return text.String()
}

func newRoot(env command.Environment) *cobra.Command {
	use := "spillway"
	if filepath.Base(env.Args[0]) == pluginName {
		use = "kubectl spillway"
	}
	root := &cobra.Command{
		Use:   "spillway",
		Short: "Controlled releases for Kubernetes",
		Long: "Spillway rolls out four kinds of changes in a safe order, and says why each one\n" +
			"waits: a changed ConfigMap or Secret, the Pod template of StatefulSets in several\n" +
			"zones, the plans of an application, the revision of a fleet of clusters.",
		Annotations:   map[string]string{cobra.CommandDisplayNameAnnotation: use},
		Version:       command.CurrentVersion(),
		SilenceErrors: true,
		SilenceUsage:  true,
		PersistentPreRunE: func(cmd *cobra.Command, _ []string) error {
			if cmd.Name() != "manager" { // of what libraries log, an error says what matters
				log.SetLogger(logr.Discard())
				klog.SetLogger(logr.Discard())
			}
			return command.FromEnvironment(cmd.Flags(), env.Lookup)
		},
	}
	root.SetVersionTemplate(ops.VersionLine())
	root.SetFlagErrorFunc(command.FlagError)
	root.SetGlobalNormalizationFunc(func(_ *pflag.FlagSet, name string) pflag.NormalizedName {
		if name == "ring" { // what who names one ring types
			name = "rings"
		}
		return pflag.NormalizedName(name)
	})
	root.AddCommand(ops.NewManager(env), ops.NewInstall(env), ops.NewUninstall(env), check.New(env, func() *pflag.FlagSet { return ops.NewManager(env).Flags() }), show.NewExplain(env), show.NewStatus(env), lifecycle.NewRollback(env), lifecycle.NewRevisionDiff(env), lifecycle.NewPlan(env), fleet.New(env), offline.NewLint(env), offline.NewSimulate(env), offline.NewProve(env), offline.NewReplay(env), offline.NewUpgrade(env), offline.NewPackage(env), ops.NewDemo(env), ops.NewVersion(), migrate.New(env))
	root.AddCommand(act.Commands(env)...)
	root.AddCommand(show.NewHistory(env), show.NewEvents(env), show.NewForecast(env), watch.New(env, Run), dashboard.New(env))
	if packaged, _, err := root.Find([]string{"package"}); err == nil {
		packaged.AddCommand(lifecycle.Commands(env)...)
		packaged.AddCommand(offline.PackageCommands(env)...)
	}
	finish(root, env)
	return root
}

// helpWidth is how wide help texts are, also where the terminal is wider.
const helpWidth = 80

// UsualExitCode is said of commands that say nothing else of their exit code.
const UsualExitCode = "The exit code is 0, or 1 with an error that says what is wrong."

// finish makes all commands alike: how they help, what they say of their exit code, and
// how they complete what a person types.
func finish(root *cobra.Command, env command.Environment) {
	root.SetHelpFunc(func(cmd *cobra.Command, _ []string) { writeHelp(cmd.OutOrStdout(), cmd) })
	root.SetUsageFunc(func(cmd *cobra.Command) error {
		writeUsage(cmd.OutOrStderr(), cmd)
		return nil
	})
	addCompletion(root)
	c := completer{lookup: env.Lookup}
	each(root, func(cmd *cobra.Command) {
		sayExitCode(cmd)
		cmd.Example = strings.ReplaceAll(cmd.Example, "  spillway ", "  "+root.DisplayName()+" ")
		c.complete(cmd)
	})
}

// Help is what a command says of itself.
func Help(cmd *cobra.Command) string {
	cmd.InitDefaultHelpFlag()
	var b strings.Builder
	writeHelp(&b, cmd)
	return b.String()
}

// each visits all commands that help tells of.
func each(cmd *cobra.Command, visit func(*cobra.Command)) {
	visit(cmd)
	for _, beneath := range cmd.Commands() {
		if !beneath.Hidden {
			each(beneath, visit)
		}
	}
}

func sayExitCode(cmd *cobra.Command) {
	if !cmd.Runnable() || strings.Contains(cmd.Long, "exit code") {
		return
	}
	if cmd.Long == "" {
		cmd.Long = cmd.Short + "."
	}
	cmd.Long = strings.TrimSpace(cmd.Long) + "\n\n" + UsualExitCode
}

func writeHelp(w io.Writer, cmd *cobra.Command) {
	text := cmd.Long
	if text == "" {
		text = cmd.Short + "."
	}
	_, _ = fmt.Fprintf(w, "%s\n\n", folded(strings.TrimSpace(text)))
	writeUsage(w, cmd)
}

func writeUsage(w io.Writer, cmd *cobra.Command) {
	_, _ = fmt.Fprint(w, "Usage:\n")
	if cmd.Runnable() {
		_, _ = fmt.Fprintf(w, "  %s\n", cmd.UseLine())
	}
	if cmd.HasAvailableSubCommands() {
		_, _ = fmt.Fprintf(w, "  %s [command]\n", cmd.CommandPath())
	}
	if cmd.HasExample() {
		_, _ = fmt.Fprintf(w, "\nExamples:\n%s\n", cmd.Example)
	}
	writeCommands(w, cmd)
	writeFlags(w, "Flags", cmd.LocalFlags(), false)
	writeFlags(w, "Connection flags, as for kubectl", cmd.LocalFlags(), true)
	if cmd.HasAvailableInheritedFlags() {
		_, _ = fmt.Fprintf(w, "\nGlobal flags:\n%s", display.TrimLines(cmd.InheritedFlags().FlagUsagesWrapped(helpWidth)))
	}
	if cmd.HasAvailableSubCommands() {
		_, _ = fmt.Fprintf(w, "\n%s\n", folded(`Use "`+cmd.CommandPath()+` [command] --help" for more about a command.`))
	}
}

// writeFlags writes the flags by which a command connects to a cluster, or the others.
func writeFlags(w io.Writer, title string, flags *pflag.FlagSet, connection bool) {
	some := pflag.NewFlagSet("", pflag.ContinueOnError)
	flags.VisitAll(func(f *pflag.Flag) {
		if (f.Annotations[command.ConnectionFlags] != nil) == connection {
			some.AddFlag(f)
		}
	})
	if some.HasAvailableFlags() {
		_, _ = fmt.Fprintf(w, "\n%s:\n%s", title, display.TrimLines(some.FlagUsagesWrapped(helpWidth)))
	}
}

// folded fills the lines of each paragraph again, but not of one that is indented.
func folded(text string) string {
	s, paragraphs := display.Style{Width: helpWidth}, strings.Split(text, "\n\n")
	for i, p := range paragraphs {
		if !strings.HasPrefix(p, " ") {
			paragraphs[i] = s.Fold(strings.Join(strings.Fields(p), " "), 0)
		}
	}
	return strings.Join(paragraphs, "\n\n")
}

func writeCommands(w io.Writer, cmd *cobra.Command) {
	if !cmd.HasAvailableSubCommands() {
		return
	}
	_, _ = fmt.Fprint(w, "\nCommands:\n")
	s := display.Style{Width: helpWidth}
	for _, beneath := range cmd.Commands() {
		if beneath.IsAvailableCommand() || beneath.Name() == "help" {
			padding := beneath.NamePadding()
			_, _ = fmt.Fprintf(w, "  %-*s %s\n", padding, beneath.Name(), s.Fold(beneath.Short, padding+3))
		}
	}
}

// Commands returns all commands, for their documentation.
func Commands() *cobra.Command {
	nothing := func(string) (string, bool) { return "", false }
	return newRoot(command.Environment{Args: []string{"spillway"}, Out: io.Discard, Err: io.Discard, Lookup: nothing, Now: time.Now}) //nolint:forbidigo // none of them is run
}

// otherWords are the commands of other tools, and those here that do the same.
var otherWords = map[string][]string{
	"get": {"status"}, "list": {"status"}, "ls": {"status"}, "tree": {"status"}, "top": {"watch"}, "dashboard": {"watch"},
	"describe": {"explain"}, "why": {"explain"}, "trace": {"explain"}, "log": {"events"}, "logs": {"events"},
	"suspend": {"pause"}, "stop": {"pause"}, "hold": {"pause"}, "continue": {"resume"}, "unpause": {"resume"}, "unsuspend": {"resume"},
	"undo": {"rollback"}, "revert": {"rollback"}, "promote": {"approve"}, "deny": {"refuse"}, "reject": {"refuse"}, "abort": {"abandon", "refuse"}, "cancel": {"abandon"},
	"apply": {"install"}, "init": {"install"}, "deploy": {"install"}, "bootstrap": {"install"}, "delete": {"uninstall"}, "remove": {"uninstall"},
	"validate": {"lint", "verify"}, "dry-run": {"simulate"}, "preview": {"simulate", "diff"}, "eta": {"forecast"}, "doctor": {"check"}, "preflight": {"check"},
	"run": {"trigger"}, "start": {"trigger"}, "execute": {"trigger"}, "build": {"create"}, "template": {"render"}, "params": {"parameters"},
}

// otherWord is the command that does what another tool calls so, "" if there is none.
func otherWord(word string, known []string) string {
	word = strings.ToLower(word)
	if slices.Contains(known, word) { // in other letters
		return word
	}
	for _, command := range otherWords[word] {
		if slices.Contains(known, command) {
			return command
		}
	}
	return ""
}

// kubectlGroup is the command of kubectl whose commands are commands of their own here.
const kubectlGroup = "rollout"

// ofRollout is the command that does what one of kubectl rollout does, "" if there is none.
func ofRollout(args, known []string) string {
	if args[0] != kubectlGroup || len(args) < 2 {
		return ""
	}
	if slices.Contains(known, args[1]) {
		return args[1]
	}
	return otherWord(args[1], known)
}

func typedAs(args []string) string {
	if args[0] == kubectlGroup && len(args) > 1 && !strings.HasPrefix(args[1], "-") {
		return args[0] + " " + args[1]
	}
	return args[0]
}
