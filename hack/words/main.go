// Words finds words that the project does not use in the files that people read: code with
// its comments and names, Markdown, examples, and the text of tests. It prints each with
// its place and what to write instead, and fails if there is one.
//
//	go run ./hack/words [FILE OR FOLDER...]
package main

import (
	_ "embed"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"regexp"
	"strings"
)

//go:embed words.txt
var table string

var (
	// isRead matches the files that are checked, isNot those of them that repeat other
	// files, or are the table and its test.
	isRead = regexp.MustCompile(`\.(go|md|txtar|txt|sh)$|Makefile$|^\.ci/run$|^\.golangci\.yml$|^examples/`)
	isNot  = regexp.MustCompile(`zz_generated|^docs/man/|/generated/|^hack/words/`)
	// hump is where the next word of a name begins. A dot there keeps phrases from matching.
	hump = regexp.MustCompile(`([a-z])([A-Z])`)
)

// rule refuses a pattern in some files, or allows it if there is nothing instead.
type rule struct {
	file    string
	pattern *regexp.Regexp
	instead string
}

// rules reads the table: what is allowed is listed first.
func rules(table string) []rule {
	var all []rule
	for line := range strings.Lines(table) {
		line = strings.TrimSpace(line)
		if line == "" || strings.HasPrefix(line, "#") {
			continue
		}
		pattern, instead, _ := strings.Cut(line, " => ")
		file := ""
		if rest, ok := strings.CutPrefix(pattern, "allow "); ok {
			file, pattern, _ = strings.Cut(rest, ": ")
		}
		// A blank may also be the end of a line, with what begins the next line of a comment.
		pattern = strings.ReplaceAll(pattern, " ", `\s+(?:(?://|#|>)\s*)?`)
		all = append(all, rule{file, regexp.MustCompile(`\b(?:` + pattern + `)\b`), instead})
	}
	return all
}

// check returns what is refused in a file.
func check(all []rule, file, text string) []string {
	text = strings.ToLower(hump.ReplaceAllString(text, "$1·$2"))
	var found []string
	for _, r := range all {
		switch {
		case r.instead != "":
			for _, at := range r.pattern.FindAllStringIndex(text, -1) {
				found = append(found, fmt.Sprintf("%s:%d: %q; write: %s", file, 1+strings.Count(text[:at[0]], "\n"), text[at[0]:at[1]], r.instead))
			}
		case strings.HasPrefix(file, r.file):
			text = r.pattern.ReplaceAllStringFunc(text, func(allowed string) string { return strings.Repeat("\n", strings.Count(allowed, "\n")) })
		}
	}
	return found
}

func main() {
	args := append([]string{"ls-files", "--cached", "--others", "--exclude-standard", "--"}, os.Args[1:]...)
	files, failed := exec.Command("git", args...).Output() //nolint:gosec,noctx // what a developer types
	all, problems := rules(table), 0
	for file := range strings.FieldsSeq(string(files)) {
		if !isRead.MatchString(file) || isNot.MatchString(file) {
			continue
		}
		text, err := os.ReadFile(file) //nolint:gosec // git names it
		if err != nil && !os.IsNotExist(err) {
			failed = errors.Join(failed, err)
		}
		for _, place := range check(all, file, string(text)) {
			fmt.Println(place)
			problems++
		}
	}
	if failed != nil {
		fmt.Fprintln(os.Stderr, "words:", failed)
	}
	if problems > 0 {
		fmt.Fprintf(os.Stderr, "words: %d to replace; hack/words/words.txt lists them\n", problems)
	}
	if failed != nil || problems > 0 {
		os.Exit(1)
	}
}
