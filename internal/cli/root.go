// Package cli is the command line: the manager and the commands of the kubectl
// plugin.
//
// An error is printed once, in one line, with what is wrong and how to fix it;
// the exit code is then 1, unless the command says otherwise in its help.
package cli

import (
	"context"
	"errors"
	"fmt"
	"io"
	"path/filepath"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
)

// Environment is all that a command knows of the process that it runs in.
type Environment struct {
	// Args are the program's name and its arguments.
	Args     []string
	Out, Err io.Writer
	// Lookup finds an environment variable.
	Lookup func(name string) (value string, ok bool)
	// Now is the clock.
	Now func() time.Time
}

// pluginName is the name of the link by which kubectl finds the plugin.
const pluginName = "kubectl-spillway"

// Run runs the command in args and returns the exit code.
func Run(ctx context.Context, env Environment) int {
	root := newRoot(env)
	root.SetArgs(env.Args[1:])
	root.SetOut(env.Out)
	root.SetErr(env.Err)
	if err := root.ExecuteContext(ctx); err != nil {
		_, _ = io.WriteString(env.Err, errorText(styleOf(env.Err, env.Lookup), err))
		if coded := (exitError{}); errors.As(err, &coded) {
			return coded.code
		}
		return 1
	}
	return 0
}

// errorText says what went wrong: in one line, unless the error has more or it is a
// terminal on which that would not fit.
func errorText(s style, err error) string {
	const lead = "error: "
	var text strings.Builder
	for line := range strings.Lines(lead + err.Error()) {
		text.WriteString(s.fold(strings.TrimSuffix(line, "\n"), len(lead)) + "\n")
	}
	return text.String()
}

func newRoot(env Environment) *cobra.Command {
	use := "spillway"
	if filepath.Base(env.Args[0]) == pluginName {
		use = "kubectl spillway"
	}
	root := &cobra.Command{
		Use:   "spillway",
		Short: "Controlled releases for Kubernetes",
		Long: "Spillway carries changes to running Pods in a safe order, and always says why\n" +
			"they wait: a changed ConfigMap or Secret, the Pod template of StatefulSets in\n" +
			"several zones, the plans of an application, the clusters of a fleet.",
		Annotations:   map[string]string{cobra.CommandDisplayNameAnnotation: use},
		SilenceErrors: true,
		SilenceUsage:  true,
		PersistentPreRunE: func(cmd *cobra.Command, _ []string) error {
			return fromEnvironment(cmd.Flags(), env.Lookup)
		},
	}
	root.SetFlagErrorFunc(func(cmd *cobra.Command, err error) error {
		return fmt.Errorf("%w (see %s --help)", err, cmd.CommandPath())
	})
	root.AddCommand(newManager(env), newInstall(env), newUninstall(env), newCheck(env), newExplain(env), newStatus(env), newPause(env), newResume(env), newRetry(env), newPlan(env), newFleet(env), newLint(env), newSimulate(env), newDemo(env), newVersion())
	root.AddCommand(newHistory(env), newEvents(env), newWatch(env))
	finish(root, env)
	return root
}

// variable is the environment variable that a flag can be set by.
func variable(flag string) string {
	return "SPILLWAY_" + strings.ToUpper(strings.ReplaceAll(flag, "-", "_"))
}

// fromEnvironment sets the flags that were not given from the environment.
func fromEnvironment(flags *pflag.FlagSet, lookup func(string) (string, bool)) error {
	var failed error
	flags.VisitAll(func(f *pflag.Flag) {
		value, ok := lookup(variable(f.Name))
		if !ok || f.Changed || failed != nil {
			return
		}
		if err := flags.Set(f.Name, value); err != nil {
			failed = fmt.Errorf("environment variable %s: %w", variable(f.Name), err)
		}
	})
	return failed
}
