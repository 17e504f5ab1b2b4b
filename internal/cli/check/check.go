package check

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/spillway-dev/spillway/internal/cli/command"
	"github.com/spillway-dev/spillway/internal/cli/display"
	"github.com/spillway-dev/spillway/internal/manager"
)

// finding is one line of the check.
type finding struct {
	// Group is what it is about: the cluster, a ring, or a manager that is installed.
	Group string `json:"group"`
	OK    bool   `json:"ok"`
	// What was looked at, and how it was found.
	What string `json:"what"`
	// Action says what to do, empty if nothing.
	Action string `json:"action,omitempty"`
	// Advice is true if Spillway works all the same.
	Advice bool `json:"advice,omitempty"`
	// problem is a word for what is wrong, of which there may be many; empty if each finding is
	// written.
	problem string
}

// The groups that are no ring and no manager.
const (
	groupCluster   = "cluster"
	groupWorkloads = "workloads"
)

// ring is the group of a ring.
func ring(name string) string { return "ring " + name }

// checking is one run of the command.
type checking struct {
	cluster    command.Cluster
	now        func() time.Time
	rings      []string
	namespaces []string
	// installed is the namespace of the manager to look at; all managers if it is empty.
	installed string
	// pre leaves out what is installed.
	pre bool
	// upgrade is about what this version would change of it.
	upgrade bool
	// managerFlags are those of this version's manager.
	managerFlags func() *pflag.FlagSet
	output       string
}

// New returns the command check. It is handed the flags of the manager.
func New(env command.Environment, managerFlags func() *pflag.FlagSet) *cobra.Command {
	c := &checking{now: env.Now, managerFlags: managerFlags}
	cmd := &cobra.Command{
		Use:     "check",
		Short:   "Check an installation, or before it what this cluster and your permissions lack",
		Example: "  spillway check\n  spillway check --pre --rings=config,zones --namespaces=shop\n  spillway check --upgrade",
		Long: "Check what is installed: the version and the Pods of each manager, its leader, its\n" +
			"permissions, its kinds, policies, webhooks and certificates, and the state of each\n" +
			"ring. Where no manager is installed, and with --pre, --rings or --namespaces, check\n" +
			"instead that the cluster and the credentials in use meet the requirements: who\n" +
			"installs the manager needs all permissions that it gets.\n" +
			"\n" +
			"With --upgrade, say what an upgrade from what is installed to the version of this\n" +
			"command would change: kinds, permissions, flags that are gone, and manifests in the\n" +
			"cluster in which its lint finds an error.\n" +
			"\n" +
			"The exit code is 1 if something must be fixed.",
		Args: command.None("name a namespace with -n"),
		RunE: func(cmd *cobra.Command, _ []string) error {
			flags := cmd.Flags()
			if err := errors.Join(manager.CheckRings(c.rings), command.CheckNamespaces("namespaces", c.namespaces...)); err != nil {
				return err
			}
			c.pre = c.pre || flags.Changed("rings") || flags.Changed("namespaces")
			findings, err := c.run(cmd.Context())
			if err != nil {
				return err
			}
			if err := command.Show(cmd.OutOrStdout(), c.output, findings, func(w io.Writer) { write(w, display.StyleOf(w, env.Lookup), findings) }); err != nil {
				return err
			}
			return verdict(findings)
		},
	}
	c.cluster.AddFlags(cmd.Flags())
	cmd.Flags().BoolVar(&c.pre, "pre", false, "check the requirements, and not what is installed")
	cmd.Flags().BoolVar(&c.upgrade, "upgrade", false, "say what an upgrade of what is installed to this version would change")
	cmd.Flags().StringVarP(&c.installed, "namespace", "n", "", "namespace of the manager to check (default: all managers)")
	cmd.Flags().StringSliceVar(&c.namespaces, "namespaces", nil, "namespaces that the manager is to watch (default: all)")
	command.RingsFlag(cmd.Flags(), &c.rings)
	for _, requirement := range []string{"pre", "rings", "namespaces"} {
		cmd.MarkFlagsMutuallyExclusive("upgrade", requirement)
	}
	command.OutputFlag(cmd, &c.output)
	return cmd
}

func (c *checking) run(ctx context.Context) ([]finding, error) {
	reader, err := c.cluster.Client()
	if err != nil {
		return nil, err
	}
	findings, err := c.checkServer()
	if err != nil {
		return nil, err
	}
	var found []installation
	if !c.pre {
		if found, err = installations(ctx, reader, c.installed); err != nil {
			return nil, err
		}
	}
	if c.upgrade {
		more, err := c.checkUpgrades(ctx, reader, found)
		return append(findings, more...), err
	}
	if len(found) == 0 {
		more, err := c.checkRequirements(ctx, reader)
		if err != nil {
			return nil, err
		}
		findings = append(findings, more...)
	}
	for i := range found {
		findings = append(findings, found[i].check(ctx, reader, c.now())...)
	}
	if c.hasZones(found) {
		findings = append(findings, checkProposed(ctx, reader, c.namespaces)...)
	}
	return append(findings, checkTraces(ctx, reader)...), nil
}

// hasZones is true if the zones ring is installed, or is to be.
func (c *checking) hasZones(found []installation) bool {
	if len(found) == 0 {
		return slices.Contains(c.rings, manager.RingZones)
	}
	return slices.ContainsFunc(found, func(i installation) bool { return slices.Contains(i.args.Rings(), manager.RingZones) })
}

func verdict(findings []finding) error {
	for i := range findings {
		if f := &findings[i]; !f.OK && !f.Advice {
			return errors.New("something must be fixed; see above")
		}
	}
	return nil
}

// alike is how many findings are written of those of a group with the same problem and action.
const alike = 3

// few are the findings without those that would repeat a problem and its action; the last one
// that stands for others says how many there are. Two problems stay two, also if the same is to
// be done about them.
func few(findings []finding) []finding {
	type kind struct{ group, problem, action string }
	number, seen := map[kind]int{}, map[kind]int{}
	for i := range findings {
		number[kind{findings[i].Group, findings[i].problem, findings[i].Action}]++
	}
	var all []finding
	for _, f := range findings {
		k := kind{f.Group, f.problem, f.Action}
		if f.OK || f.Action == "" || f.problem == "" {
			all = append(all, f)
			continue
		}
		if seen[k]++; seen[k] > alike {
			continue
		}
		if rest := number[k] - alike; seen[k] == alike && rest > 0 {
			f.What += fmt.Sprintf("; %d more like it, which -o json lists", rest)
		}
		all = append(all, f)
	}
	return all
}

// write writes the findings, group by group.
func write(w io.Writer, s display.Style, findings []finding) {
	group := ""
	for _, f := range few(findings) {
		if f.Group != group {
			group = f.Group
			_, _ = fmt.Fprintln(w, s.Paint(display.Bold, group))
		}
		mark, action := s.Paint(display.Green, "✓"), ""
		if !f.OK {
			mark = s.Paint(display.Red, "✗")
			if f.Advice {
				mark = s.Paint(display.Yellow, "!")
			}
		}
		if f.Action != "" {
			action = "; " + f.Action
		}
		_, _ = fmt.Fprintf(w, "  %s %s\n", mark, s.Fold(display.Plain(strings.TrimSuffix(f.What, ".")+action), 4))
	}
}
