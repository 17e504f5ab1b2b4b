package kudo

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/spillway-dev/spillway/api/kudo/v1beta1"
	"github.com/spillway-dev/spillway/internal/cli/command"
	"github.com/spillway-dev/spillway/internal/cli/offline"
	"github.com/spillway-dev/spillway/internal/packages"
)

// packageWord begins the commands about packages.
const packageWord = "package"

// passed is a command with the same arguments and flags in this program.
func (g *grammar) passed(use, short string, words []string, more func() []string) *cobra.Command {
	return &cobra.Command{
		Use: use, Short: short, DisableFlagParsing: true,
		RunE: func(cmd *cobra.Command, args []string) error {
			return g.call(cmd, append(append(append([]string{}, words...), args...), more()...)...)
		},
	}
}

func none() []string { return nil }

func (g *grammar) packages() *cobra.Command {
	cmd := &cobra.Command{Use: packageWord, Short: "Write, check and pack packages"}
	cmd.AddCommand(g.create(), g.verify(),
		g.newPackage(), g.list(), g.add())
	return cmd
}

// add also takes KUDO's form, which names no directory, and asks for what is not given.
func (g *grammar) add() *cobra.Command {
	return &cobra.Command{
		Use: "add maintainer|parameter|plan|task", Short: "Add to the package in this directory, or in operator", DisableFlagParsing: true,
		RunE: func(cmd *cobra.Command, args []string) error {
			all := append([]string{packageWord, "add"}, args...)
			asks := len(args) == 1 || len(args) == 2 && (args[1] == "-i" || args[1] == "--interactive")
			isNamed := len(args) == 3 && args[0] == "maintainer"
			if !asks && !isNamed || strings.HasPrefix(args[0], "-") {
				return g.call(cmd, all...)
			}
			dir, err := packageHere()
			if err != nil {
				return err
			}
			all = slices.Insert(all, len(all)-len(args)+1, dir)
			if len(args) == 1 {
				all = append(all, "--interactive")
			}
			return g.call(cmd, all...)
		},
	}
}

// packageHere is the directory in which KUDO's command finds the package to change.
func packageHere() (string, error) {
	for _, dir := range []string{".", "operator"} {
		if packages.IsPackage(dir) {
			return dir, nil
		}
	}
	return "", errors.New("there is no package in this directory, nor in operator; change to its directory, or name it, as in: kubectl kudo package add parameter ./shop COLOR")
}

func (g *grammar) newPackage() *cobra.Command {
	var interactive, overwrite bool
	cmd := &cobra.Command{
		Use: "new NAME", Short: "Write a new package to begin with, to the directory operator",
		RunE: func(cmd *cobra.Command, args []string) error {
			all := append([]string{packageWord, "new", "--dir", "operator"}, args...)
			if overwrite {
				all = append(all, "--overwrite")
			}
			if interactive {
				all = append(all, "--interactive")
			}
			return g.call(cmd, all...)
		},
	}
	cmd.Flags().BoolVarP(&interactive, "interactive", "i", false, "ask what the package says of itself")
	cmd.Flags().BoolVarP(&overwrite, "overwrite", "w", false, "replace the files of a package that exists")
	return cmd
}

func (g *grammar) create() *cobra.Command {
	var (
		destination string
		overwrite   bool
	)
	cmd := &cobra.Command{
		Use: "create DIR", Short: "Pack a package into an archive",
		Args: command.Exactly(1, "name the directory of a package"),
		RunE: func(cmd *cobra.Command, args []string) error {
			path, err := pack(args[0], destination, overwrite)
			if err != nil {
				return inGrammar(err)
			}
			_, _ = fmt.Fprintf(cmd.OutOrStdout(), "Package created: %s\n", path)
			return nil
		},
	}
	cmd.Flags().StringVarP(&destination, "destination", "d", ".", "the directory to write the archive into")
	cmd.Flags().BoolVarP(&overwrite, "overwrite", "w", false, "replace an archive that exists")
	return cmd
}

// pack writes the archive of a package into a directory, and returns where. It replaces an archive
// only if that was asked for.
func pack(dir, destination string, overwrite bool) (path string, err error) {
	p, err := packages.Load(dir)
	if err != nil {
		return "", err
	}
	path = filepath.Join(destination, p.ArchiveName())
	if _, err := os.Stat(path); err == nil && !overwrite {
		return "", fmt.Errorf("%s exists; to replace it, add --overwrite", path)
	}
	if err := offline.Pack(p, path); err != nil {
		return "", err
	}
	if absolute, err := filepath.Abs(path); err == nil {
		path = absolute
	}
	return path, nil
}

// asPath is a directory as a path: these commands do not look into repositories.
func asPath(dir string) string {
	if filepath.IsAbs(dir) || strings.HasPrefix(dir, ".") {
		return dir
	}
	return "./" + dir
}

func (g *grammar) verify() *cobra.Command {
	var (
		output      string
		paramChecks bool
	)
	cmd := &cobra.Command{
		Use: "verify PACKAGE", Short: "Check a package",
		Args: command.Exactly(1, "name the directory or the archive of a package"),
		RunE: func(cmd *cobra.Command, args []string) error {
			if output != "" {
				return g.call(cmd, packageWord, "verify", asPath(args[0]), "-o", output)
			}
			var out bytes.Buffer
			err := g.run(cmd.Context(), &out, packageWord, "verify", asPath(args[0]))
			if all := strings.SplitAfter(strings.TrimRight(out.String(), "\n"), "\n"); len(all) > 1 { // the last line counts the findings
				_, _ = io.WriteString(cmd.OutOrStdout(), strings.Join(all[:len(all)-1], ""))
			}
			if err != nil {
				return err
			}
			if paramChecks {
				if err := writeUndescribed(cmd.OutOrStdout(), args[0]); err != nil {
					return err
				}
			}
			_, _ = fmt.Fprintln(cmd.OutOrStdout(), "package is valid")
			return nil
		},
	}
	cmd.Flags().StringVarP(&output, "output", "o", "", "output format: json or sarif (default: text)")
	cmd.Flags().BoolVar(&paramChecks, "param-checks", false, "also name parameters that say too little to those who set them")
	return cmd
}

