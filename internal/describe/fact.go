package describe

import (
	"fmt"

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
