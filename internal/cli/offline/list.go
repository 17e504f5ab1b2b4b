package offline

import (
	"cmp"
	"errors"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"
	"text/tabwriter"

	"github.com/spf13/cobra"

	"github.com/spillway-dev/spillway/api/kudo/v1beta1"
	"github.com/spillway-dev/spillway/internal/cli/command"
	"github.com/spillway-dev/spillway/internal/packages"
)

// listing is what the commands have in common that list parts of a package.
type listing struct {
	from   command.Packages
	output string

	descriptions, required, names, tasks bool
}

func newPackageList(env command.Environment) *cobra.Command {
	cmd := &cobra.Command{
		Use: "list", Short: "List the maintainers, parameters, plans or tasks of a package",
		Example: "  spillway package list parameters ./zookeeper --descriptions\n" +
			"  spillway package list plans zookeeper-0.3.0.tgz",
	}
	cmd.AddCommand(newListParameters(env), newListPlans(env), newListTasks(env), newListMaintainers(env))
	return cmd
}

// command returns the command that lists one part: its value is for machines, in the forms of
// all commands and some more.
func (l *listing) command(env command.Environment, part string, value func(*packages.Package) (any, error), list func(io.Writer, *packages.Package), more ...string) *cobra.Command {
	cmd := &cobra.Command{
		Use: part + " PACKAGE", Short: "List the " + part + " of a package",
		Example: "  spillway package list " + part + " ./zookeeper",
		Args:    command.Exactly(1, command.PackageHelp),
		RunE: func(cmd *cobra.Command, args []string) error {
			if l.names && l.descriptions {
				return errors.New("--names: leave out --descriptions, or --names")
			}
			p, err := l.from.Load(cmd.Context(), env, args[0])
			if err != nil {
				return err
			}
			shown, err := value(p)
			if err != nil {
				return err
			}
			return command.Show(cmd.OutOrStdout(), l.output, shown, func(w io.Writer) {
				table := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
				list(table, p)
				_ = table.Flush()
			})
		},
	}
	l.from.AddFlags(cmd.Flags())
	command.OutputFlag(cmd, &l.output, more...)
	return cmd
}

func newListParameters(env command.Environment) *cobra.Command {
	l := &listing{}
	cmd := l.command(env, "parameters", func(p *packages.Package) (any, error) {
		if l.output == command.OutputSchema {
			return p.SchemaOf(l.parameters(p))
		}
		return map[string]any{"apiVersion": v1beta1.GroupVersion.String(), "parameters": l.parameters(p)}, nil
	}, l.writeParameters, command.OutputSchema)
	cmd.Example += "\n  spillway package list parameters ./zookeeper --required --names" +
		"\n  spillway package list parameters ./zookeeper -o json-schema"
	cmd.Flags().BoolVarP(&l.descriptions, "descriptions", "d", false, "also show what the parameters are for")
	cmd.Flags().BoolVarP(&l.required, "required", "r", false, "only the parameters that an Instance must set")
	cmd.Flags().BoolVar(&l.names, "names", false, "only their names, one in a line")
	return cmd
}

// parameters are those that are listed.
func (l *listing) parameters(p *packages.Package) []packages.Parameter {
	return slices.DeleteFunc(slices.Clone(p.Parameters), func(parameter packages.Parameter) bool { return l.required && !parameter.MustBeSet() })
}

func (l *listing) writeParameters(w io.Writer, p *packages.Package) {
	if !l.names {
		_, _ = fmt.Fprintln(w, "NAME\tTYPE\tDEFAULT\tREQUIRED\tIMMUTABLE\tTRIGGER"+l.described("\tDESCRIPTION"))
	}
	for _, parameter := range l.parameters(p) {
		if l.names {
			_, _ = fmt.Fprintln(w, parameter.Name)
			continue
		}
		o, err := parameter.Object()
		if err != nil {
			continue // verify says so
		}
		value := ""
		if o.Default != nil {
			value = fmt.Sprintf("%q", *o.Default)
		}
		_, _ = fmt.Fprintf(w, "%s\t%s\t%s\t%t\t%t\t%s%s\n", o.Name, cmp.Or(o.Type, v1beta1.StringType), value, o.IsRequired(), o.IsImmutable(), o.Trigger,
			l.described("\t"+strings.Join(strings.Fields(o.Description), " ")))
	}
}

