package lint_test

import (
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/spillway-dev/spillway/internal/lint/report"
	"github.com/spillway-dev/spillway/internal/lint/rules"
	"github.com/spillway-dev/spillway/internal/vocabulary"
)

// TestEveryRuleIsWhole: a code of its own, in order, with all that a person needs.
func TestEveryRuleIsWhole(t *testing.T) {
	code := regexp.MustCompile(`^SPW[123459]\d\d$`)
	var codes []string
	for _, r := range rules.All() {
		codes = append(codes, r.Code)
		if !code.MatchString(r.Code) {
			t.Errorf("%s is no code", r.Code)
		}
		if r.Title == "" || strings.HasSuffix(r.Title, ".") || !strings.HasSuffix(r.Why, ".") || !strings.HasSuffix(r.Action, ".") {
			t.Errorf("%s: title, why and fix are sentences, the title without a full stop: %q, %q, %q", r.Code, r.Title, r.Why, r.Action)
		}
		if !slices.Contains(report.Levels(), r.Level) {
			t.Errorf("%s: %q is no level", r.Code, r.Level)
		}
	}
	if !slices.IsSorted(codes) || len(slices.Compact(slices.Clone(codes))) != len(codes) {
		t.Errorf("not in order, or not one of each: %s", codes)
	}
}

// TestTheExamplesAreClean: what people copy has nothing to fix.
func TestTheExamplesAreClean(t *testing.T) {
	examples, err := os.ReadDir("../../examples")
	if err != nil || len(examples) == 0 {
		t.Fatalf("there are no examples: %v", err)
	}
	for _, example := range examples {
		if slices.Contains([]string{"packages", "prove", "ring", "external", "embed.go"}, example.Name()) {
			continue // these have tests of their own
		}
		isClean(t, filepath.Join("../../examples", example.Name()))
	}
	isClean(t, "../../examples/prove/services.yaml") // the folder has the change as well
}

func isClean(t *testing.T, path string) {
	t.Helper()
	findings, _ := lintFile(t, path)
	for _, f := range findings {
		t.Errorf("%s: %s %s", f.Place(), f.Message, f.Code)
	}
}

// TestOrdinaryClusterHasNoFindings: what people run without giving it a thought, by
// operators, charts and by hand, is no finding, not even a note.
func TestOrdinaryClusterHasNoFindings(t *testing.T) {
	findings, objects := lintFile(t, filepath.Join("testdata", "ordinary"))
	for _, f := range findings {
		t.Errorf("%s: %s: %s %s", f.Place(), f.Object, f.Message, f.Code)
	}
	if objects < 80 {
		t.Errorf("only %d objects", objects)
	}
}