// writeUndescribed names the parameters without a name for people, a description or a type.
func writeUndescribed(w io.Writer, from string) error {
	p, err := packages.Load(from)
	if err != nil {
		return err
	}
	for i := range p.Parameters {
		parameter := &p.Parameters[i]
		for _, field := range [][2]string{{"displayName", parameter.DisplayName}, {"description", parameter.Description}, {"type", string(parameter.Type)}} {
			if field[1] == "" {
				_, _ = fmt.Fprintf(w, "warning: parameter %s has no %s\n", parameter.Name, field[0])
			}
		}
	}
	return nil
}

func (g *grammar) repo() *cobra.Command {
	cmd := &cobra.Command{Use: "repo", Short: "Manage repositories of packages"}
	for use, short := range map[string]string{"add NAME URL": "Add a repository", "remove REPOSITORY": "Remove a repository", "list": "List the repositories", "context REPOSITORY": "Set the repository that is used where none is named"} {
		name, _, _ := strings.Cut(use, " ")
		cmd.AddCommand(g.passed(use, short, []string{packageWord, "repo", name}, none))
	}
	cmd.AddCommand(g.index())
	return cmd
}

func (g *grammar) index() *cobra.Command {
	var (
		served, servedBy, merged string
		overwrite                bool
	)
	cmd := &cobra.Command{
		Use: "index DIR", Short: "Write the index of a directory of archives",
		Args: command.Exactly(1, "name the directory with the archives"),
		RunE: func(cmd *cobra.Command, args []string) error {
			all := append([]string{packageWord, "repo", "index", args[0]}, g.atHome()...)
			if servedBy == "" {
				all = append(all, "--url", served)
			} else {
				all = append(all, "--url-repo", servedBy)
			}
			if merged != "" {
				all = append(all, "--merge-repo", merged)
			}
			if overwrite {
				all = append(all, "--overwrite")
			}
			if err := g.run(cmd.Context(), io.Discard, all...); err != nil {
				return err
			}
			path, err := filepath.Abs(filepath.Join(args[0], "index.yaml"))
			_, _ = fmt.Fprintf(cmd.OutOrStdout(), "index %s created.\n", path)
			return err //nolint:wrapcheck // of the working directory
		},
	}
	cmd.Flags().StringVar(&served, "url", "http://localhost", "address at which the directory will be served")
	cmd.Flags().StringVar(&servedBy, "url-repo", "", "repository at whose address the directory will be served")
	cmd.Flags().StringVar(&merged, "merge-repo", "", "repository whose index is merged")
	cmd.Flags().BoolVarP(&overwrite, "overwrite", "w", false, "replace an index that exists")
	return cmd
}

func (g *grammar) search() *cobra.Command {
	return g.passed("search [TEXT]", "Find packages in a repository", []string{packageWord, "search"}, none)
}

func (g *grammar) diagnostics() *cobra.Command {
	var (
		s                   settings
		directory, logSince string
	)
	cmd := &cobra.Command{Use: "diagnostics", Short: "Collect what is needed to find the cause of a failure"}
	collect := &cobra.Command{
		Use: "collect", Short: "Write manifests, events and logs of an Instance to a directory",
		RunE: func(cmd *cobra.Command, _ []string) error {
			instance, err := s.named()
			if err != nil {
				return err
			}
			all := append([]string{packageWord, "diagnostics", instance, "--output-directory", directory}, g.cluster()...)
			if logSince != "" {
				all = append(all, "--log-since", logSince)
			}
			return g.call(cmd, all...)
		},
	}
	s.addInstance(collect, "name of the Instance")
	collect.Flags().StringVar(&logSince, "log-since", "", "only logs that are newer, such as 10m (default: all)")
	collect.Flags().StringVarP(&directory, "output-directory", "O", "diag", "the directory to create")
	cmd.AddCommand(collect)
	return cmd
}

func (g *grammar) get() *cobra.Command {
	var output string
	cmd := &cobra.Command{
		Use: "get instances|operators|operatorversions|all", Short: "List what is installed",
		Args: command.Exactly(1, "name instances, operators, operatorversions or all"),
		RunE: func(cmd *cobra.Command, args []string) error {
			if output != "" || args[0] != "instances" {
				all := append([]string{packageWord, "get", args[0]}, g.cluster()...)
				if output != "" {
					all = append(all, "-o", output)
				}
				return g.call(cmd, all...)
			}
			return g.writeInstances(cmd)
		},
	}
	cmd.Flags().StringVarP(&output, "output", "o", "", "output format: yaml or json (default: text)")
	return cmd
}

func (g *grammar) writeInstances(cmd *cobra.Command) error {
	c, err := g.client()
	if err != nil {
		return err
	}
	list := &v1beta1.InstanceList{}
	if err := c.List(cmd.Context(), list, client.InNamespace(g.namespace)); err != nil {
		return fmt.Errorf("list instances: %w", err)
	}
	var nodes []node
	for i := range list.Items {
		nodes = append(nodes, node{text: list.Items[i].Name})
	}
	_, _ = fmt.Fprintf(cmd.OutOrStdout(), "List of current installed instances in namespace %q:\n", g.namespace)
	writeTree(cmd.OutOrStdout(), nodes)
	return nil
}
