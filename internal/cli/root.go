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
	"strings"

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
	"github.com/spillway-dev/spillway/internal/cli/packaging"
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
	root.AddCommand(ops.NewManager(env), ops.NewInstall(env), ops.NewUninstall(env), check.New(env, func() *pflag.FlagSet { return ops.NewManager(env).Flags() }), show.NewExplain(env), show.NewStatus(env), lifecycle.NewRollback(env), lifecycle.NewRevisionDiff(env), lifecycle.NewPlan(env), fleet.New(env), offline.NewLint(env), offline.NewSimulate(env), offline.NewProve(env), offline.NewPackage(env), ops.NewDemo(env), ops.NewVersion(), migrate.New(env))
	root.AddCommand(act.Commands(env)...)
	root.AddCommand(show.NewHistory(env), show.NewEvents(env), show.NewForecast(env), watch.New(env, Run), dashboard.New(env))
	if packaged, _, err := root.Find([]string{"package"}); err == nil {
		packaged.AddCommand(lifecycle.Commands(env)...)
		packaged.AddCommand(packaging.Commands(env)...)
	}
	finish(root, env)
	return root
}
