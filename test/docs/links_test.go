package docs_test

import (
	"html"
	"os"
	"path"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"unicode"
)

var (
	// link is a link or a picture: its text, and what it leads to.
	link = regexp.MustCompile(`(!?)\[((?:[^\[\]]|\[[^\[\]]*\])*)\]\(([^()\s]+)\)`)
	// heading is a heading, anchor a place that a page names itself.
	heading = regexp.MustCompile(`^#{1,6} +(.*?) *#*$`)
	anchor  = regexp.MustCompile(`<a id="([^"]+)">`)
	// code is code between backticks, in which nothing is a link.
	code = regexp.MustCompile("`+[^`]*`+")
)

// TestLinks follows all links of all pages that stay in the repository, with their anchors.
// Every picture has a text for who does not see it.
func TestLinks(t *testing.T) {
	all := map[string]page{}
	for _, p := range pages(t) {
		all[p.name] = p
	}
	for _, p := range all {
		for i, line := range p.prose() {
			for _, m := range link.FindAllStringSubmatch(code.ReplaceAllString(line, "``"), -1) {
				if m[1] != "" && len(m[2]) < 20 {
					t.Errorf("%s:%d: picture %s: describe it in its text, which is %q", p.name, i+1, m[3], m[2])
				}
				if problem := follow(all, p, m[3]); problem != "" {
					t.Errorf("%s:%d: link to %s: %s", p.name, i+1, m[3], problem)
				}
			}
		}
	}
}

// follow is what is wrong with a link, "" if nothing is.
func follow(all map[string]page, from page, target string) string {
	if strings.HasPrefix(target, "https://") || strings.HasPrefix(target, "/") && strings.HasPrefix(from.name, "site/") {
		return "" // of another site; or of this one, whose build follows it
	}
	file, fragment, _ := strings.Cut(target, "#")
	name := from.name
	if file != "" {
		name = path.Join(path.Dir(from.name), file)
	}
	if _, err := os.Stat(filepath.Join(root, name)); err != nil {
		return "no such file"
	}
	if fragment == "" {
		return ""
	}
	p, ok := all[name]
	switch {
	case !ok:
		return "the file has no anchors"
	case !p.anchors()[fragment]:
		return "the page has no such heading"
	default:
		return ""
	}
}

// anchors are the places of a page that links can lead to, as GitHub and the site name them.
func (p page) anchors() map[string]bool {
	found := map[string]bool{}
	for _, line := range p.prose() {
		if m := heading.FindStringSubmatch(line); m != nil {
			slug := slugOf(m[1])
			for n := slug; found[n]; n = slug + "-1" {
				slug = n
			}
			found[slug] = true
		}
		for _, m := range anchor.FindAllStringSubmatch(line, -1) {
			found[m[1]] = true
		}
	}
	return found
}

// slugOf is the anchor of a heading: its letters in lower case, with hyphens for spaces.
func slugOf(text string) string {
	text = link.ReplaceAllString(text, "$2")
	return strings.Map(func(r rune) rune {
		switch {
		case r == ' ':
			return '-'
		case r == '-' || r == '_' || unicode.IsLetter(r) || unicode.IsDigit(r):
			return unicode.ToLower(r)
		default:
			return -1
		}
	}, text)
}

// TestDrawingsHaveTheirText compares the text of a drawing on a page with that of its
// description, so that readers who see it and those who do not get the same.
func TestDrawingsHaveTheirText(t *testing.T) {
	shown := 0
	for _, p := range pages(t) {
		for i, line := range p.prose() {
			for _, m := range link.FindAllStringSubmatch(line, -1) {
				if m[1] == "" || !strings.Contains(m[3], "drawings/") {
					continue
				}
				shown++
				drawing, err := os.ReadFile(filepath.Join(root, path.Dir(p.name), m[3]))
				if err != nil || !strings.Contains(html.UnescapeString(string(drawing)), ">"+m[2]+"</desc>\n") {
					t.Errorf("%s:%d: drawing %s has another text in its description (%v)", p.name, i+1, m[3], err)
				}
			}
		}
	}
	if shown == 0 {
		t.Error("no page shows a drawing")
	}
}

// rule is the line below the heads of a table.
var rule = regexp.MustCompile(`^\|[-:| ]+\|$`)

// TestTablesHaveHeads finds columns without a head on pages of the site: a reader who hears a
// table has only those.
func TestTablesHaveHeads(t *testing.T) {
	for _, p := range pages(t) {
		lines := p.prose()
		for i, line := range lines {
			if i == 0 || !rule.MatchString(line) || !strings.HasPrefix(p.name, "docs/") {
				continue
			}
			for head := range strings.SplitSeq(strings.Trim(lines[i-1], "|"), "|") {
				if strings.TrimSpace(head) == "" {
					t.Errorf("%s:%d: a column of the table has no head", p.name, i)
				}
			}
		}
	}
}
