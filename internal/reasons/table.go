package reasons

import (
	"maps"
	"slices"
)

// page is the documentation of all reasons, as a path in the repository.
const page = "docs/reasons.md"

// entry has what the table knows of one reason.
type entry struct{ anchor, cause, action string }

// Of returns the cause of a reason, and what a person does about it, as sentences
// in lower case without a full stop; ok is false for a word that is not a reason. The
// word is a [github.com/spillway-dev/spillway/rollout.Reason], or the text
// of one that was read from a status or an Event.
func Of[W ~string](word W) (cause, action string, ok bool) {
	e, ok := table[string(word)]
	return e.cause, e.action, ok
}

// Link returns the place of a reason's documentation, as a path in the repository;
// empty for a word that is not a reason.
func Link[W ~string](word W) string {
	if e, ok := table[string(word)]; ok {
		return page + "#" + e.anchor
	}
	return ""
}

// All returns the words of all reasons, sorted.
func All() []string { return slices.Sorted(maps.Keys(table)) }
