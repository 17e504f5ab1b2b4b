package offline

import (
	"cmp"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"text/tabwriter"

	"github.com/spf13/cobra"
	"sigs.k8s.io/yaml"

	"github.com/spillway-dev/spillway/api/kudo/v1beta1"
	"github.com/spillway-dev/spillway/internal/cli/command"
	"github.com/spillway-dev/spillway/internal/lint/report"
	"github.com/spillway-dev/spillway/internal/packages"
)

// NewPackage returns the command package with the commands beneath it.
func NewPackage(env command.Environment) *cobra.Command {
	cmd := &cobra.Command{
		Use: "package", Short: "Install, upgrade, check and pack applications in the format of KUDO",
		Long: "Install, upgrade, compare and uninstall applications in the format of KUDO: operator.yaml,\n" +
			"params.yaml and templates/, in a directory or in an archive (.tgz). To check, list, render and\n" +
			"pack them, no cluster is needed.",
	}
	cmd.AddCommand(newPackageVerify(env), newPackageList(env), newPackageRender(env), newPackageCreate(env))
	return cmd
}

func newPackageVerify(env command.Environment) *cobra.Command {
	var (
		l    linting
		from command.Packages
	)
	cmd := &cobra.Command{
		Use: "verify PACKAGE...", Short: "Find mistakes in a package, with file and line",
		Long: "Find mistakes in a package, before it is installed: tasks, templates, parameters and plans\n" +
			"that do not exist or are not used, templates that cannot be rendered, values of a wrong\n" +
			"type, kinds that Kubernetes no longer serves. The exit code is 1 if there is an error.\n" +
			"\n" +
			"The page of a code such as SPW401: " + report.Guide + "#spw401",
		Example: "  spillway package verify ./zookeeper\n" +
			"  spillway package verify zookeeper-0.3.0.tgz -o sarif",
		Args: command.AtLeast(1, command.PackageHelp),
		RunE: func(cmd *cobra.Command, args []string) error {
			l.files, l.origin, l.namespace = args, from.Origin(env), "default"
			return l.run(cmd, env)
		},
	}
	l.addForm(cmd)
	from.AddFlags(cmd.Flags())
	return cmd
}

func newPackageRender(env command.Environment) *cobra.Command {
	var from command.Packages
	cmd := &cobra.Command{
		Use: "render PACKAGE", Short: "Print the Operator and the OperatorVersion of a package",
		Long: "Print the Operator and the OperatorVersion of a package as manifests. Apply them, and create\n" +
			"an Instance that names the OperatorVersion.",
		Example: "  spillway package render ./zookeeper | kubectl apply -n shop -f -",
		Args:    command.Exactly(1, command.PackageHelp),
		RunE: func(cmd *cobra.Command, args []string) error {
			documents, err := documentsOf(cmd.Context(), from.Origin(env), args[0])
			if err != nil {
				return err
			}
			for i := range documents {
				raw, err := yaml.Marshal(documents[i].Object.Object)
				if err != nil {
					return fmt.Errorf("write the manifest: %w", err)
				}
				_, _ = fmt.Fprintf(cmd.OutOrStdout(), "---\n%s", raw)
			}
			return nil
		},
	}
	from.AddFlags(cmd.Flags())
	return cmd
}

func newPackageCreate(env command.Environment) *cobra.Command {
	var (
		to   string
		from command.Packages
	)
	cmd := &cobra.Command{
		Use: "create DIR", Short: "Pack a package into an archive",
		Long: "Pack a package into an archive, NAME-VERSION.tgz. The same files give the\n" +
			"same archive, to the byte.",
		Example: "  spillway package create ./zookeeper --destination dist",
		Args:    command.Exactly(1, command.PackageHelp),
		RunE: func(cmd *cobra.Command, args []string) error {
			p, err := from.Load(cmd.Context(), env, args[0])
			if err != nil {
				return err
			}
			path := filepath.Join(to, p.ArchiveName())
			if err := Pack(p, path); err != nil {
				return err
			}
			_, _ = fmt.Fprintln(cmd.OutOrStdout(), path)
			return nil
		},
	}
	from.AddFlags(cmd.Flags())
	cmd.Flags().StringVarP(&to, "destination", "d", ".", "the directory to write the archive into")
	return cmd
}

// Pack writes the archive of a package to a path. It writes beside its place first, so that there
// is never half of one.
func Pack(p *packages.Package, path string) error {
	file, err := os.CreateTemp(filepath.Dir(path), ".package-")
	if err != nil {
		if named, ok := errors.AsType[*fs.PathError](err); ok { // the path is that of a file which has a name by chance
			err = named.Err
		}
		return fmt.Errorf("--destination: %s: %w; name a directory that exists and can be written", filepath.Dir(path), err)
	}
	defer func() { _ = os.Remove(file.Name()) }()
	if err := errors.Join(p.Archive(file), file.Chmod(0o644), file.Close()); err != nil {
		return fmt.Errorf("write the archive: %w", err)
	}
	if err := os.Rename(file.Name(), path); err != nil {
		return fmt.Errorf("write the archive: %w", err)
	}
	return nil
}

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
