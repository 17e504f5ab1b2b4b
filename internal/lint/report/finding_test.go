package report_test

import (
	"slices"
	"strings"
	"testing"

	"github.com/spillway-dev/spillway/internal/lint/report"
)

// The exit code follows from the level: an error is at least a warning, and not the other
// way round.
func TestLevels(t *testing.T) {
	t.Parallel()
	for i, worse := range report.Levels() {
		for j, level := range report.Levels() {
			if got := worse.AtLeast(level); got != (i <= j) {
				t.Errorf("%s is at least %s: %t", worse, level, got)
			}
		}
		if level, err := report.ParseLevel(string(worse)); err != nil || level != worse {
			t.Errorf("%s is read as %q, %v", worse, level, err)
		}
	}
	if _, err := report.ParseLevel("never"); err == nil {
		t.Error("never is a level")
	}
}

func TestSummary(t *testing.T) {
	t.Parallel()
	of := func(levels ...report.Level) []report.Finding {
		findings := make([]report.Finding, len(levels))
		for i, level := range levels {
			findings[i].Level = level
		}
		return findings
	}
	for want, findings := range map[string][]report.Finding{
		"":                           nil,
		"1 note":                     of(report.Note),
		"2 errors":                   of(report.Error, report.Error),
		"1 error, 2 warnings":        of(report.Warning, report.Error, report.Warning),
		"1 error, 1 warning, 1 note": of(report.Note, report.Warning, report.Error),
	} {
		if got := report.Summary(findings); got != want {
			t.Errorf("got %q, want %q", got, want)
		}
	}
}

// Findings are in the order of the files, and of one place in that of the codes.
func TestCompareFindings(t *testing.T) {
	t.Parallel()
	want := []report.Finding{
		{File: "a", Code: "9"}, {File: "a", Line: 2, Code: "1", Message: "x"}, {File: "a", Line: 2, Code: "1", Message: "y"},
		{File: "a", Line: 2, Code: "2", Message: "a"}, {File: "a", Line: 10, Code: "1"}, {File: "b", Line: 1, Code: "1"},
	}
	got := slices.Clone(want)
	slices.Reverse(got)
	slices.SortFunc(got, report.CompareFindings)
	if !slices.Equal(got, want) {
		t.Errorf("%v", got)
	}
}

func TestWriteText(t *testing.T) {
	t.Parallel()
	findings := []report.Finding{
		{File: "a.yaml", Level: report.Error, Message: "invalid YAML", Action: "Correct it.", Code: "SPW901"},
		{File: "b.yaml", Line: 3, Object: "Module shop", Level: report.Note, Message: "no selector is set", Action: "Set one.", Code: "SPW509"},
	}
	plain := func(text string, _ int) string { return text }
	var got strings.Builder
	report.WriteText(&got, findings, 2, plain)
	report.WriteText(&got, nil, 1, plain)
	want := `a.yaml: error: invalid YAML [SPW901]
    Correct it.
b.yaml:3: note: Module shop: no selector is set [SPW509]
    Set one.
2 objects checked, 1 error, 1 note
1 object checked, no problems found
`
	if got.String() != want {
		t.Errorf("got\n%s", got.String())
	}
}
