package main

import (
	"fmt"
	"maps"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/spillway-dev/spillway/internal/reasons"
)

func mustRead(t *testing.T, folder string, patterns ...string) *catalog {
	t.Helper()
	c, err := read(folder, patterns...)
	if err != nil {
		t.Fatal(err)
	}
	return c
}

// TestRepository checks the rules for the whole module, and that the table of package
// reasons has what the comments say.
func TestRepository(t *testing.T) {
	t.Parallel()
	c := mustRead(t, "../..", product...)
	for _, problem := range c.problems {
		t.Error(problem)
	}
	anchors, filled := map[string]string{}, map[string]bool{}
	for _, e := range c.entries {
		filled[e.section] = true
		if other, taken := anchors[e.anchor()]; taken {
			t.Errorf("%s and %s have one place on the page", e.word, other)
		}
		anchors[e.anchor()] = e.word
		cause, action, ok := reasons.Of(e.word)
		if !ok || cause != e.cause || action != e.action || reasons.Link(e.word) != "docs/reasons.md#"+e.anchor() {
			t.Errorf("the table says of %s %q, %q, and the place %s; run make generate", e.word, cause, action, reasons.Link(e.word))
		}
	}
	for _, section := range sections {
		if !filled[section] {
			t.Errorf("the section %s of the page is empty", section)
		}
	}
	if len(filled) != len(sections) {
		t.Errorf("reasons of %v, sections %v", slices.Sorted(maps.Keys(filled)), sections)
	}
	if len(reasons.All()) != len(c.entries) {
		t.Errorf("%d reasons, %d in the table; run make generate", len(c.entries), len(reasons.All()))
	}
}

// TestRules checks that each rule finds what breaks it, in its line, and nothing else.
func TestRules(t *testing.T) {
	t.Parallel()
	problems := slices.DeleteFunc(mustRead(t, ".", "./testdata/wrong", "../../rollout").problems, func(p string) bool { return !strings.HasPrefix(p, "wrong/") })
	source, err := os.ReadFile("testdata/wrong/wrong.go")
	if err != nil {
		t.Fatal(err)
	}
	wanted := regexp.MustCompile(`// want "(.*)"`)
	for i, line := range strings.Split(string(source), "\n") {
		want := wanted.FindStringSubmatch(line)
		if want == nil {
			continue
		}
		pattern := regexp.MustCompile(fmt.Sprintf(`^wrong/wrong\.go:%d: .*%s`, i+1, want[1]))
		at := slices.IndexFunc(problems, pattern.MatchString)
		if at < 0 {
			t.Errorf("no problem in line %d: %s", i+1, line)
			continue
		}
		problems = slices.Delete(problems, at, at+1)
	}
	for _, problem := range problems {
		t.Error("not wanted:", problem)
	}
}

func TestMissingPackage(t *testing.T) {
	t.Parallel()
	if _, err := read(".", "./testdata/nothing"); err == nil {
		t.Error("no error for a package that does not exist")
	}
}
