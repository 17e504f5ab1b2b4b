package kudo

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os/exec"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
	appsv1 "k8s.io/api/apps/v1"
	"k8s.io/apimachinery/pkg/util/wait"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/spillway-dev/spillway/internal/cli/command"
	"github.com/spillway-dev/spillway/internal/cli/display"
	"github.com/spillway-dev/spillway/internal/cli/offline"
	"github.com/spillway-dev/spillway/internal/manifests"
	"github.com/spillway-dev/spillway/internal/packages/origin"
	"github.com/spillway-dev/spillway/internal/packages/repository"
)

// PluginName is the name of the link by which kubectl finds the plugin.
const PluginName = "kubectl-kudo"

// Run runs a command of this program, and writes what it prints.
type Run func(ctx context.Context, out io.Writer, args ...string) error

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
		g.repo(), offline.NewSearch(env), g.get(), g.init(), g.version(), g.test(),
	)
	return root
}

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

func (g *grammar) call(cmd *cobra.Command, args ...string) error {
	return g.run(cmd.Context(), cmd.OutOrStdout(), args...)
}

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

// alias is a command of KUDO's about an Instance that a command of this program does.
type alias struct {
	use, short string
	args       cobra.PositionalArgs
	// words are the command of this program, with its arguments. The flags that are given are passed on.
	words func(g *grammar, cmd *cobra.Command, s *settings, args []string) ([]string, error)
	flags func(*settings, *pflag.FlagSet)
}

func (a *alias) command(g *grammar) *cobra.Command {
	s := &settings{}
	cmd := &cobra.Command{
		Use: a.use, Short: a.short, Args: a.args,
		RunE: func(cmd *cobra.Command, args []string) error {
			words, err := a.words(g, cmd, s, args)
			if err != nil {
				return err
			}
			return g.call(cmd, append(append(words, g.cluster()...), s.passed(cmd)...)...)
		},
	}
	a.flags(s, cmd.Flags())
	return cmd
}

var (
	namesPackage  = command.Exactly(1, "name a package: a path that begins with ./, ../ or /, a URL, or its name in the repository")
	namesInstance = command.None("name the Instance with --instance")
)

// aliases are the commands beneath the root, and trigger and collect those beneath others.
var aliases = []alias{
	{
		use: "install NAME", short: "Install a package", args: namesPackage,
		words: func(g *grammar, cmd *cobra.Command, s *settings, args []string) ([]string, error) {
			switch inCluster, _ := cmd.Flags().GetBool("in-cluster"); {
			case s.instance != "":
			case inCluster:
				s.instance = args[0] + "-instance"
			default:
				p, err := g.origin(s, true).Load(cmd.Context(), args[0])
				if err != nil {
					return nil, err
				}
				s.instance = p.Operator.Name + "-instance"
			}
			return append([]string{packageWord, "install", args[0], s.instance}, g.atHome()...), nil
		},
		flags: func(s *settings, flags *pflag.FlagSet) {
			flags.StringVar(&s.instance, "instance", "", "name of the Instance (default: that of the package with -instance)")
			s.addParameters(flags)
			s.addPackage(flags)
			s.addWait(flags)
			flags.Bool("create-namespace", false, "create the namespace")
			flags.Bool("skip-instance", false, "create the Operator and the OperatorVersion, and no Instance")
			flags.Bool("in-cluster", false, "create an Instance of a package that is installed in the namespace")
		},
	},
	{
		use: "update", short: "Change parameters of an Instance", args: namesInstance,
		words: func(_ *grammar, cmd *cobra.Command, s *settings, _ []string) ([]string, error) {
			if flags := cmd.Flags(); s.instance != "" && !flags.Changed("parameter") && !flags.Changed("parameter-file") {
				return nil, errors.New("--parameter: name a parameter to change, as in: -p NAME=VALUE")
			}
			return s.about(packageWord, "update")
		},
		flags: func(s *settings, flags *pflag.FlagSet) {
			s.addInstance(flags)
			s.addParameters(flags)
			s.addWait(flags)
		},
	},
	{
		use: "upgrade NAME", short: "Upgrade an Instance to another version of its package", args: namesPackage,
		words: func(g *grammar, _ *cobra.Command, s *settings, args []string) ([]string, error) {
			words, err := s.about(packageWord, "upgrade")
			return append(append(words, args[0], "--yes"), g.atHome()...), err
		},
		flags: func(s *settings, flags *pflag.FlagSet) {
			s.addInstance(flags)
			s.addParameters(flags)
			s.addPackage(flags)
		},
	},
	{
		use: "uninstall", short: "Delete an Instance", args: namesInstance,
		words: func(_ *grammar, _ *cobra.Command, s *settings, _ []string) ([]string, error) {
			words, err := s.about(packageWord, "uninstall")
			return append(words, "--yes"), err
		},
		flags: func(s *settings, flags *pflag.FlagSet) {
			s.addInstance(flags)
			s.addWait(flags)
		},
	},
}

