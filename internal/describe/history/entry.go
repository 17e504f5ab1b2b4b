package history

import (
	"slices"
	"time"

	"github.com/spillway-dev/spillway/internal/describe"
)

// Entry is something that was rolled, or is being rolled: what became of one change.
type Entry struct {
	// Ref is the object that was rolled.
	describe.Ref

	// Ring is the one that rolled it.
	Ring string `json:"ring"`
	// What is what the ring calls it: "rollout 3", "plan deploy", "revision 2", "config".
	What string `json:"what"`
	// UID is that of the execution of a plan, as rollback takes it; empty of what has none.
	UID string `json:"uid,omitempty"`
	// Trace is the id of its trace, if the manager writes traces; empty of what has none.
	Trace string `json:"trace,omitempty"`
	// To is where it was to get, such as a revision; empty where that has no name.
	To string `json:"to,omitempty"`
	// Change is what had changed, empty if that is not known any more.
	Change string `json:"change,omitempty"`
	// By is who wanted it: the person who gave a command, or the field manager that
	// wrote the change, as managedFields tell. Empty if that is not known any more.
	By string `json:"by,omitempty"`
	// Started is nil of a revision that is not known to have been rolled out; Ended is
	// nil while it runs, and where no status says when it ended.
	Started *time.Time `json:"started,omitempty"`
	Ended   *time.Time `json:"ended,omitempty"`
	// Outcome is the ring's word: Running, Complete, Failed, Superseded.
	Outcome string `json:"outcome,omitempty"`
	// Message says why it ended so, or what it waits for while it runs.
	Message string `json:"message,omitempty"`
	// Units are how long its parts took, in the order in which they went, as far as
	// the status still knows.
	Units []Part `json:"units,omitempty"`
	// Events are those of the time of the rollout, the oldest first, and what users did.
	// The API server keeps Events for an hour, unless it is configured otherwise.
	Notes []Event `json:"notes,omitempty"`
}

// Part is the time that a part of an episode took.
type Part struct {
	describe.Ref

	Started *time.Time `json:"started,omitempty"`
	// Ended is nil while it runs, and where no status says it.
	Ended *time.Time `json:"ended,omitempty"`
	// Outcome is the ring's word for its state.
	Outcome string `json:"outcome,omitempty"`
	Message string `json:"message,omitempty"`
	// Units are its own parts.
	Units []Part `json:"units,omitempty"`
}

// sameMoment is how far apart two notes of one thing are at most: an object keeps
// whole seconds, and the Event about it is written after it.
const sameMoment = 2 * time.Second

// annotate gives each note to the episode in which it falls: the last one that had
// begun by then, or that a command or the roll of one of its parts began. The episodes are in
// order, the newest first.
func annotate(episodes []Entry, notes []Event) {
	if len(episodes) == 0 {
		return
	}
	for _, n := range notes {
		at := n.At
		if n.Command || n.IsRoll() && n.About != episodes[0].Ref {
			at = at.Add(sameMoment)
		}
		i := slices.IndexFunc(episodes, func(e Entry) bool { return e.Started != nil && !e.Started.After(at) })
		if i >= 0 && !episodes[i].knows(&n) {
			episodes[i].Notes = append(episodes[i].Notes, n)
		}
	}
	for i := range episodes {
		slices.SortStableFunc(episodes[i].Notes, func(a, b Event) int { return a.At.Compare(b.At) })
	}
}

// knows is true if the episode has a note of the same already.
func (e *Entry) knows(n *Event) bool {
	return slices.ContainsFunc(e.Notes, func(known Event) bool {
		return known.Reason == n.Reason && known.About == n.About && known.At.Sub(n.At).Abs() <= sameMoment
	})
}
