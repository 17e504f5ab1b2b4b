package command

import (
	"encoding/json"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"k8s.io/client-go/util/jsonpath"
	"sigs.k8s.io/yaml"

	"github.com/spillway-dev/spillway/internal/cli/display"
)

// The forms of output for machines. A JSONPath follows its name, as for kubectl.
const (
	OutputJSON   = "json"
	OutputYAML   = "yaml"
	jsonPathLead = "jsonpath="
)

// OutputFlag adds the flag that asks for another form than text.
func OutputFlag(cmd *cobra.Command, output *string) {
	cmd.Flags().StringVarP(output, "output", "o", "", `output format: json, yaml or jsonpath=TEMPLATE (default: text)`)
}

// CheckOutput refuses a form of output that is none of the common ones and none of some
// more.
func CheckOutput(output string, more ...string) error {
	forms := append([]string{OutputJSON, OutputYAML}, more...)
	if output == "" || slices.Contains(forms, output) {
		return nil
	}
	if path, ok := strings.CutPrefix(output, jsonPathLead); ok {
		_, err := parsePath(path)
		return err
	}
	return fmt.Errorf("--output: %q is not known; use %s or jsonpath=TEMPLATE, or leave it out", output, strings.Join(forms, ", "))
}

func parsePath(path string) (*jsonpath.JSONPath, error) {
	j := jsonpath.New("output").AllowMissingKeys(true)
	if err := j.Parse(path); err != nil {
		return nil, fmt.Errorf("--output: %q is no JSONPath template: %w; write it as '{.name}'", path, err)
	}
	return j, nil
}

// Show writes a value for machines, or for people.
func Show(w io.Writer, output string, value any, forPeople func(io.Writer)) error {
	if output == "" {
		forPeople(w)
		return nil
	}
	if err := CheckOutput(output); err != nil {
		return err
	}
	w = display.Raw(w)
	switch path, isPath := strings.CutPrefix(output, jsonPathLead); {
	case isPath:
		return writePath(w, path, value)
	case output == OutputYAML:
		raw, err := yaml.Marshal(value)
		if err != nil {
			return fmt.Errorf("write YAML: %w", err)
		}
		_, err = w.Write(raw)
		return err //nolint:wrapcheck // of the writer
	}
	encoder := json.NewEncoder(w)
	encoder.SetIndent("", "  ")
	encoder.SetEscapeHTML(false)
	if err := encoder.Encode(value); err != nil {
		return fmt.Errorf("write JSON: %w", err)
	}
	return nil
}

// writePath writes what a JSONPath finds in the JSON of a value.
func writePath(w io.Writer, path string, value any) error {
	j, err := parsePath(path)
	if err != nil {
		return err
	}
	raw, err := json.Marshal(value)
	if err != nil {
		return fmt.Errorf("write JSON: %w", err)
	}
	var content any
	if err := json.Unmarshal(raw, &content); err != nil {
		return fmt.Errorf("read JSON: %w", err)
	}
	if err := j.Execute(w, content); err != nil {
		return fmt.Errorf("--output: %w", err)
	}
	return nil
}
