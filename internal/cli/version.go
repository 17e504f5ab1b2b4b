package cli

import (
	"encoding/json"
	"fmt"
	"io"
	"runtime"
	"runtime/debug"

	"github.com/spf13/cobra"
)

// Version is set when a release is built.
var Version = "" //nolint:gochecknoglobals // set by the linker

// version is the release's, or that of the module, or "dev".
func version() string {
	if Version != "" {
		return Version
	}
	if info, ok := debug.ReadBuildInfo(); ok && info.Main.Version != "" && info.Main.Version != "(devel)" {
		return info.Main.Version
	}
	return "dev"
}

func newVersion() *cobra.Command {
	var output string
	cmd := &cobra.Command{
		Use:     "version",
		Short:   "Print the version",
		Example: "  spillway version -o json",
		Args:    cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			facts := map[string]string{"version": version(), "go": runtime.Version(), "platform": runtime.GOOS + "/" + runtime.GOARCH}
			return show(cmd.OutOrStdout(), output, facts, func(w io.Writer) {
				_, _ = fmt.Fprintf(w, "spillway %s (%s, %s)\n", facts["version"], facts["go"], facts["platform"])
			})
		},
	}
	outputFlag(cmd, &output)
	return cmd
}

func outputFlag(cmd *cobra.Command, output *string) {
	cmd.Flags().StringVarP(output, "output", "o", "", `"json", or empty for people`)
}

// show writes a value as JSON, or for people.
func show(w io.Writer, output string, value any, forPeople func(io.Writer)) error {
	switch output {
	case "":
		forPeople(w)
		return nil
	case "json":
		encoder := json.NewEncoder(w)
		encoder.SetIndent("", "  ")
		encoder.SetEscapeHTML(false)
		if err := encoder.Encode(value); err != nil {
			return fmt.Errorf("write JSON: %w", err)
		}
		return nil
	default:
		return fmt.Errorf("--output: %q is not known; use json or leave it out", output)
	}
}
