package kudo

import (
	"errors"
	"strings"

	"github.com/spf13/cobra"

	"github.com/spillway-dev/spillway/internal/cli/command"
	"github.com/spillway-dev/spillway/internal/packages/origin"
)

func (g *grammar) install() *cobra.Command {
	var (
		s                                        settings
		createNamespace, skipInstance, inCluster bool
	)
	cmd := &cobra.Command{
		Use: "install NAME", Short: "Install a package",
		Args: command.Exactly(1, "name a package: a path that begins with ./, ../ or /, a URL, or its name in the repository"),
		RunE: func(cmd *cobra.Command, args []string) error {
			switch {
			case s.instance != "":
			case inCluster:
				s.instance = args[0] + "-instance"
			default:
				p, err := g.origin(&s, true).Load(cmd.Context(), args[0])
				if err != nil {
					return err
				}
				s.instance = p.Operator.Name + "-instance"
			}
			all := append([]string{packageWord, "install", args[0], s.instance}, append(g.cluster(), g.atHome()...)...)
			all = append(all, s.args()...)
			if createNamespace {
				all = append(all, "--create-namespace")
			}
			if skipInstance {
				all = append(all, "--skip-instance")
			}
			if inCluster {
				all = append(all, "--in-cluster")
			}
			return g.call(cmd, all...)
		},
	}
	s.addInstance(cmd, "name of the Instance (default: that of the package with -instance)")
	s.addParameters(cmd)
	s.addPackage(cmd)
	s.addWait(cmd)
	cmd.Flags().BoolVar(&createNamespace, "create-namespace", false, "create the namespace")
	cmd.Flags().BoolVar(&skipInstance, "skip-instance", false, "create the Operator and the OperatorVersion, and no Instance")
	cmd.Flags().BoolVar(&inCluster, "in-cluster", false, "create an Instance of a package that is installed in the namespace")
	return cmd
}

// origin is where a package is that the flags describe.
func (g *grammar) origin(s *settings, onlyPaths bool) *origin.Origin {
	return &origin.Origin{Home: g.home.Dir(g.env.Lookup), Repository: s.repo, AppVersion: s.appVersion, OperatorVersion: s.packageVersion, OnlyPaths: onlyPaths}
}

func (g *grammar) update() *cobra.Command {
	var s settings
	cmd := &cobra.Command{
		Use: "update", Short: "Change parameters of an Instance",
		Args: command.None("name the Instance with --instance"),
		RunE: func(cmd *cobra.Command, _ []string) error {
			instance, err := s.named()
			if err != nil {
				return err
			}
			if len(s.pairs)+len(s.files) == 0 {
				return errors.New("--parameter: name a parameter to change, as in: -p NAME=VALUE")
			}
			return g.call(cmd, append(append([]string{packageWord, "update", instance}, g.cluster()...), s.args()...)...)
		},
	}
	s.addInstance(cmd, "name of the Instance")
	s.addParameters(cmd)
	s.addWait(cmd)
	return cmd
}

func (g *grammar) upgrade() *cobra.Command {
	var s settings
	cmd := &cobra.Command{
		Use: "upgrade NAME", Short: "Upgrade an Instance to another version of its package",
		Args: command.Exactly(1, "name a package: a path that begins with ./, ../ or /, a URL, or its name in the repository"),
		RunE: func(cmd *cobra.Command, args []string) error {
			instance, err := s.named()
			if err != nil {
				return err
			}
			all := append([]string{packageWord, "upgrade", instance, args[0], "--yes"}, append(g.cluster(), g.atHome()...)...)
			return g.call(cmd, append(all, s.args()...)...)
		},
	}
	s.addInstance(cmd, "name of the Instance")
	s.addParameters(cmd)
	s.addPackage(cmd)
	return cmd
}

func (g *grammar) uninstall() *cobra.Command {
	var s settings
	cmd := &cobra.Command{
		Use: "uninstall", Short: "Delete an Instance",
		Args: command.None("name the Instance with --instance"),
		RunE: func(cmd *cobra.Command, _ []string) error {
			instance, err := s.named()
			if err != nil {
				return err
			}
			return g.call(cmd, append(append([]string{packageWord, "uninstall", instance, "--yes"}, g.cluster()...), s.args()...)...)
		},
	}
	s.addInstance(cmd, "name of the Instance")
	s.addWait(cmd)
	return cmd
}

func (g *grammar) plan() *cobra.Command {
	cmd := &cobra.Command{Use: "plan", Short: "Show and run plans of an Instance"}
	cmd.AddCommand(g.planStatus(), g.planHistory(), g.planTrigger())
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
	s.addInstance(cmd, "name of the Instance")
	return cmd
}

func (g *grammar) planTrigger() *cobra.Command {
	var (
		s    settings
		name string
	)
	cmd := &cobra.Command{
		Use: "trigger [PLAN]", Short: "Run a plan",
		RunE: func(cmd *cobra.Command, args []string) error {
			instance, err := s.named()
			if err != nil {
				return err
			}
			if name == "" && len(args) == 1 {
				name = args[0]
			}
			if strings.TrimSpace(name) == "" {
				return errors.New("--name: name the plan to run")
			}
			return g.call(cmd, append(append([]string{"plan", "trigger", instance, name}, g.cluster()...), s.args()...)...)
		},
	}
	s.addInstance(cmd, "name of the Instance")
	s.addWait(cmd)
	cmd.Flags().StringVar(&name, "name", "", "name of the plan")
	return cmd
}
