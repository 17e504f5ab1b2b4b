package main

import (
	_ "embed"
	"fmt"
	"go/scanner"
	"go/token"
	"regexp"
	"slices"
	"strings"
	"unicode"
)

//go:embed words.txt
var list string

// rule is a pattern that is refused in text, and what to write instead.
type rule struct {
	pattern *regexp.Regexp
	// unless is a pattern that may follow, and makes the text right.
	unless  *regexp.Regexp
	instead string
}

// allowance lets one file keep one pattern.
type allowance struct {
	file    string
	pattern *regexp.Regexp
}

// rules are what words.txt says.
type rules struct {
	text    []rule
	names   []string
	allowed []allowance
}

// parse reads words.txt.
func parse(list string) (rules, error) {
	var r rules
	for line := range strings.Lines(list) {
		line = strings.TrimSpace(line)
		if line == "" || strings.HasPrefix(line, "#") {
			continue
		}
		if err := r.add(line); err != nil {
			return r, fmt.Errorf("words.txt: %q: %w", line, err)
		}
	}
	return r, nil
}

func (r *rules) add(line string) error {
	if name, ok := strings.CutPrefix(line, "name:"); ok {
		r.names = append(r.names, name)
		return nil
	}
	if rest, ok := strings.CutPrefix(line, "allow: "); ok {
		file, pattern, _ := strings.Cut(rest, " ")
		compiled, err := regexp.Compile(pattern)
		r.allowed = append(r.allowed, allowance{file, compiled})
		return err //nolint:wrapcheck // parse does
	}
	pattern, instead, _ := strings.Cut(line, " => ")
	pattern, unless, _ := strings.Cut(pattern, "(?!")
	compiled, err := regexp.Compile(`\b(` + pattern + `)\b`)
	if err != nil {
		return err //nolint:wrapcheck // parse does
	}
	added := rule{pattern: compiled, instead: instead}
	if unless != "" {
		if added.unless, err = regexp.Compile("^" + strings.TrimSuffix(unless, ")")); err != nil {
			return err //nolint:wrapcheck // parse does
		}
	}
	r.text = append(r.text, added)
	return nil
}

// check finds what is refused in one file.
func (r *rules) check(name string, text []byte) []string {
	if !strings.HasSuffix(name, ".go") {
		return r.checkText(name, 1, string(text))
	}
	var found []string
	files := token.NewFileSet()
	file := files.AddFile(name, -1, len(text))
	var s scanner.Scanner
	s.Init(file, text, nil, scanner.ScanComments)
	first, comment := 0, ""
	for {
		pos, tok, literal := s.Scan()
		line := files.Position(pos).Line
		switch {
		case tok == token.COMMENT && comment != "" && line == first+strings.Count(comment, "\n")+1:
			comment += "\n" + literal // the lines of one comment are read as one text
			continue
		case tok == token.SEMICOLON && literal == "\n":
			continue
		}
		found = append(found, r.checkText(name, first, comment)...)
		first, comment = 0, ""
		switch tok {
		case token.EOF:
			return found
		case token.COMMENT:
			first, comment = line, literal
		case token.STRING:
			found = append(found, r.checkText(name, line, literal)...)
		case token.IDENT:
			found = append(found, r.checkName(name, line, literal)...)
		}
	}
}

// checkText finds refused patterns. They may run over the end of a line.
func (r *rules) checkText(name string, first int, text string) []string {
	var found []string
	flat, lines := flatten(text)
	for _, rule := range r.text {
		for _, at := range rule.pattern.FindAllStringIndex(flat, -1) {
			word := flat[at[0]:at[1]]
			if rule.unless != nil && rule.unless.MatchString(flat[at[1]:]) || r.isAllowed(name, word) {
				continue
			}
			found = append(found, fmt.Sprintf("%s:%d: %q; write: %s", name, first+lines[at[0]], word, rule.instead))
		}
	}
	return found
}

// lineBreak is the end of a line with what begins the next one in a comment.
var lineBreak = regexp.MustCompile(`\n[ \t]*(//|#|\*|>)?[ \t]*`)

// flatten returns the text in lower case with one blank for what breaks a line, and for
// each byte the number of lines before it.
func flatten(text string) (flat string, lines []int) {
	var b strings.Builder
	line, last := 0, 0
	add := func(part string) {
		for range len(part) {
			lines = append(lines, line)
		}
		b.WriteString(part)
	}
	for _, at := range lineBreak.FindAllStringIndex(text, -1) {
		add(lower(text[last:at[0]]))
		add(" ")
		line, last = line+1, at[1]
	}
	add(lower(text[last:]))
	return b.String(), lines
}

// lower lowers ASCII letters and leaves all other bytes as they are.
func lower(text string) string {
	b := []byte(text)
	for i, c := range b {
		if 'A' <= c && c <= 'Z' {
			b[i] = c + 'a' - 'A'
		}
	}
	return string(b)
}

// checkName finds refused words in an identifier.
func (r *rules) checkName(name string, line int, identifier string) []string {
	var found []string
	for _, word := range split(identifier) {
		if slices.Contains(r.names, word) && !r.isAllowed(name, word) {
			found = append(found, fmt.Sprintf("%s:%d: identifier %s: %q is refused", name, line, identifier, word))
		}
	}
	return found
}

func (r *rules) isAllowed(name, word string) bool {
	return slices.ContainsFunc(r.allowed, func(a allowance) bool { return a.file == name && a.pattern.MatchString(word) })
}

// split returns the words of an identifier in lower case.
func split(identifier string) []string {
	var words []string
	start := 0
	for i, c := range identifier {
		if i > start && (unicode.IsUpper(c) || c == '_') {
			words = append(words, strings.ToLower(strings.Trim(identifier[start:i], "_")))
			start = i
		}
	}
	return append(words, strings.ToLower(strings.Trim(identifier[start:], "_")))
}
