package packaging

import (
	"fmt"
	"io"
	"text/tabwriter"

	"github.com/spf13/cobra"

	"github.com/spillway-dev/spillway/internal/cli/command"
	"github.com/spillway-dev/spillway/internal/packages/repository"
)

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
