package model

import (
	"strings"

	"github.com/spillway-dev/spillway/internal/message"
	"github.com/spillway-dev/spillway/internal/shell"
)

// SaidLength bounds what others have said where it is quoted.
const SaidLength = 200

// Short is the beginning of a text, on one line.
func Short(text string, length int) string {
	return message.Cut(strings.Join(strings.Fields(text), " "), length)
}

// ApproveRemovals is the command that approves the removals of a module, but for their
// number, which comes last.
func ApproveRemovals(kind, namespace, name string) string {
	return "spillway fleet approve " + shell.Join(strings.ToLower(kind)+"/"+name, "-n", namespace) + " --remove="
}