// TestOverlaysAreGroupsOfTheirOwn: directories that have StatefulSets of the same names are for
// different clusters, so that their settings are not compared.
func TestOverlaysAreGroupsOfTheirOwn(t *testing.T) {
	dir := t.TempDir()
	for overlay, strategy := range map[string]string{"prod": "RollingUpdate", "stage": "OnDelete"} {
		var docs []string
		for i, zone := range []string{"a", "b"} {
			docs = append(docs, fmt.Sprintf(`apiVersion: apps/v1
kind: StatefulSet
metadata:
  name: store-%[1]s
  labels: {rollout-group: store}
  annotations: {spillway.dev/zone-order: "%[2]d"}
spec:
  serviceName: store
  updateStrategy: {type: %[3]s}
  selector: {matchLabels: {app: store, zone: %[1]s}}
  template:
    metadata: {labels: {app: store, zone: %[1]s}}
    spec:
      nodeSelector: {topology.kubernetes.io/zone: %[1]s}
      containers: [{name: store, image: "store:1"}]
`, zone, i+1, strategy))
		}
		path := filepath.Join(dir, overlay, "store.yaml")
		if err := os.MkdirAll(filepath.Dir(path), 0o750); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(strings.Join(docs, "---\n")), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	findings, objects := lintFile(t, dir)
	for _, f := range findings {
		t.Errorf("%s: %s: %s %s", f.Place(), f.Object, f.Message, f.Code)
	}
	if objects != 4 {
		t.Errorf("%d objects", objects)
	}
}

// TestTheGuideIsUpToDate: every rule is on the page.
func TestTheGuideIsUpToDate(t *testing.T) {
	page, err := os.ReadFile("../../docs/lint.md")
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(string(page), report.GuidePage(rules.All())); diff != "" {
		t.Errorf("docs/lint.md is not what make generate makes of the rules (-page +rules)\n%s", diff)
	}
	for _, r := range rules.All() {
		if !strings.Contains(string(page), "\n### "+r.Code+"\n") {
			t.Errorf("%s is not documented", r.Code)
		}
	}
}

// TestWhatIsMeantIsNotFound: an annotation on the object keeps each finding away,
// and only that one.
func TestWhatIsMeantIsNotFound(t *testing.T) {
	for _, rule := range rules.All() {
		if rule.Code == "SPW901" || rule.Code == "SPW909" { // which are about no object, or about the annotation itself
			continue
		}
		raw, err := os.ReadFile(filepath.Join("testdata", rule.Code, "finds.yaml"))
		if err != nil {
			t.Fatal(err)
		}
		before := findingsOf(t, string(raw))
		after := findingsOf(t, ignoring(string(raw), rule.Code))
		if slices.Contains(after, rule.Code) {
			t.Errorf("%s is found though it is ignored", rule.Code)
		}
		others := func(codes []string) []string {
			return slices.DeleteFunc(slices.Clone(codes), func(c string) bool { return c == rule.Code })
		}
		if !slices.Equal(others(before), others(after)) {
			t.Errorf("%s: of others, there were %s, and then %s", rule.Code, others(before), others(after))
		}
	}
}

// ignoring annotates all objects; what stands in metadata is in one line or in many.
func ignoring(text, code string) string {
	ignore := fmt.Sprintf("%q: %q", vocabulary.LintIgnore.Native, code)
	text = strings.ReplaceAll(text, "\n  annotations:\n", "\n  annotations:\n    "+ignore+"\n")
	var lines []string
	for doc := range strings.SplitSeq(text, "---\n") {
		switch {
		case strings.Contains(doc, "\n  annotations:\n"):
		case strings.Contains(doc, "\nmetadata:\n"):
			doc = strings.Replace(doc, "\nmetadata:\n", "\nmetadata:\n  annotations: {"+ignore+"}\n", 1)
		case strings.Contains(doc, ", annotations: {"):
			doc = strings.Replace(doc, ", annotations: {", ", annotations: {"+ignore+", ", 1)
		default:
			doc = strings.Replace(doc, "\nmetadata: {", "\nmetadata: {annotations: {"+ignore+"}, ", 1)
		}
		lines = append(lines, doc)
	}
	return strings.Join(lines, "---\n")
}

// findingsOf are the codes of what is found in a text.
func findingsOf(t *testing.T, text string) []string {
	t.Helper()
	file := filepath.Join(t.TempDir(), "all.yaml")
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	findings, _ := lintFile(t, file)
	var codes []string
	for _, f := range findings {
		codes = append(codes, f.Code)
	}
	slices.Sort(codes)
	return codes
}

func TestLevels(t *testing.T) {
	for _, c := range []struct {
		level, bar report.Level
		want       bool
	}{
		{report.Error, report.Error, true},
		{report.Error, report.Note, true},
		{report.Warning, report.Error, false},
		{report.Note, report.Warning, false},
		{report.Note, report.Note, true},
	} {
		if got := c.level.AtLeast(c.bar); got != c.want {
			t.Errorf("%s is at least %s: %v", c.level, c.bar, got)
		}
	}
	findings := []report.Finding{{Level: report.Note}, {Level: report.Error}, {Level: report.Note}}
	if got, want := report.Summary(findings), "1 error, 2 notes"; got != want {
		t.Errorf("%q, want %q", got, want)
	}
}
