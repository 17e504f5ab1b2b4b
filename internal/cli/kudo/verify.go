package kudo

import (
	"bytes"
	"cmp"
	"encoding/json"
	"fmt"
	"io"
	"path/filepath"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/spf13/cobra"

	"github.com/spillway-dev/spillway/internal/cli/command"
	"github.com/spillway-dev/spillway/internal/lint/report"
	"github.com/spillway-dev/spillway/internal/packages"
)

// verdict is the result of verify, in KUDO's shape.
type verdict struct {
	Errors   []string `json:"errors"`
	Warnings []string `json:"warnings"`
	Valid    bool     `json:"valid"`
}

func (v *verdict) write(w io.Writer) {
	for _, part := range []struct {
		heading string
		lines   []string
	}{{"Warnings", v.Warnings}, {"Errors", v.Errors}} {
		if len(part.lines) > 0 {
			_, _ = fmt.Fprintf(w, "%s\n%s\n", part.heading, strings.Join(part.lines, "\n"))
		}
	}
	if v.Valid {
		_, _ = fmt.Fprintln(w, "package is valid")
	}
}

func (g *grammar) verify() *cobra.Command {
	var (
		output string
		checks []string
	)
	cmd := &cobra.Command{
		Use: "verify PACKAGE", Short: "Check a package",
		Args: command.Exactly(1, "name the directory or the archive of a package"),
		RunE: func(cmd *cobra.Command, args []string) error {
			for _, check := range checks {
				if !slices.Contains(parameterChecks, check) {
					return fmt.Errorf("--param-checks: %q is not known; use %s", check, strings.Join(parameterChecks, ", "))
				}
			}
			return g.showVerdict(cmd, args[0], checks, output)
		},
	}
	command.OutputFlag(cmd, &output)
	cmd.Flags().StringSliceVar(&checks, "param-checks", nil, "also check what parameters say to people: "+strings.Join(parameterChecks, ", "))
	return cmd
}

// showVerdict checks a package, with parameterChecks that are named, and fails if it has errors.
func (g *grammar) showVerdict(cmd *cobra.Command, from string, checks []string, output string) error {
	from = asPath(from)
	var raw bytes.Buffer
	failed := g.run(cmd.Context(), &raw, packageWord, "verify", from, "-o", "json")
	var findings []report.Finding
	if err := json.Unmarshal(raw.Bytes(), &findings); err != nil {
		if failed != nil {
			return failed
		}
		return fmt.Errorf("read the findings: %w", err)
	}
	v := verdict{Errors: []string{}, Warnings: []string{}, Valid: failed == nil}
	for i := range findings {
		f := &findings[i]
		text := fmt.Sprintf("%s: %s; %s [%s]", f.Place(), f.Message, f.Action, f.Code)
		if f.Level == report.Error {
			v.Errors = append(v.Errors, text)
		} else {
			v.Warnings = append(v.Warnings, text)
		}
	}
	if p, err := packages.Load(from); err == nil { // otherwise that is one of the errors
		v.Warnings = append(v.Warnings, undescribed(p, checks)...)
	}
	if err := command.Show(cmd.OutOrStdout(), output, &v, v.write); err != nil {
		return err
	}
	return failed
}

// asPath is a directory as a path: these commands do not look into repositories.
func asPath(dir string) string {
	if filepath.IsAbs(dir) || strings.HasPrefix(dir, ".") {
		return dir
	}
	return "./" + dir
}

// parameterChecks are what --param-checks may name.
var parameterChecks = []string{"display", "hint", "desc", "type", "hasgroup", "groups", "all"}

// undescribed says which parameters and groups say too little to those who set them, in KUDO's rules.
func undescribed(p *packages.Package, checks []string) (warnings []string) {
	warn := func(check, what, name, problem string) {
		if problem != "" && (slices.Contains(checks, check) || slices.Contains(checks, "all")) {
			warnings = append(warnings, fmt.Sprintf("%s %q %s", what, name, problem))
		}
	}
	for i := range p.Parameters {
		q := &p.Parameters[i]
		warn("display", "parameter", q.Name, untitled(q.DisplayName))
		warn("hint", "parameter", q.Name, unfinished("hint", q.Hint, "."))
		warn("desc", "parameter", q.Name, cmp.Or(unfinished("description", q.Description, ".!?)"), small("description", q.Description)))
		warn("type", "parameter", q.Name, unset("type", string(q.Type)))
		warn("hasgroup", "parameter", q.Name, unset("group", q.Group))
	}
	for _, group := range p.Groups {
		warn("groups", "group", group.Name, untitled(group.DisplayName))
		warn("groups", "group", group.Name, cmp.Or(unfinished("description", group.Description, ".!?)"), small("description", group.Description)))
	}
	return warnings
}

func unset(field, text string) string {
	if text == "" {
		return "has no " + field
	}
	return ""
}

func untitled(name string) string {
	if strings.HasSuffix(name, ":") {
		return "has a displayName that ends with ':'"
	}
	return cmp.Or(unset("displayName", name), small("displayName", name))
}

func small(field, text string) string {
	if first, _ := utf8.DecodeRuneInString(text); unicode.IsLower(first) {
		return "has a " + field + " that does not start with a capital letter"
	}
	return ""
}

// unfinished says that a text has no end that is wanted.
func unfinished(field, text, ends string) string {
	if text != "" && !strings.ContainsAny(text[len(text)-1:], ends) {
		return fmt.Sprintf("has a %s that does not end with one of %q", field, ends)
	}
	return unset(field, text)
}
