package docs_test

import (
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// root is the root of the repository.
const root = "../.."

// page is a page as it is written.
type page struct {
	// name is its path from the root of the repository.
	name  string
	lines []string
	// fixtures make what blocks take for granted.
	fixtures []fixture
}

// block is a fenced block of a page.
type block struct {
	page string
	// line is that of the fence, from 1.
	line int
	// class is what follows the fence: sh, console, yaml, json or text.
	class string
	// note is the comment on the line above, "" if there is none.
	note string
	body []string
	// prepared is true if a fixture makes what the block takes for granted.
	prepared bool
}

// String names the block for messages.
func (b block) String() string { return fmt.Sprintf("%s:%d", b.page, b.line) }

// pages reads all pages that people read: those of docs and of the site, and what stands at
// the root.
func pages(t *testing.T) []page {
	t.Helper()
	names := []string{"README.md", "CONTRIBUTING.md", "GOVERNANCE.md", "MAINTAINERS.md", "CODE_OF_CONDUCT.md", "ROADMAP.md", "rollout/testdata/README.md", "site/index.md"}
	err := filepath.WalkDir(filepath.Join(root, "docs"), func(path string, _ fs.DirEntry, err error) error {
		if err != nil || !strings.HasSuffix(path, ".md") {
			return err
		}
		name, err := filepath.Rel(root, path)
		names = append(names, name)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	var found []page
	for _, name := range names {
		text, err := os.ReadFile(filepath.Join(root, name))
		if err != nil {
			t.Fatal(err)
		}
		found = append(found, page{name: name, lines: strings.Split(strings.TrimSuffix(string(text), "\n"), "\n"), fixtures: fixturesOf(t, name)})
	}
	return found
}

// fence opens or closes a block; a block in a list is indented.
var fence = regexp.MustCompile("^( *)(```+)(.*)$")

// blocks are the fenced blocks of a page.
func (p page) blocks() []block {
	found := p.fenced()
	for i, b := range found {
		text := strings.Join(b.body, "\n")
		found[i].prepared = slices.ContainsFunc(p.fixtures, func(f fixture) bool { return strings.Contains(text, f.before) })
	}
	return found
}

func (p page) fenced() []block {
	var found []block
	var open *block
	var indent, ticks string
	for i, line := range p.lines {
		m := fence.FindStringSubmatch(line)
		switch {
		case open == nil && m != nil:
			open, indent, ticks = &block{page: p.name, line: i + 1, class: strings.TrimSpace(m[3]), note: p.noteAbove(i)}, m[1], m[2]
		case open != nil && m != nil && m[2] == ticks && m[3] == "":
			found = append(found, *open)
			open = nil
		case open != nil:
			open.body = append(open.body, strings.TrimPrefix(line, indent))
		}
	}
	if open != nil {
		found = append(found, *open)
	}
	return found
}

// noteAbove is the comment above a line.
func (p page) noteAbove(i int) string {
	if i == 0 {
		return ""
	}
	note, ok := strings.CutPrefix(strings.TrimSpace(p.lines[i-1]), "<!--")
	if !ok {
		return ""
	}
	return strings.TrimSpace(strings.TrimSuffix(note, "-->"))
}

// prose is the page with empty lines in place of its blocks.
func (p page) prose() []string {
	lines := append([]string(nil), p.lines...)
	inside := false
	for i, line := range lines {
		opens := fence.MatchString(line)
		if opens || inside {
			lines[i] = ""
		}
		if opens {
			inside = !inside
		}
	}
	return lines
}
