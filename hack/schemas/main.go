// Command schemas writes the JSON schemas of what the pages of the dashboard and the commands
// beside them answer, from the types and their comments, into docs/schemas of the folder that
// it runs in, which must be the root of the module.
package main

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"

	"github.com/spillway-dev/spillway/internal/describe"
	"github.com/spillway-dev/spillway/internal/describe/explain"
	"github.com/spillway-dev/spillway/internal/describe/history"
	"github.com/spillway-dev/spillway/internal/simulate/forecast"
)

// failure is what a page answers that cannot be shown.
type failure struct {
	// Error says why, in a sentence.
	Error string `json:"error"`
}

// answers are what has a schema, by its name, with what it is of.
var answers = map[string]struct {
	title string
	of    any
}{
	"status":     {"spillway status -o json, and the page /", describe.Description{}},
	"explain":    {"spillway explain KIND/NAME -o json, and the page /why/KIND/NAME", explain.Chain{}},
	"forecast":   {"spillway forecast -o json, and the page /next", forecast.Answer{}},
	"rollouts":   {"the page /past", []describe.Unit{}},
	"history":    {"spillway history KIND/NAME -o json, and the page /past/KIND/NAME", []history.Entry{}},
	"comparison": {"spillway history KIND/NAME --compare A,B -o json, and the page /past/KIND/NAME?compare=A&compare=B", history.Comparison{}},
	"error":      {"any page that cannot be shown", failure{}},
}

func main() {
	if err := write(filepath.Join("docs", "schemas")); err != nil {
		fmt.Fprintln(os.Stderr, "error:", err)
		os.Exit(1)
	}
}

func write(dir string) error {
	all, err := schemas()
	if err != nil {
		return err
	}
	if err := os.MkdirAll(dir, 0o750); err != nil {
		return fmt.Errorf("write the schemas: %w", err)
	}
	for name, schema := range all {
		raw, err := json.MarshalIndent(schema, "", "  ")
		if err != nil {
			return fmt.Errorf("write the schema of %s: %w", name, err)
		}
		if err := os.WriteFile(filepath.Join(dir, name+".json"), append(raw, '\n'), 0o600); err != nil {
			return fmt.Errorf("write the schemas: %w", err)
		}
	}
	return nil
}
