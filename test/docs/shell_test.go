package docs_test

import (
	"strings"
)

// invocation is one command of a line of the shell, with its words unquoted.
type invocation struct {
	words []string
	// file is what its output or its input is redirected to, "" if it is not.
	file string
}

// scanner splits lines of the shell into commands, as far as pages need it.
type scanner struct {
	commands []invocation
	word     strings.Builder
	inWord   bool
	toFile   bool
	quote    rune
}

// commandsOf are the commands in lines of the shell: what pipes, lists and substitutions
// hold.
func commandsOf(line string) []invocation {
	s := &scanner{commands: []invocation{{}}}
	runes := []rune(line)
	for i := 0; i < len(runes); i++ {
		i += s.read(runes[i:])
	}
	s.endCommand()
	var found []invocation
	for _, c := range s.commands {
		if len(c.words) > 0 {
			found = append(found, c)
		}
	}
	return found
}

// read reads the next character, and returns how many more it has read.
func (s *scanner) read(rest []rune) int {
	r := rest[0]
	switch {
	case s.quote != 0 && r == s.quote:
		s.quote = 0
	case s.quote == '\'' || s.quote != 0 && r != '\\':
		s.add(r)
	case r == '\\' && len(rest) > 1:
		if rest[1] != '\n' {
			s.add(rest[1])
		}
		return 1
	case r == '\'' || r == '"':
		s.quote, s.inWord = r, true
	case r == '#' && !s.inWord:
		return len([]rune(strings.SplitN(string(rest), "\n", 2)[0])) - 1
	case r == ' ':
		s.endWord()
	case strings.ContainsRune("|&;()\n", r):
		s.endCommand()
	case r == '<' || r == '>':
		s.endWord()
		s.toFile = true
	default:
		s.add(r)
	}
	return 0
}

func (s *scanner) add(r rune) {
	s.inWord = true
	s.word.WriteRune(r)
}

func (s *scanner) endWord() {
	if !s.inWord {
		return
	}
	c := &s.commands[len(s.commands)-1]
	if s.toFile {
		c.file, s.toFile = s.word.String(), false
	} else {
		c.words = append(c.words, s.word.String())
	}
	s.word.Reset()
	s.inWord = false
}

func (s *scanner) endCommand() {
	s.endWord()
	s.commands = append(s.commands, invocation{})
}

// session is a command of a console block, with what it prints.
type session struct {
	line   string
	output []string
}

// sessions are the commands of a console block, each with its output. A command goes on in
// the next line after a backslash or a pipe.
func (b block) sessions() []session {
	var found []session
	open := false
	for _, line := range b.body {
		text, isCommand := strings.CutPrefix(line, "$ ")
		switch {
		case isCommand:
			found = append(found, session{line: text})
		case len(found) == 0:
			continue
		case open:
			found[len(found)-1].line += "\n" + line
			text = line
		default:
			found[len(found)-1].output = append(found[len(found)-1].output, line)
			continue
		}
		open = strings.HasSuffix(text, "\\") || strings.HasSuffix(text, "|")
	}
	return found
}
