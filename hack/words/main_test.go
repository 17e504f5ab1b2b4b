package main

import (
	"slices"
	"strings"
	"testing"
)

func TestCheck(t *testing.T) {
	for name, c := range map[string]struct {
		file, text string
		want       []string
	}{
		"a comment":                  {"a.go", "package a\n\n// It is on its\n// way there.\n", []string{"a.go:3"}},
		"a string":                   {"a.go", "package a\n\nvar x = \"Nobody knows\"\n", []string{"a.go:3"}},
		"a name":                     {"a.go", "package a\n\nvar isOvertaken bool\n", []string{"a.go:3"}},
		"a phrase in a name":         {"a.go", "package a\n\nvar atOnce bool\n", nil},
		"a part of a longer word":    {"a.go", "package a\n\n// Amend what they recommend.\nvar amended bool\n", nil},
		"Markdown":                   {"a.md", "# A\n\nThe Secret\nis not there.\n", []string{"a.md:4"}},
		"what may follow is allowed": {"a.md", "There is no Pod, or is there\na Pod?\nWhoever.\n", []string{"a.md:3"}},
		"a file that keeps a word":   {"internal/zones/guard/downscale.go", "// labelled, somebody\n", []string{"internal/zones/guard/downscale.go:1"}},
	} {
		t.Run(name, func(t *testing.T) {
			var places []string
			for _, found := range check(rules(table), c.file, c.text) {
				at := strings.SplitN(found, ":", 3)
				places = append(places, at[0]+":"+at[1])
			}
			if !slices.Equal(places, c.want) {
				t.Errorf("got %v, want %v", places, c.want)
			}
		})
	}
}
