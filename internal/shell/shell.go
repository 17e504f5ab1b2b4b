// Package shell writes the commands that people copy from what Spillway prints. Names, keys and
// other texts of users get into a command by it alone, so that a shell takes each as one word and
// runs nothing in it.
package shell

import (
	"regexp"
	"strings"
)

// plain is a word that a shell takes as it stands.
var plain = regexp.MustCompile(`^[\w@%+=:,./-]+$`)

// named is the beginning of a word that names its value, such as a flag.
var named = regexp.MustCompile(`^[\w./-]+=`)

// Quote returns a word as a shell takes it.
func Quote(word string) string {
	if plain.MatchString(word) {
		return word
	}
	name := named.FindString(word)
	return name + "'" + strings.ReplaceAll(word[len(name):], "'", `'\''`) + "'"
}

// Join returns words as a shell takes them, with blanks between them.
func Join(words ...string) string {
	quoted := make([]string, len(words))
	for i, word := range words {
		quoted[i] = Quote(word)
	}
	return strings.Join(quoted, " ")
}
