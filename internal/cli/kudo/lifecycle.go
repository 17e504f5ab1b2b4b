package kudo

import (
	"errors"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/spillway-dev/spillway/internal/cli/command"
	"github.com/spillway-dev/spillway/internal/packages/origin"
)

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

// group is a command with others beneath it.
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
