package offline

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/spf13/cobra"
	"sigs.k8s.io/yaml"

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
