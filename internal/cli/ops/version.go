package ops

import (
	"crypto/fips140"
	"fmt"
	"io"
	"maps"
	"runtime"
	"strings"

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
		Args:    command.None("leave them out"),
		RunE: func(cmd *cobra.Command, _ []string) error {
			return command.Show(cmd.OutOrStdout(), output, versionFacts(), func(w io.Writer) {
				_, _ = io.WriteString(w, VersionLine())
			})
		},
	}
	command.OutputFlag(cmd, &output)
	return cmd
}

// VersionLine is what the command version prints, and the flag --version.
func VersionLine() string {
	facts := versionFacts()
	return fmt.Sprintf("spillway %s (%s)\n", facts["version"], described(facts))
}

// versionFacts are what is known of the program. What is not known is left out.
func versionFacts() map[string]string {
	commit, date := command.CurrentCommit()
	facts := map[string]string{
		"version": command.CurrentVersion(), "go": runtime.Version(), "platform": runtime.GOOS + "/" + runtime.GOARCH,
		"commit": commit, "date": date, "image": command.CurrentImage(),
	}
	if fips140.Enabled() {
		facts["fips140"] = "enabled"
	}
	maps.DeleteFunc(facts, func(_, value string) bool { return value == "" })
	return facts
}

// described is what stands beside the version in one line.
func described(facts map[string]string) string {
	parts := []string{facts["go"], facts["platform"]}
	const short = 12
	if commit := facts["commit"]; len(commit) > short {
		parts = append(parts, "commit "+commit[:short])
	}
	if facts["fips140"] != "" {
		parts = append(parts, "FIPS 140-3")
	}
	return strings.Join(parts, ", ")
}
