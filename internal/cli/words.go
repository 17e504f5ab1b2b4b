package cli

import "slices"

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
	for _, command := range otherWords[word] {
		if slices.Contains(known, command) {
			return command
		}
	}
	return ""
}
