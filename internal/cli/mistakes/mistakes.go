// Package mistakes reads the record of what a person can get wrong, and what the program
// says then. A test types every line of it and compares; the table in docs/cli.md is made of
// it. So the table cannot promise what the program does not say.
package mistakes

import (
	"fmt"
	"os"
	"strconv"
	"strings"
)

// Mistake is one thing that a person can get wrong.
type Mistake struct {
	// Section is the heading that it is under, What is wrong in a few words.
	Section, What string
	// Environment is set for the command, as NAME=VALUE; Command is what is typed.
	Environment []string
	Command     string
	// Says is what stderr has then, Code the exit code.
	Says string
	Code int
}

// The marks of a record: a heading, a command, the exit code.
const (
	headingMark = "# "
	commandMark = "$ "
	codeMark    = "exit "
)

// Read reads a record.
func Read(path string) ([]Mistake, error) {
	raw, err := os.ReadFile(path) //nolint:gosec // it is of this repository
	if err != nil {
		return nil, fmt.Errorf("the record of mistakes: %w", err)
	}
	var (
		all     []Mistake
		section string
	)
	for block := range strings.SplitSeq(strings.TrimSpace(string(raw)), "\n\n") {
		if heading, ok := strings.CutPrefix(block, headingMark); ok {
			section = heading
			continue
		}
		m, err := parse(block)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", path, err)
		}
		m.Section = section
		all = append(all, m)
	}
	return all, nil
}

// parse reads one mistake: what is wrong, the command, what it says, and its exit code.
func parse(block string) (Mistake, error) {
	lines := strings.Split(block, "\n")
	if len(lines) < 2 || !strings.HasPrefix(lines[1], commandMark) {
		return Mistake{}, fmt.Errorf("%q is followed by no command after %q", lines[0], commandMark)
	}
	m := Mistake{What: lines[0], Command: strings.TrimPrefix(lines[1], commandMark)}
	for {
		word, rest, _ := strings.Cut(m.Command, " ")
		if !strings.Contains(word, "=") {
			break
		}
		m.Environment, m.Command = append(m.Environment, word), rest
	}
	said := lines[2:]
	if last := len(said) - 1; last >= 0 && strings.HasPrefix(said[last], codeMark) {
		code, err := strconv.Atoi(strings.TrimPrefix(said[last], codeMark))
		if err != nil {
			return Mistake{}, fmt.Errorf("%q: the exit code: %w", lines[0], err)
		}
		m.Code, said = code, said[:last]
	}
	m.Says = strings.Join(said, "\n")
	return m, nil
}

// Format writes a record as Read reads it.
func Format(all []Mistake) string {
	var b strings.Builder
	section := ""
	for i := range all {
		m := &all[i]
		if m.Section != section {
			section = m.Section
			fmt.Fprintf(&b, "%s%s\n\n", headingMark, section)
		}
		fmt.Fprintf(&b, "%s\n%s%s\n%s\n%s%d\n\n", m.What, commandMark, strings.Join(append(m.Environment, m.Command), " "), m.Says, codeMark, m.Code)
	}
	return strings.TrimSuffix(b.String(), "\n")
}

// shown is how the table shows what differs from cluster to cluster.
var shown = strings.NewReplacer("$NS", "shop", "$SERVER", "https://10.0.0.1:6443")

// Tables are the tables of the page, one a section.
func Tables(all []Mistake) string {
	var b strings.Builder
	section := ""
	for i := range all {
		m := &all[i]
		if m.Section != section {
			section = m.Section
			fmt.Fprintf(&b, "\n### %s\n\n| mistake | message | exit code |\n|---|---|---|\n", section)
		}
		fmt.Fprintf(&b, "| %s: %s | %s | %d |\n", m.What, code(strings.Join(append(m.Environment, m.Command), " ")), message(m.Says), m.Code)
	}
	return b.String()
}

// message is what is said, as a cell. A table has no room for more than one line: the
// first, or that of the error if what was found was listed above it.
func message(says string) string {
	lines := strings.Split(says, "\n")
	if last := lines[len(lines)-1]; strings.HasPrefix(last, "error: ") && !strings.HasSuffix(last, " 1 error") {
		return code(last)
	}
	return code(lines[0])
}

// code is a text as code in a cell.
func code(text string) string {
	text = strings.ReplaceAll(shown.Replace(text), "|", `\|`)
	if strings.Contains(text, "`") {
		return "`` " + text + " ``"
	}
	return "`" + text + "`"
}
