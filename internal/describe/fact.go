package describe

import (
	"fmt"
	"time"

	"github.com/spillway-dev/spillway/api/record"
	"github.com/spillway-dev/spillway/internal/estimate"
)

// shown is how many rollouts facts have at most, and shownClusters how many clusters;
// the details have all.
const (
	shownRollouts = 3
	shownClusters = 20
)

// Fact is something else to know of an object: what it is about, and what there is to
// know, in columns.
type Fact struct {
	Name   string   `json:"name"`
	Values []string `json:"values"`
}

// facts collects facts in the order in which they are shown.
type facts []Fact

// each adds a fact for each value.
func (f *facts) each(name string, values []string) {
	for _, value := range values {
		f.add(name, value)
	}
}

// phase adds a phase, with the reason unless that is the same word.
func (f *facts) phase(phase, reason string) {
	if reason != "" && reason != phase {
		phase += fmt.Sprintf(" (%s)", reason)
	}
	f.optional("phase", phase)
}

// optional adds a fact unless it is empty.
func (f *facts) optional(name, value string) {
	if value != "" {
		f.add(name, value)
	}
}

// forecast adds when a rollout ends, if its status says that.
func (f *facts) forecast(of *estimate.Forecast) {
	if of == nil {
		return
	}
	f.add("forecast", "ends "+Moment(of.Expected.Time), fmt.Sprintf("between %s and %s", Moment(of.Earliest.Time), Moment(of.Latest.Time)), of.Decides+" decides")
}

// decided adds when what is recorded was decided, and by which manager, if that is known.
func (f *facts) decided(at time.Time, by string) {
	if by != "" {
		f.add("decided", Moment(at), "by "+by)
	}
}

// DecidedFacts are when the record of a rollout was decided, and by which manager, none if that is not known.
func DecidedFacts(r *record.Rollout) (f []Fact) {
	if r != nil {
		(*facts)(&f).decided(r.DecidedAt.Time, r.DecidedBy)
	}
	return f
}

func (f *facts) add(name string, values ...string) { *f = append(*f, FactOf(name, values...)) }

// FactOf is a fact of one or more columns.
func FactOf(name string, values ...string) Fact { return Fact{Name: name, Values: values} }

// byWhom says who asked for something, and why.
func byWhom(by, reason string) string {
	text := "by a user"
	if by != "" {
		text = "by " + by
	}
	if reason != "" {
		text += ": " + reason
	}
	return text
}

// withMessage is a state, and what there is to say of it.
func withMessage(state, message string) string {
	if message == "" {
		return state
	}
	return state + ": " + message
}

// ended is how a rollout ended: why, and who has undone it, as far as that is known.
func ended(outcome, message, undoneBy string) string {
	if outcome = withMessage(outcome, message); undoneBy != "" {
		outcome += "; undone by " + undoneBy
	}
	return outcome
}

// Moment is how a time is shown.
func Moment(t time.Time) string { return t.UTC().Format("2006-01-02 15:04:05 UTC") }

// In is a range as times from now on: "in 4m (3m to 6m)".
func In(now time.Time, r Range) string {
	in := func(at time.Time) string { return max(0, at.Sub(now)).Round(time.Second).String() }
	if r.Earliest.Equal(r.Latest) {
		return "in " + in(r.Expected)
	}
	return fmt.Sprintf("in %s (%s to %s)", in(r.Expected), in(r.Earliest), in(r.Latest))
}

// Age is how long ago something was, in the largest unit, as kubectl writes it.
func Age(now time.Time, since *time.Time) string {
	if since == nil {
		return ""
	}
	d := max(now.Sub(*since), 0)
	switch {
	case d < 2*time.Minute:
		return fmt.Sprintf("%ds", int(d.Seconds()))
	case d < 2*time.Hour:
		return fmt.Sprintf("%dm", int(d.Minutes()))
	case d < 48*time.Hour:
		return fmt.Sprintf("%dh", int(d.Hours()))
	default:
		return fmt.Sprintf("%dd", int(d.Hours()/24))
	}
}
