package offline

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"text/tabwriter"

	"github.com/spf13/cobra"

	"github.com/spillway-dev/spillway/internal/cli/command"
	"github.com/spillway-dev/spillway/internal/lint/report"
	"github.com/spillway-dev/spillway/internal/packages/repository"
)

// PackageCommands returns the commands about packages that need no cluster.
func PackageCommands(env command.Environment) []*cobra.Command {
	return []*cobra.Command{NewRepo(env), NewSearch(env), newPush(env), newModernize(), newNew(), NewAdd()}
}

// NewRepo returns the command repo, which KUDO has as well.
func NewRepo(env command.Environment) *cobra.Command {
	cmd := &cobra.Command{
		Use: "repo", Short: "Manage repositories of packages",
		Long: "Manage repositories of packages: a file index.yaml, and the archives that it names, served\n" +
			"over HTTP. The list of repositories is the one of KUDO, ~/.kudo/repository/repositories.yaml.",
	}
	cmd.AddCommand(newRepoAdd(env), newRepoList(env), newRepoIndex(env),
		newRepoEdit(env, "remove", "Remove a repository from the list", "removed", (*repository.List).Remove),
		newRepoEdit(env, "context", "Set the repository that is used where none is named", "is used where none is named", (*repository.List).SetContext))
	return cmd
}

type repositories struct {
	env  command.Environment
	home command.KUDOHome
}

func (l *repositories) change(edit func(*repository.List) error) error {
	home := l.home.Dir(l.env.Lookup)
	list, err := repository.Open(home)
	if err != nil {
		return err
	}
	if err := edit(list); err != nil {
		return err
	}
	return list.Save(home)
}

func newRepoAdd(env command.Environment) *cobra.Command {
	l, skipCheck := repositories{env: env}, false
	cmd := &cobra.Command{
		Use: "add NAME URL", Short: "Add a repository of packages",
		Long:    "Add a repository of packages, after its index was read. The first one becomes the context.",
		Example: "  spillway package repo add team https://packages.example.com",
		Args:    command.Exactly(2, "name the repository and its address, as in: spillway package repo add team https://packages.example.com"),
		RunE: func(cmd *cobra.Command, args []string) error {
			r := repository.Repository{Name: args[0], URL: args[1]}
			if !skipCheck {
				if _, err := repository.NewClient().Index(cmd.Context(), r); err != nil {
					return fmt.Errorf("%w; to add it all the same, add --skip-check", err)
				}
			}
			if err := l.change(func(list *repository.List) error { return list.Add(r) }); err != nil {
				return err
			}
			_, _ = fmt.Fprintf(cmd.OutOrStdout(), "repository %s added\n", r.Name)
			return nil
		},
	}
	l.home.AddFlag(cmd.Flags())
	cmd.Flags().BoolVarP(&skipCheck, "skip-check", "f", false, "do not read the index first")
	return cmd
}

// newRepoEdit is a command that does something with a repository of the list, and says what.
func newRepoEdit(env command.Environment, verb, short, done string, edit func(*repository.List, string) error) *cobra.Command {
	l := repositories{env: env}
	cmd := &cobra.Command{
		Use: verb + " REPOSITORY", Short: short,
		Example: "  spillway package repo " + verb + " team",
		Args:    command.Exactly(1, "name the repository; see all with: spillway package repo list"),
		RunE: func(cmd *cobra.Command, args []string) error {
			if err := l.change(func(list *repository.List) error { return edit(list, args[0]) }); err != nil {
				return err
			}
			_, _ = fmt.Fprintf(cmd.OutOrStdout(), "repository %s %s\n", args[0], done)
			return nil
		},
	}
	l.home.AddFlag(cmd.Flags())
	return cmd
}

func newRepoList(env command.Environment) *cobra.Command {
	l, output := repositories{env: env}, ""
	cmd := &cobra.Command{
		Use: "list", Short: "List the repositories; * is the one that is used where none is named",
		Example: "  spillway package repo list",
		Args:    command.None("see its help"),
		RunE: func(cmd *cobra.Command, _ []string) error {
			list, err := repository.Open(l.home.Dir(env.Lookup))
			if err != nil {
				return err
			}
			return command.Show(cmd.OutOrStdout(), output, list, func(w io.Writer) { writeRepositories(w, list) })
		},
	}
	l.home.AddFlag(cmd.Flags())
	command.OutputFlag(cmd, &output)
	return cmd
}

