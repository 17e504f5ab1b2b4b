package kudo

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os/exec"
	"slices"
	"strconv"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/spillway-dev/spillway/internal/cli/command"
	"github.com/spillway-dev/spillway/internal/cli/display"
	"github.com/spillway-dev/spillway/internal/cli/packaging"
)

// PluginName is the name of the link by which kubectl finds the plugin.
const PluginName = "kubectl-kudo"

// Run runs a command of this program, and writes what it prints.
type Run func(ctx context.Context, out io.Writer, args ...string) error

// grammar is what the commands have in common.
type grammar struct {
	env  command.Environment
	run  Run
	home command.KUDOHome

	kubeconfig, namespace string
	requestTimeout        int
}

// New returns the root of KUDO's grammar.
func New(env command.Environment, run Run) *cobra.Command {
	g := &grammar{env: env, run: run}
	root := &cobra.Command{
		Use:   PluginName,
		Short: "KUDO's command line, by Spillway",
		Long: "KUDO's command line, by Spillway: the same commands, flags and output, for scripts that use\n" +
			"them. Everything else is in: spillway package --help.",
		Annotations:   map[string]string{cobra.CommandDisplayNameAnnotation: "kubectl kudo"},
		Version:       command.CurrentVersion(),
		SilenceErrors: true, SilenceUsage: true,
	}
	flags := root.PersistentFlags()
	g.home.AddFlag(flags)
	flags.StringVar(&g.kubeconfig, "kubeconfig", "", "path of the kubeconfig (default: $KUBECONFIG or ~/.kube/config)")
	flags.StringVarP(&g.namespace, "namespace", "n", "default", "target namespace")
	flags.IntVar(&g.requestTimeout, "request-timeout", 0, "how long a request may take, in seconds; 0 is no limit")
	flags.IntP("v", "v", 0, "accepted, and without effect")
	flags.Bool("validate-install", true, "accepted, and without effect")
	for i := range aliases {
		root.AddCommand(aliases[i].command(g))
	}
	root.AddCommand(
		group("plan", "Show and run plans of an Instance", g.planStatus(), g.planHistory(), trigger.command(g)),
		group("diagnostics", "Collect what is needed to find the cause of a failure", collect.command(g)),
		group(packageWord, "Write, check and pack packages", g.create(), g.verify(), g.newPackage(), g.list(), g.add()),
		g.repo(), packaging.NewSearch(env), g.get(), g.init(), g.version(), g.test(),
	)
	return root
}

// cluster are the flags that name the cluster and the namespace.
func (g *grammar) cluster() []string {
	args := []string{"-n", g.namespace}
	if g.kubeconfig != "" {
		args = append(args, "--kubeconfig", g.kubeconfig)
	}
	if g.requestTimeout > 0 {
		args = append(args, "--request-timeout", strconv.Itoa(g.requestTimeout)+"s")
	}
	return args
}

// atHome is the flag that names the directory of KUDO.
func (g *grammar) atHome() []string { return []string{"--home", g.home.Dir(g.env.Lookup)} }

// call runs a command of this program.
func (g *grammar) call(cmd *cobra.Command, args ...string) error {
	return g.run(cmd.Context(), cmd.OutOrStdout(), args...)
}

// settings are the flags of an Instance.
type settings struct {
	instance                         string
	repo, appVersion, packageVersion string
	wait                             bool
	waitTime                         int
}

func (s *settings) addInstance(flags *pflag.FlagSet) {
	flags.StringVar(&s.instance, "instance", "", "name of the Instance")
}

func (s *settings) addParameters(flags *pflag.FlagSet) {
	flags.StringArrayP("parameter", "p", nil, "a parameter as NAME=VALUE; may be given several times")
	flags.StringArrayP("parameter-file", "P", nil, "a file of parameters in YAML; may be given several times")
}

func (s *settings) addPackage(flags *pflag.FlagSet) {
	flags.StringVar(&s.repo, "repo", "", "name of the repository (default: that of the context)")
	flags.StringVar(&s.appVersion, "app-version", "", "version of the application (default: the latest)")
	flags.StringVar(&s.packageVersion, "operator-version", "", "version of the package (default: the latest)")
}

// waitSeconds is how long KUDO waits.
const waitSeconds = 300

func (s *settings) addWait(flags *pflag.FlagSet) {
	flags.BoolVar(&s.wait, "wait", false, "wait until it is done")
	flags.IntVar(&s.waitTime, "wait-time", waitSeconds, "how long to wait, in seconds")
}

// otherwise are flags that this program has otherwise, or as an argument.
var otherwise = []string{"instance", "name", "wait", "wait-time", "output"}

// passed are the flags of the command that were given, as this program has them.
func (s *settings) passed(cmd *cobra.Command) (args []string) {
	if s.wait {
		args = append(args, "--wait", "--timeout", strconv.Itoa(s.waitTime)+"s")
	}
	cmd.LocalNonPersistentFlags().VisitAll(func(f *pflag.Flag) {
		if !f.Changed || slices.Contains(otherwise, f.Name) {
			return
		}
		for _, value := range command.Values(f) {
			args = append(args, "--"+f.Name+"="+value)
		}
	})
	return args
}

// about are words of a command, with the Instance, which must be named.
func (s *settings) about(words ...string) ([]string, error) {
	if s.instance == "" {
		return nil, errors.New("--instance: name the Instance, as in: --instance kafka-instance")
	}
	return append(words, "instance/"+s.instance), nil
}

func (g *grammar) version() *cobra.Command {
	var output string
	cmd := &cobra.Command{
		Use: "version", Short: "Print the version",
		RunE: func(cmd *cobra.Command, _ []string) error {
			is := map[string]string{"gitVersion": "spillway " + command.CurrentVersion()}
			return command.Show(cmd.OutOrStdout(), output, is, func(w io.Writer) { _, _ = fmt.Fprintf(w, "KUDO Version: %s\n", is["gitVersion"]) })
		},
	}
	command.OutputFlag(cmd, &output)
	return cmd
}

// test is a command that KUDO took from kuttl, which runs it.
func (g *grammar) test() *cobra.Command {
	return &cobra.Command{
		Use: "test PATH", Short: "Run tests with kuttl, which must be installed", DisableFlagParsing: true,
		RunE: func(cmd *cobra.Command, args []string) error {
			path, err := exec.LookPath("kubectl-kuttl")
			if err != nil {
				return errors.New("kubectl-kuttl not found in $PATH: KUDO has kuttl in it, and Spillway runs the one that is installed; install it from https://kuttl.dev")
			}
			kuttl := exec.CommandContext(cmd.Context(), path, append([]string{"test"}, args...)...) //nolint:gosec // the user asks for it
			kuttl.Stdin, kuttl.Stdout, kuttl.Stderr = cmd.InOrStdin(), display.Raw(cmd.OutOrStdout()), display.Raw(g.env.Err)
			if err := kuttl.Run(); err != nil {
				return fmt.Errorf("kubectl-kuttl: %w", err)
			}
			return nil
		},
	}
}
