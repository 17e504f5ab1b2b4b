package command

import (
	"encoding/json"
	"fmt"
	"io"

	"github.com/spf13/cobra"

	"github.com/spillway-dev/spillway/internal/cli/display"
)

// OutputFlag adds the flag that asks for JSON.
func OutputFlag(cmd *cobra.Command, output *string) {
	cmd.Flags().StringVarP(output, "output", "o", "", `output format: "json" (default: text)`)
}

// Show writes a value as JSON, or for people.
func Show(w io.Writer, output string, value any, forPeople func(io.Writer)) error {
	switch output {
	case "":
		forPeople(w)
		return nil
	case "json":
		encoder := json.NewEncoder(display.Raw(w))
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