func writeRepositories(w io.Writer, list *repository.List) {
	if len(list.Repositories) == 0 {
		_, _ = fmt.Fprintln(w, "No repository is configured. To add one: spillway package repo add NAME URL")
		return
	}
	table := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	_, _ = fmt.Fprintln(table, "NAME\tURL")
	for _, r := range list.Repositories {
		name := r.Name
		if name == list.Context {
			name = "*" + name
		}
		_, _ = fmt.Fprintf(table, "%s\t%s\n", name, r.URL)
	}
	_ = table.Flush()
}

type indexing struct {
	repositories

	served, servedBy, merged, mergedAt string
	overwrite, dry                     bool
}

func newRepoIndex(env command.Environment) *cobra.Command {
	x := indexing{repositories: repositories{env: env}}
	cmd := &cobra.Command{
		Use: "index DIR", Short: "Write the index of a directory of archives",
		Long: "Write index.yaml for a directory of archives (.tgz), with the digest of each. Serve the\n" +
			"directory over HTTP, and it is a repository. With --merge or --merge-repo, versions that only\n" +
			"another repository has are added. For the same archives, the index is the same to the byte.",
		Example: "  spillway package repo index dist --url https://packages.example.com\n" +
			"  spillway package repo index dist --url-repo team --merge-repo team",
		Args: command.Exactly(1, "name the directory with the archives"),
		RunE: func(cmd *cobra.Command, args []string) error { return x.run(cmd, args[0]) },
	}
	flags := cmd.Flags()
	x.home.AddFlag(flags)
	flags.StringVar(&x.served, "url", "", "address at which the directory will be served")
	flags.StringVar(&x.servedBy, "url-repo", "", "repository of the list at whose address the directory will be served")
	flags.StringVar(&x.mergedAt, "merge", "", "address or path of an index that is merged into this one, or of the directory that it is in")
	flags.StringVar(&x.merged, "merge-repo", "", "repository of the list whose index is merged into this one")
	flags.BoolVarP(&x.overwrite, "overwrite", "w", false, "replace an index that exists")
	flags.BoolVar(&x.dry, "dry-run", false, "print the index, and write nothing")
	return cmd
}

func (x *indexing) run(cmd *cobra.Command, dir string) error {
	list, err := repository.Open(x.home.Dir(x.env.Lookup))
	if err != nil {
		return err
	}
	served, err := x.address(list)
	if err != nil {
		return err
	}
	index, err := repository.IndexOf(dir, served)
	if err != nil {
		return err
	}
	if err := x.merge(cmd.Context(), list, index); err != nil {
		return err
	}
	raw, err := index.Write()
	if err != nil {
		return err
	}
	if x.dry {
		_, _ = cmd.OutOrStdout().Write(raw)
		return nil
	}
	path := filepath.Join(dir, "index.yaml")
	if _, err := os.Stat(path); !errors.Is(err, fs.ErrNotExist) && !x.overwrite {
		return fmt.Errorf("%s exists; to replace it, add --overwrite", path)
	}
	if err := repository.Replace(path, raw); err != nil {
		return err
	}
	_, _ = fmt.Fprintf(cmd.OutOrStdout(), "%s written: %s\n", path, report.Plural(len(index.Entries), "package"))
	return nil
}

func (x *indexing) address(list *repository.List) (string, error) {
	switch {
	case x.served != "" && x.servedBy != "":
		return "", errors.New("--url and --url-repo contradict each other; leave one out")
	case x.servedBy != "":
		r, err := list.Get(x.servedBy)
		return r.URL, err
	case !strings.HasPrefix(x.served, "http://") && !strings.HasPrefix(x.served, "https://"):
		return "", errors.New("--url: name the address at which the directory will be served, such as https://packages.example.com")
	default:
		return x.served, nil
	}
}

