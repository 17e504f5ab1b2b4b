package cli

import (
	"slices"
	"strings"
)

// otherWords are the commands of other tools, and those here that do the same.
var otherWords = map[string][]string{
	"get": {"status"}, "list": {"status"}, "ls": {"status"}, "tree": {"status"}, "top": {"watch"}, "dashboard": {"watch"},
	"describe": {"explain"}, "why": {"explain"}, "trace": {"explain"}, "log": {"events"}, "logs": {"events"},
	"suspend": {"pause"}, "stop": {"pause"}, "hold": {"pause"}, "continue": {"resume"}, "unpause": {"resume"}, "unsuspend": {"resume"},
	"undo": {"rollback"}, "revert": {"rollback"}, "promote": {"approve"}, "deny": {"refuse"}, "reject": {"refuse"}, "abort": {"abandon", "refuse"}, "cancel": {"abandon"},
	"apply": {"install"}, "init": {"install"}, "upgrade": {"install"}, "bootstrap": {"install"}, "delete": {"uninstall"}, "remove": {"uninstall"},
	"validate": {"lint", "verify"}, "dry-run": {"simulate"}, "preview": {"simulate", "diff"}, "eta": {"forecast"}, "doctor": {"check"}, "preflight": {"check"},
	"run": {"trigger"}, "start": {"trigger"}, "execute": {"trigger"}, "build": {"create"}, "template": {"render"}, "params": {"parameters"},
}

// otherWord is the command that does what another tool calls so, "" if there is none.
func otherWord(word string, known []string) string {
	word = strings.ToLower(word)
	if slices.Contains(known, word) { // in other letters
		return word
	}
	for _, command := range otherWords[word] {
		if slices.Contains(known, command) {
			return command
		}
	}
	return ""
}

// kubectlGroup is the command of kubectl whose commands are commands of their own here.
const kubectlGroup = "rollout"

// ofRollout is the command that does what one of kubectl rollout does, "" if there is none.
func ofRollout(args, known []string) string {
	if args[0] != kubectlGroup || len(args) < 2 {
		return ""
	}
	if slices.Contains(known, args[1]) {
		return args[1]
	}
	return otherWord(args[1], known)
}

// typedAs are the words that were meant as a command.
func typedAs(args []string) string {
	if args[0] == kubectlGroup && len(args) > 1 && !strings.HasPrefix(args[1], "-") {
		return args[0] + " " + args[1]
	}
	return args[0]
}
