package main

import (
	"slices"
	"strings"
	"testing"
)

func TestCheck(t *testing.T) {
	rules, err := parse(list)
	if err != nil {
		t.Fatal(err)
	}
	for name, c := range map[string]struct {
		file, text string
		want       []string
	}{
		"a comment":                  {"a.go", "package a\n\n// It is on its\n// way there.\n", []string{"a.go:3"}},
		"a string":                   {"a.go", "package a\n\nvar x = \"Nobody knows\"\n", []string{"a.go:3"}},
		"an identifier":              {"a.go", "package a\n\nvar isOvertaken bool\n", []string{"a.go:3"}},
		"a part of a longer word":    {"a.go", "package a\n\n// Amend what they recommend.\nvar amended bool\n", nil},
		"Markdown":                   {"a.md", "# A\n\nThe Secret\nis not there.\n", []string{"a.md:4"}},
		"what may follow is allowed": {"a.md", "There is no Pod, or is there a Pod?\n", nil},
		"a file that keeps a word":   {"hack/words/words.txt", "mend => fix\n", nil},
	} {
		t.Run(name, func(t *testing.T) {
			var places []string
			for _, found := range rules.check(c.file, []byte(c.text)) {
				at := strings.SplitN(found, ":", 3)
				places = append(places, at[0]+":"+at[1])
			}
			if !slices.Equal(places, c.want) {
				t.Errorf("got %v, want %v", places, c.want)
			}
		})
	}
}
