package history

import (
	"errors"
	"fmt"
	"slices"
	"strings"
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
	// UndoneBy is who ended it before it was complete, empty if that is not known: spillway, a user or a field manager.
	UndoneBy string `json:"undoneBy,omitempty"`
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

// UndoneText says by whom it was ended before it was complete, empty if that is not known.
func (e *Entry) UndoneText() string {
	if e.UndoneBy == "" {
		return ""
	}
	return "by " + e.UndoneBy
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

// ErrNoSuchRollout is that an object has no rollout of a name.
var ErrNoSuchRollout = errors.New("no such rollout")

// Comparison is two rollouts of an object, side by side.
type Comparison struct {
	A Entry `json:"a"`
	B Entry `json:"b"`
	// Rows are what is known of at least one of them.
	Rows []Row `json:"rows"`
}

// Row is one thing that is known of two rollouts.
type Row struct {
	// About is what it is: "by", "change", "to", "began", "took", "outcome", "message", "undone", or a
	// part, as "zone/ingester-a".
	About string `json:"about"`
	// A and B are what is known of each, empty if nothing is.
	A string `json:"a,omitempty"`
	B string `json:"b,omitempty"`
	// Differs is true if they are not the same.
	Differs bool `json:"differs,omitempty"`
}

// Compare compares two of the rollouts of an object, by their names: what the history calls
// them, such as "rollout 3", or the last word of that, where they got to, or a uid.
func Compare(all []Entry, a, b string) (Comparison, error) {
	i, noA := find(all, a)
	j, noB := find(all, b)
	if err := errors.Join(noA, noB); err != nil {
		return Comparison{}, err
	}
	c := Comparison{A: all[i], B: all[j], Rows: []Row{}}
	add := func(about, a, b string) {
		if a != "" || b != "" {
			c.Rows = append(c.Rows, Row{about, a, b, a != b})
		}
	}
	for _, f := range fields {
		add(f.about, f.of(&c.A), f.of(&c.B))
	}
	partsA, partsB := stretches(c.A.Units, ""), stretches(c.B.Units, "")
	for _, p := range slices.Concat(partsA, partsB) {
		if !slices.ContainsFunc(c.Rows, func(r Row) bool { return r.About == p.name }) {
			add(p.name, saidOf(partsA, p.name), saidOf(partsB, p.name))
		}
	}
	return c, nil
}

// fields are what is compared of two rollouts as a whole.
var fields = []struct {
	about string
	of    func(*Entry) string
}{
	{"outcome", func(e *Entry) string { return e.Outcome }},
	{"by", func(e *Entry) string { return e.By }},
	{"change", func(e *Entry) string { return e.Change }},
	{"to", func(e *Entry) string { return e.To }},
	{"began", func(e *Entry) string {
		if e.Started == nil {
			return ""
		}
		return e.Started.UTC().Format("2006-01-02 15:04:05 UTC")
	}},
	{"took", func(e *Entry) string { return took(e.Started, e.Ended) }},
	{"message", func(e *Entry) string { return e.Message }},
	{"undone", func(e *Entry) string { return e.UndoneText() }},
}

// stretch is what is said of a part of a rollout.
type stretch struct{ name, said string }

// stretches are the parts, and theirs.
func stretches(units []Part, above string) []stretch {
	var all []stretch
	for i := range units {
		u := &units[i]
		name := above + u.String()
		all = append(all, stretch{name, strings.TrimSpace(u.Outcome + " " + took(u.Started, u.Ended))})
		all = append(all, stretches(u.Units, name+" ")...)
	}
	return all
}

// saidOf is what is said of a part, empty if the rollout does not have it.
func saidOf(parts []stretch, name string) string {
	i := slices.IndexFunc(parts, func(p stretch) bool { return p.name == name })
	if i < 0 {
		return ""
	}
	return parts[i].said
}

// took is how long something took, empty if that is not known.
func took(started, ended *time.Time) string {
	if started == nil || ended == nil {
		return ""
	}
	return ended.Sub(*started).Round(100 * time.Millisecond).String()
}

// find is the newest rollout of a name.
func find(all []Entry, name string) (int, error) {
	if i := index(all, name); i >= 0 {
		return i, nil
	}
	var known []string
	for i := range all {
		known = append(known, fmt.Sprintf("%q", Name(all, i)))
	}
	if len(known) == 0 {
		return 0, fmt.Errorf("%q: %w: none is recorded", name, ErrNoSuchRollout)
	}
	return 0, fmt.Errorf("%q: %w; there are %s", name, ErrNoSuchRollout, strings.Join(known, ", "))
}

// index is the place of the newest rollout of a name, -1 if there is none.
func index(all []Entry, name string) int {
	return slices.IndexFunc(all, func(e Entry) bool { return name != "" && slices.Contains(e.names(), name) })
}

// names are those by which a rollout is known, the plainest first.
func (e *Entry) names() []string {
	return []string{e.What, e.UID, e.What[strings.LastIndex(e.What, " ")+1:], e.To}
}

// Name is the plainest name that no newer rollout has.
func Name(all []Entry, i int) string {
	for _, name := range all[i].names() {
		if index(all, name) == i {
			return name
		}
	}
	return all[i].What
}