func (x *indexing) merge(ctx context.Context, list *repository.List, index *repository.Index) error {
	var (
		other *repository.Index
		err   error
	)
	switch c := repository.NewClient(); {
	case x.merged != "" && x.mergedAt != "":
		return errors.New("--merge and --merge-repo contradict each other; leave one out")
	case x.mergedAt != "":
		other, err = c.IndexAt(ctx, x.mergedAt)
	case x.merged != "":
		var from repository.Repository
		if from, err = list.Get(x.merged); err == nil {
			other, err = c.Index(ctx, from)
		}
	default:
		return nil
	}
	if err == nil {
		index.Merge(other)
	}
	return err
}

// NewSearch returns the command search, which KUDO has as well.
func NewSearch(env command.Environment) *cobra.Command {
	var (
		from   command.Packages
		all    bool
		output string
	)
	cmd := &cobra.Command{
		Use: "search [TEXT]", Short: "Find packages in a repository",
		Long:    "Find the packages of a repository that have a text in their name, or all of them.",
		Example: "  spillway package search kafka --all-versions",
		Args:    command.AtMost(1, "name a part of the name"),
		RunE: func(cmd *cobra.Command, args []string) error {
			origin := from.Origin(env)
			list, err := repository.Open(origin.Home)
			if err != nil {
				return err
			}
			r, err := list.Get(origin.Repository)
			if err != nil {
				return err
			}
			index, err := repository.NewClient().Index(cmd.Context(), r)
			if err != nil {
				return err
			}
			found := append([]repository.Entry{}, index.Search(first(args), all)...)
			return command.Show(cmd.OutOrStdout(), output, found, func(w io.Writer) { writeFound(w, r.Name, first(args), found) })
		},
	}
	from.Home.AddFlag(cmd.Flags())
	from.AddRepositoryFlag(cmd.Flags())
	cmd.Flags().BoolVarP(&all, "all-versions", "a", false, "show all versions, not only the latest")
	command.OutputFlag(cmd, &output)
	return cmd
}

// first is the first argument, empty if there is none.
func first(args []string) string {
	if len(args) == 0 {
		return ""
	}
	return args[0]
}

func writeFound(w io.Writer, from, text string, found []repository.Entry) {
	switch {
	case len(found) > 0:
	case text == "":
		_, _ = fmt.Fprintf(w, "repository %s has no packages\n", from)
		return
	default:
		_, _ = fmt.Fprintf(w, "no package of repository %s has that text in its name; to see all: spillway package search --repo %s\n", from, from)
		return
	}
	table := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	_, _ = fmt.Fprintln(table, "NAME\tVERSION\tAPP VERSION\tDESCRIPTION")
	for i := range found {
		e := &found[i]
		_, _ = fmt.Fprintf(table, "%s\t%s\t%s\t%s\n", e.Name, e.OperatorVersion, e.AppVersion, e.Description)
	}
	_ = table.Flush()
}

func newPush(env command.Environment) *cobra.Command {
	var from command.Packages
	cmd := &cobra.Command{
		Use: "push PACKAGE oci://REGISTRY/NAME:TAG", Short: "Push a package to a registry, and print its digest",
		Long: "Push a package to a registry as an OCI artifact, with the credentials of Docker's\n" +
			"configuration, and print the reference with its digest. For the same files the digest is\n" +
			"the same. Name a package by its digest, and no other content is ever installed.",
		Example: "  spillway package push ./zookeeper oci://registry.example.com/zookeeper:0.3.0",
		Args:    command.Exactly(2, "name a package and where to push it, as in: spillway package push ./zookeeper oci://registry.example.com/zookeeper:0.3.0"),
		RunE: func(cmd *cobra.Command, args []string) error {
			p, err := from.Load(cmd.Context(), env, args[0])
			if err != nil {
				return err
			}
			digest, err := from.Origin(env).Push(cmd.Context(), p, args[1])
			if err != nil {
				return err
			}
			_, _ = fmt.Fprintf(cmd.OutOrStdout(), "%s@%s\n", args[1], digest)
			return nil
		},
	}
	from.AddFlags(cmd.Flags())
	return cmd
}