// described is a column that is shown with descriptions.
func (l *listing) described(column string) string {
	if !l.descriptions {
		return ""
	}
	return column
}

func newListMaintainers(env command.Environment) *cobra.Command {
	return (&listing{}).command(env, "maintainers", func(p *packages.Package) (any, error) { return p.Operator.Maintainers, nil }, func(w io.Writer, p *packages.Package) {
		_, _ = fmt.Fprintln(w, "NAME\tEMAIL")
		for _, m := range p.Operator.Maintainers {
			_, _ = fmt.Fprintf(w, "%s\t%s\n", m.Name, m.Email)
		}
	})
}

func newListTasks(env command.Environment) *cobra.Command {
	return (&listing{}).command(env, "tasks", func(p *packages.Package) (any, error) { return p.Operator.Tasks, nil }, func(w io.Writer, p *packages.Package) {
		_, _ = fmt.Fprintln(w, "NAME\tKIND\tRESOURCES")
		for i := range p.Operator.Tasks {
			t := &p.Operator.Tasks[i]
			resources := append(slices.Clone(t.Spec.Resources), t.Spec.Chart, t.Spec.Values, t.Spec.Pod)
			resources = slices.DeleteFunc(resources, func(name string) bool { return name == "" })
			_, _ = fmt.Fprintf(w, "%s\t%s\t%s\n", t.Name, t.Kind, strings.Join(resources, ", "))
		}
	})
}

func newListPlans(env command.Environment) *cobra.Command {
	l := &listing{}
	cmd := l.command(env, "plans", func(p *packages.Package) (any, error) { return p.Operator.Plans, nil }, l.writePlans)
	cmd.Flags().BoolVarP(&l.tasks, "with-tasks", "t", false, "also show what the tasks do")
	return cmd
}

// writePlans writes the plans as a tree.
func (l *listing) writePlans(w io.Writer, p *packages.Package) {
	for _, name := range slices.Sorted(maps.Keys(p.Operator.Plans)) {
		plan := p.Operator.Plans[name]
		_, _ = fmt.Fprintf(w, "%s (%s)\n", name, cmp.Or(plan.Strategy, v1beta1.Parallel))
		for i := range plan.Phases {
			phase := &plan.Phases[i]
			_, _ = fmt.Fprintf(w, "  %s (%s)\n", phase.Name, cmp.Or(phase.Strategy, v1beta1.Parallel))
			for k := range phase.Steps {
				l.writeStep(w, p, &phase.Steps[k])
			}
		}
	}
}

func (l *listing) writeStep(w io.Writer, p *packages.Package, step *v1beta1.Step) {
	if !l.tasks {
		_, _ = fmt.Fprintf(w, "    %s: %s\n", step.Name, strings.Join(step.Tasks, ", "))
		return
	}
	_, _ = fmt.Fprintf(w, "    %s\n", step.Name)
	for _, name := range step.Tasks {
		_, _ = fmt.Fprintf(w, "      %s: %s\n", name, taskText(p.Operator.Task(name)))
	}
}

// taskText says what a task does; nil is one that does not exist.
func taskText(t *v1beta1.Task) string {
	if t == nil {
		return "not found"
	}
	words := []string{t.Kind}
	if t.Spec.Parameter != "" {
		words = append(words, "by "+t.Spec.Parameter+":")
	}
	words = append(words, strings.Join(packages.UsedBy(t), ", "))
	return strings.TrimSpace(strings.Join(words, " "))
}
