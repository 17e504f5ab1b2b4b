package reasons

import (
	"maps"
	"slices"

	"github.com/spillway-dev/spillway/internal/rollout"
)

// page is where the documentation of all reasons is, in the repository.
const page = "docs/reasons.md"

// entry is what the table has of a reason.
type entry struct{ anchor, cause, mend string }

// Of says what brings a reason about, and what a person does about it, in sentences
// that begin small and have no full stop; ok is false for a word that is no reason.
func Of(word rollout.Reason) (cause, mend string, ok bool) {
	e, ok := table[word]
	return e.cause, e.mend, ok
}

// Link is where the documentation of a reason is, as a path in the repository; empty
// for a word that is no reason.
func Link(word rollout.Reason) string {
	if e, ok := table[word]; ok {
		return page + "#" + e.anchor
	}
	return ""
}

// All are all reasons, sorted.
func All() []rollout.Reason { return slices.Sorted(maps.Keys(table)) }