var trigger = alias{
	use: "trigger [PLAN]", short: "Run a plan",
	words: func(_ *grammar, cmd *cobra.Command, s *settings, args []string) ([]string, error) {
		words, err := s.about("plan", "trigger")
		if err != nil {
			return nil, err
		}
		name, _ := cmd.Flags().GetString("name")
		if name == "" && len(args) == 1 {
			name = args[0]
		}
		if strings.TrimSpace(name) == "" {
			return nil, errors.New("--name: name the plan to run")
		}
		return append(words, name), nil
	},
	flags: func(s *settings, flags *pflag.FlagSet) {
		s.addInstance(flags)
		s.addWait(flags)
		flags.String("name", "", "name of the plan")
	},
}

var collect = alias{
	use: "collect", short: "Write manifests, events and logs of an Instance to a directory",
	words: func(_ *grammar, _ *cobra.Command, s *settings, _ []string) ([]string, error) {
		return s.about(packageWord, "diagnostics")
	},
	flags: func(s *settings, flags *pflag.FlagSet) {
		s.addInstance(flags)
		flags.String("log-since", "", "only logs that are newer, such as 10m (default: all)")
		flags.StringP("output-directory", "O", "diag", "the directory to create")
	},
}

// origin is where a package is that the flags describe.
func (g *grammar) origin(s *settings, onlyPaths bool) *origin.Origin {
	return &origin.Origin{Home: g.home.Dir(g.env.Lookup), Repository: s.repo, AppVersion: s.appVersion, OperatorVersion: s.packageVersion, OnlyPaths: onlyPaths}
}

func group(use, short string, beneath ...*cobra.Command) *cobra.Command {
	cmd := &cobra.Command{Use: use, Short: short}
	cmd.AddCommand(beneath...)
	return cmd
}

func (g *grammar) planHistory() *cobra.Command {
	var s settings
	cmd := &cobra.Command{
		Use: "history [OPERATORVERSION]", Short: "List the plans that ran, all or those of an OperatorVersion",
		RunE: func(cmd *cobra.Command, args []string) error {
			if err := command.AtMost(1, "name an OperatorVersion, or leave it out")(cmd, args); err != nil {
				return err
			}
			i, _, err := g.read(cmd.Context(), &s)
			if err != nil {
				return err
			}
			g.writeHistory(cmd.OutOrStdout(), i, strings.Join(args, ""))
			return nil
		},
	}
	s.addInstance(cmd.Flags())
	return cmd
}

var community = repository.Repository{Name: "community", URL: "https://kudo-repository.storage.googleapis.com"}

// initialization is the command init: it writes the list of repositories, and installs the
// manager as spillway install does.
type initialization struct {
	*grammar

	clientOnly, crdOnly, upgrade, verify, dryRun, wait, selfSigned bool
	waitTimeout                                                    int
	image, pullPolicy, account, version, output                    string
}

func (g *grammar) init() *cobra.Command {
	i := &initialization{grammar: g}
	cmd := &cobra.Command{
		Use: "init", Short: "Write the list of repositories, and install the manager",
		RunE: func(cmd *cobra.Command, _ []string) error {
			if err := i.check(); err != nil {
				return err
			}
			if i.dryRun {
				return i.install(cmd, display.Raw(cmd.OutOrStdout()), "--export")
			}
			if i.verify {
				return i.call(cmd, "check", "--rings=plans")
			}
			if err := i.writeHome(cmd.OutOrStdout()); err != nil || i.clientOnly {
				return err
			}
			if err := i.install(cmd, cmd.OutOrStdout()); err != nil || !i.wait {
				return err
			}
			return i.waitForManager(cmd.Context(), i.managerNamespace(cmd))
		},
	}
	flags := cmd.Flags()
	flags.BoolVarP(&i.clientOnly, "client-only", "c", false, "only write the list of repositories")
	flags.BoolVar(&i.crdOnly, "crd-only", false, "only install the kinds")
	flags.BoolVar(&i.upgrade, "upgrade", false, "accepted, and without effect: an installation that exists is upgraded")
	flags.BoolVar(&i.verify, "verify", false, "check the cluster and the permissions, and change nothing")
	flags.BoolVar(&i.dryRun, "dry-run", false, "print the manifests, and change nothing")
	flags.StringVarP(&i.output, "output", "o", "", "output format of --dry-run: yaml")
	flags.BoolVarP(&i.wait, "wait", "w", false, "wait until the manager is available")
	flags.IntVar(&i.waitTimeout, "wait-timeout", waitSeconds, "how long to wait, in seconds")
	flags.StringVarP(&i.image, "kudo-image", "i", "", "image of Spillway's manager (default: that of this release)")
	flags.StringVar(&i.pullPolicy, "kudo-image-pull-policy", "", "when to pull the image: Always, IfNotPresent or Never (default: as Kubernetes decides)")
	flags.StringVar(&i.version, "version", "", "version of the manager: that of this program, and no other")
	flags.StringVar(&i.account, "service-account", "", "not supported")
	flags.BoolVar(&i.selfSigned, "unsafe-self-signed-webhook-ca", false, "accepted, and without effect: the manager has a CA of its own")
	return cmd
}

