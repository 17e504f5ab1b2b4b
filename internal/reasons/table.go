package reasons

import (
	"maps"
	"slices"
)

// page is where the documentation of all reasons is, in the repository.
const page = "docs/reasons.md"

// entry is what the table has of a reason.
type entry struct{ anchor, cause, action string }

// Of says what brings a reason about, and what a person does about it, in sentences
// that begin small and have no full stop; ok is false for a word that is no reason. The
// word is a [github.com/spillway-dev/spillway/rollout.Reason], or the text
// of one that was read from a status or an Event.
func Of[W ~string](word W) (cause, action string, ok bool) {
	e, ok := table[string(word)]
	return e.cause, e.action, ok
}

// Link is where the documentation of a reason is, as a path in the repository; empty
// for a word that is no reason.
func Link[W ~string](word W) string {
	if e, ok := table[string(word)]; ok {
		return page + "#" + e.anchor
	}
	return ""
}

// All are the words of all reasons, sorted.
func All() []string { return slices.Sorted(maps.Keys(table)) }
