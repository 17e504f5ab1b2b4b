package offline

import (
	"cmp"
	"errors"
	"fmt"
	"io"
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
			"type, kinds that Kubernetes no longer serves. The exit code is 1 if there is an error.",
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
		Long: "Pack a package into an archive, NAME-VERSION.tgz. Of the same files it is the same to the\n" +
			"byte.",
		Example: "  spillway package create ./zookeeper --destination dist",
		Args:    command.Exactly(1, command.PackageHelp),
		RunE: func(cmd *cobra.Command, args []string) error {
			p, err := from.Load(cmd.Context(), env, args[0])
			if err != nil {
				return err
			}
			path := filepath.Join(to, p.Operator.Name+"-"+p.Operator.OperatorVersion+".tgz")
			if err := pack(p, path); err != nil {
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

// pack writes the archive beside its place first, so that there is never half of one.
func pack(p *packages.Package, path string) error {
	file, err := os.CreateTemp(filepath.Dir(path), ".package-")
	if err != nil {
		return fmt.Errorf("--destination: %w; name a directory that exists and can be written", err)
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

// The parts of a package that can be listed.
var parts = map[string]func(io.Writer, *packages.Package){"maintainers": listMaintainers, "parameters": listParameters, "plans": listPlans, "tasks": listTasks}

func newPackageList(env command.Environment) *cobra.Command {
	names := slices.Sorted(maps.Keys(parts))
	var from command.Packages
	cmd := &cobra.Command{
		Use: "list maintainers|parameters|plans|tasks PACKAGE", Short: "List the maintainers, parameters, plans or tasks of a package",
		Example: "  spillway package list parameters ./zookeeper\n" +
			"  spillway package list plans zookeeper-0.3.0.tgz",
		Args: command.Exactly(2, "see its help"), ValidArgs: names,
		RunE: func(cmd *cobra.Command, args []string) error {
			list, ok := parts[args[0]]
			if !ok {
				return fmt.Errorf("%q is no part of a package; use %s", args[0], strings.Join(names, ", "))
			}
			p, err := from.Load(cmd.Context(), env, args[1])
			if err != nil {
				return err
			}
			w := tabwriter.NewWriter(cmd.OutOrStdout(), 0, 0, 2, ' ', 0)
			list(w, p)
			return w.Flush()
		},
	}
	from.AddFlags(cmd.Flags())
	return cmd
}

func listParameters(w io.Writer, p *packages.Package) {
	_, _ = fmt.Fprintln(w, "NAME\tTYPE\tDEFAULT\tREQUIRED\tIMMUTABLE\tTRIGGER")
	for i := range p.Parameters {
		o, err := p.Parameters[i].Object()
		if err != nil {
			continue // verify says so
		}
		value := ""
		if o.Default != nil {
			value = fmt.Sprintf("%q", *o.Default)
		}
		_, _ = fmt.Fprintf(w, "%s\t%s\t%s\t%t\t%t\t%s\n", o.Name, cmp.Or(o.Type, v1beta1.StringType), value, o.IsRequired(), o.IsImmutable(), o.Trigger)
	}
}

func listMaintainers(w io.Writer, p *packages.Package) {
	_, _ = fmt.Fprintln(w, "NAME\tEMAIL")
	for _, m := range p.Operator.Maintainers {
		_, _ = fmt.Fprintf(w, "%s\t%s\n", m.Name, m.Email)
	}
}

func listTasks(w io.Writer, p *packages.Package) {
	_, _ = fmt.Fprintln(w, "NAME\tKIND\tRESOURCES")
	for i := range p.Operator.Tasks {
		t := &p.Operator.Tasks[i]
		resources := t.Spec.Resources
		if t.Spec.Pod != "" {
			resources = append(resources, t.Spec.Pod)
		}
		_, _ = fmt.Fprintf(w, "%s\t%s\t%s\n", t.Name, t.Kind, strings.Join(resources, ", "))
	}
}

// listPlans prints the plans as a tree.
func listPlans(w io.Writer, p *packages.Package) {
	for _, name := range slices.Sorted(maps.Keys(p.Operator.Plans)) {
		plan := p.Operator.Plans[name]
		_, _ = fmt.Fprintf(w, "%s (%s)\n", name, cmp.Or(plan.Strategy, v1beta1.Parallel))
		for i := range plan.Phases {
			phase := &plan.Phases[i]
			_, _ = fmt.Fprintf(w, "  %s (%s)\n", phase.Name, cmp.Or(phase.Strategy, v1beta1.Parallel))
			for k := range phase.Steps {
				_, _ = fmt.Fprintf(w, "    %s: %s\n", phase.Steps[k].Name, strings.Join(phase.Steps[k].Tasks, ", "))
			}
		}
	}
}
