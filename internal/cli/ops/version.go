package ops

import (
	"fmt"
	"io"
	"runtime"

	"github.com/spf13/cobra"

	"github.com/spillway-dev/spillway/internal/cli/command"
)

// NewVersion returns the command version.
func NewVersion() *cobra.Command {
	var output string
	cmd := &cobra.Command{
		Use:     "version",
		Short:   "Print the version",
		Example: "  spillway version -o json",
		Args:    cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			facts := map[string]string{"version": command.CurrentVersion(), "go": runtime.Version(), "platform": runtime.GOOS + "/" + runtime.GOARCH}
			return command.Show(cmd.OutOrStdout(), output, facts, func(w io.Writer) {
				_, _ = fmt.Fprintf(w, "spillway %s (%s, %s)\n", facts["version"], facts["go"], facts["platform"])
			})
		},
	}
	command.OutputFlag(cmd, &output)
	return cmd
}