// check refuses what Spillway installs otherwise.
func (i *initialization) check() error {
	for _, refused := range []struct {
		isGiven   bool
		flag, why string
	}{
		{i.crdOnly && i.clientOnly, "crd-only", "--client-only asks no cluster; leave out one of them"},
		{i.crdOnly && i.wait, "wait", "there is no manager to wait for with --crd-only; leave out one of them"},
		{i.version != "" && strings.TrimPrefix(i.version, "v") != strings.TrimPrefix(command.CurrentVersion(), "v"), "version", "this program installs version " + command.CurrentVersion() + "; use the program of that version, or leave it out"},
		{i.account != "", "service-account", "the manager has one of its own, with the permissions that it needs; leave it out"},
		{strings.Contains(i.image, "kudobuilder/"), "kudo-image", i.image + " is KUDO's manager; name an image of Spillway, or leave it out"},
		{i.output != "" && i.output != "yaml", "output", "only yaml is known"},
		{i.output != "" && !i.dryRun, "output", "is for --dry-run"},
	} {
		if refused.isGiven {
			return fmt.Errorf("--%s: %s", refused.flag, refused.why)
		}
	}
	return nil
}

func (i *initialization) writeHome(w io.Writer) error {
	home := i.home.Dir(i.env.Lookup)
	list, err := repository.Open(home)
	if err != nil {
		return err
	}
	if len(list.Repositories) == 0 {
		if err := errors.Join(list.Add(community), list.Save(home)); err != nil {
			return err
		}
	}
	_, _ = fmt.Fprintf(w, "$KUDO_HOME has been configured at %s\n", home)
	return nil
}

func (i *initialization) install(cmd *cobra.Command, out io.Writer, more ...string) error {
	args := append([]string{"install", "--rings=config,zones,plans", "-n", i.managerNamespace(cmd)}, more...)
	if i.kubeconfig != "" {
		args = append(args, "--kubeconfig", i.kubeconfig)
	}
	if i.crdOnly {
		args = append(args, "--crds-only")
	}
	if i.image != "" {
		args = append(args, "--image", i.image)
	}
	if i.pullPolicy != "" {
		args = append(args, "--image-pull-policy", i.pullPolicy)
	}
	return i.run(cmd.Context(), out, args...)
}

// managerNamespace is the namespace that is named; otherwise that of spillway install.
func (i *initialization) managerNamespace(cmd *cobra.Command) string {
	if cmd.Flags().Changed("namespace") {
		return i.namespace
	}
	return manifests.DefaultNamespace
}

func (i *initialization) waitForManager(ctx context.Context, namespace string) error {
	c, err := i.client()
	if err != nil {
		return err
	}
	ctx, stop := context.WithTimeout(ctx, time.Duration(i.waitTimeout)*time.Second)
	defer stop()
	err = wait.PollUntilContextCancel(ctx, time.Second, true, func(ctx context.Context) (bool, error) {
		d := &appsv1.Deployment{}
		if err := c.Get(ctx, client.ObjectKey{Namespace: namespace, Name: "spillway"}, d); err != nil {
			return false, fmt.Errorf("get deployment/spillway: %w", err)
		}
		return d.Status.ObservedGeneration >= d.Generation && d.Status.AvailableReplicas > 0 && d.Status.UpdatedReplicas == d.Status.Replicas, nil
	})
	if err != nil && ctx.Err() != nil {
		return fmt.Errorf("deployment/spillway in namespace %s is not available after %d s; see: kubectl describe deployment/spillway -n %s", namespace, i.waitTimeout, namespace)
	}
	return err //nolint:wrapcheck // it says what was read
}
