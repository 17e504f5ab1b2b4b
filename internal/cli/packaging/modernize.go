package packaging

import (
	"errors"
	"fmt"
	"maps"
	"slices"

	"github.com/spf13/cobra"

	"github.com/spillway-dev/spillway/internal/cli/command"
	"github.com/spillway-dev/spillway/internal/packages"
	"github.com/spillway-dev/spillway/internal/packages/modern"
)

func newModernize() *cobra.Command {
	var (
		version command.KubeVersion
		dry     bool
	)
	cmd := &cobra.Command{
		Use: "modernize DIR", Short: "Rewrite templates for the API versions that Kubernetes serves",
		Long: "Rewrite the templates of a package for the API versions that Kubernetes still serves, with\n" +
			"the fields that differ. Only the lines that must change are changed. What cannot be changed\n" +
			"with certainty stays as it is, and is named; the exit code is then 1.",
		Example: "  spillway package modernize ./kafka --dry-run\n" +
			"  spillway package modernize ./kafka && spillway package verify ./kafka",
		Args: command.Exactly(1, "name the directory of a package"),
		RunE: func(cmd *cobra.Command, args []string) error {
			p, err := packages.Load(args[0])
			if err != nil {
				return err
			}
			return modernize(cmd, p, version.Minor, dry)
		},
	}
	version.AddFlag(cmd.Flags())
	cmd.Flags().BoolVar(&dry, "dry-run", false, "print what would change, and write nothing")
	return cmd
}

// errByHand is that not all was changed.
var errByHand = errors.New("some templates must be changed by hand; see above")

func modernize(cmd *cobra.Command, p *packages.Package, minor int, dry bool) error {
	changed, byHand := map[string][]byte{}, false
	for _, name := range slices.Sorted(maps.Keys(p.Templates)) {
		text, changes := modern.Template(p.Templates[name], minor)
		if text != p.Templates[name] {
			changed["templates/"+name] = []byte(text)
		}
		for _, c := range changes {
			did := "changed"
			switch {
			case c.Manual:
				did, byHand = "by hand", true
			case dry:
				did = "would be changed"
			}
			_, _ = fmt.Fprintf(cmd.OutOrStdout(), "templates/%s:%d: %s: %s: %s\n", name, c.Line, did, c.Object, c.What)
		}
	}
	if !dry && len(changed) > 0 {
		if err := p.Rewrite(changed); err != nil {
			return err
		}
	}
	switch {
	case byHand:
		return errByHand
	case len(changed) == 0:
		_, _ = fmt.Fprintf(cmd.OutOrStdout(), "%d templates checked, nothing to change\n", len(p.Templates))
	}
	return nil
}
