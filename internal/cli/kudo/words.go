package kudo

import (
	"regexp"
	"strings"
)

// word is an argument as a shell takes it, end what stands behind a command without arguments.
const (
	word = `('[^']*'|[^\s'";,]+)`
	end  = `( [^-]|[^\w -]|$)`
)

// words are the commands of this program with those of KUDO that do the same.
var words = []struct {
	mine *regexp.Regexp
	kudo string
}{
	{regexp.MustCompile(`spillway package (repo|search|get)\b`), "kubectl kudo $1"},
	{regexp.MustCompile(`spillway package (new|add|create|verify|list)\b`), "kubectl kudo package $1"},
	{regexp.MustCompile(`spillway package (update|uninstall) (?:instance/)?` + word), "kubectl kudo $1 --instance=$2"},
	{regexp.MustCompile(`spillway package diagnostics (?:instance/)?` + word), "kubectl kudo diagnostics collect --instance=$1"},
	{regexp.MustCompile(`spillway package upgrade (?:instance/)?` + word + ` ` + word), "kubectl kudo upgrade $2 --instance=$1"},
	{regexp.MustCompile(`spillway package install ` + word + ` ` + word), "kubectl kudo install $1 --instance=$2"},
	{regexp.MustCompile(`spillway plan (status|history) (?:instance/)?` + word), "kubectl kudo plan $1 --instance=$2"},
	{regexp.MustCompile(`spillway plan trigger (?:instance/)?` + word + ` ` + word), "kubectl kudo plan trigger --instance=$1 --name=$2"},
	{regexp.MustCompile(`spillway install` + end), "kubectl kudo init$1"},
	{regexp.MustCompile(`spillway check` + end), "kubectl kudo init --verify$1"},
	{regexp.MustCompile(`(kubectl kudo .*--request-timeout=\d+)s\b`), "$1"},
}

// Words names commands in a message as KUDO's users type them. KUDO has nothing like the other
// commands of this program, which stay.
func Words(text string) string {
	if !strings.Contains(text, "spillway ") {
		return text
	}
	for i := range words {
		text = words[i].mine.ReplaceAllString(text, words[i].kudo)
	}
	return text
}
