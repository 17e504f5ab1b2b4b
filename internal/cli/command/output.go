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
	OutputName   = "name"
	OutputSchema = "json-schema"
	jsonPathLead = "jsonpath="
)

// OutputFlag adds the flag that asks for another form than text: json, yaml, a JSONPath,
// or one of some more.
func OutputFlag(cmd *cobra.Command, output *string, more ...string) {
	outputFlag(cmd, &form{output, append([]string{OutputJSON, OutputYAML}, more...), true})
}

// NameFlag adds the flag that asks for names alone.
func NameFlag(cmd *cobra.Command, output *string) {
	outputFlag(cmd, &form{output, []string{OutputName}, false})
}

func outputFlag(cmd *cobra.Command, f *form) {
	cmd.Flags().VarP(f, "output", "o", "output format: "+f.choices()+" (default: text)")
	cmd.Flags().Lookup("output").Annotations = map[string][]string{FlagWords: f.words}
}

// FlagWords is the annotation of flags that take one of a few words, for their completion.
const FlagWords = "spillway.dev/flag-words"

// form is the value of --output, which is refused before anything is asked or written.
type form struct {
	output *string
	words  []string
	path   bool
}

// String implements [pflag.Value].
func (f *form) String() string { return *f.output }

// Type implements [pflag.Value].
func (f *form) Type() string { return "string" }

// Set implements [pflag.Value].
func (f *form) Set(output string) error {
	if path, ok := strings.CutPrefix(output, jsonPathLead); ok && f.path {
		if _, err := parsePath(path); err != nil {
			return err
		}
	} else if output != "" && !slices.Contains(f.words, output) {
		return formError(fmt.Sprintf("%q is not known; use %s, or leave it out", output, f.choices()))
	}
	*f.output = output
	return nil
}

// choices are the forms in words.
func (f *form) choices() string {
	all := slices.Clone(f.words)
	if f.path {
		all = append(all, jsonPathLead+"TEMPLATE")
	}
	last := len(all) - 1
	if last == 0 {
		return all[0]
	}
	return strings.Join(all[:last], ", ") + " or " + all[last]
}

// formError says what is wrong with --output.
type formError string

// Error implements error.
func (e formError) Error() string { return string(e) }

func parsePath(path string) (*jsonpath.JSONPath, error) {
	j := jsonpath.New("output").AllowMissingKeys(true)
	if err := j.Parse(path); err != nil {
		return nil, formError(fmt.Sprintf("%q is no JSONPath template: %s; write it as '{.name}'", path, err))
	}
	return j, nil
}

// Show writes a value for machines, or for people.
func Show(w io.Writer, output string, value any, forPeople func(io.Writer)) error {
	if output == "" {
		forPeople(w)
		return nil
	}
	w = display.Raw(w)
	switch path, isPath := strings.CutPrefix(output, jsonPathLead); {
	case isPath:
		return writePath(w, path, value)
	case output == OutputYAML:
		return writeYAML(w, value)
	default:
		return writeJSON(w, value, "  ")
	}
}

// ShowNext writes one of many values that come one after another: of JSON a line, of YAML a
// document.
func ShowNext(w io.Writer, output string, value any, forPeople func(io.Writer)) error {
	switch {
	case output == OutputJSON:
		return writeJSON(display.Raw(w), value, "")
	case output == OutputYAML:
		_, _ = fmt.Fprintln(w, "---")
	case strings.HasPrefix(output, jsonPathLead):
		defer func() { _, _ = fmt.Fprintln(w) }()
	}
	return Show(w, output, value, forPeople)
}

func writeYAML(w io.Writer, value any) error {
	raw, err := yaml.Marshal(value)
	if err != nil {
		return fmt.Errorf("write YAML: %w", err)
	}
	_, err = w.Write(raw)
	return err //nolint:wrapcheck // of the writer
}

func writeJSON(w io.Writer, value any, indent string) error {
	encoder := json.NewEncoder(w)
	encoder.SetIndent("", indent)
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
