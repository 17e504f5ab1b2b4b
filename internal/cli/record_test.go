package cli_test

import (
	"fmt"
	"os"
	"strconv"
	"strings"
)

// mistake is one thing that a person can get wrong, and what the program says then.
type mistake struct {
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

// readMistakes reads a record.
func readMistakes(path string) ([]mistake, error) {
	raw, err := os.ReadFile(path)
	if err != nil {
		return nil, fmt.Errorf("the record of mistakes: %w", err)
	}
	var (
		all     []mistake
		section string
	)
	for block := range strings.SplitSeq(strings.TrimSpace(string(raw)), "\n\n") {
		if heading, ok := strings.CutPrefix(block, headingMark); ok {
			section = heading
			continue
		}
		m, err := parseMistake(block)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", path, err)
		}
		m.Section = section
		all = append(all, m)
	}
	return all, nil
}

// parseMistake reads one mistake: what is wrong, the command, what it says, and its exit code.
func parseMistake(block string) (mistake, error) {
	lines := strings.Split(block, "\n")
	if len(lines) < 2 || !strings.HasPrefix(lines[1], commandMark) {
		return mistake{}, fmt.Errorf("%q is followed by no command after %q", lines[0], commandMark)
	}
	m := mistake{What: lines[0], Command: strings.TrimPrefix(lines[1], commandMark)}
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
			return mistake{}, fmt.Errorf("%q: the exit code: %w", lines[0], err)
		}
		m.Code, said = code, said[:last]
	}
	m.Says = strings.Join(said, "\n")
	return m, nil
}

// formatMistakes writes a record as readMistakes reads it.
func formatMistakes(all []mistake) string {
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
