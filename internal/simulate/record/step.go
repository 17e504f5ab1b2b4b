package record

import (
	"cmp"
	"strings"
	"time"

	"github.com/spillway-dev/spillway/rollout"
)

// Offset is a time since the change. JSON has it as text, such as "1m1s", as Kubernetes writes
// durations.
type Offset time.Duration

// String is the offset as a line shows it, such as "+1m1s".
func (o Offset) String() string { return "+" + time.Duration(o).String() }

// MarshalText is the offset as JSON has it.
func (o Offset) MarshalText() ([]byte, error) { return []byte(time.Duration(o).String()), nil }

// UnmarshalText reads what MarshalText has written.
func (o *Offset) UnmarshalText(text []byte) error {
	d, err := time.ParseDuration(string(text))
	*o = Offset(d)
	return err //nolint:wrapcheck // it says what it could not read
}

// Step is a unit that moves.
type Step struct {
	// At is when, since the change.
	At Offset `json:"at"`
	// Ring is the ring that has taken it, or Kubernetes.
	Ring string `json:"ring"`
	// Object is what is rolled out, "deployment/web" or "rolloutgroup/ingester".
	Object    string `json:"object"`
	Namespace string `json:"namespace"`
	// Unit is the part of it that moves, "zone-a/zone-a-0"; empty if it moves whole.
	Unit string `json:"unit,omitempty"`
	// Does is what happens: "rolls", "is updated", "is opened", "begins", "loses".
	Does string `json:"does"`
	// From and To are revisions: hashes, or numbers that count the revisions of a zone.
	From string `json:"from,omitempty"`
	To   string `json:"to,omitempty"`
	// Decision counts decisions: steps of the same one are taken together.
	Decision int `json:"decision"`
}

// String is the step without its time, as a line shows it.
func (s Step) String() string {
	text := s.Object
	if s.Unit != "" {
		text += " " + s.Unit[strings.LastIndex(s.Unit, "/")+1:]
	}
	if s.Ring == RingPlans {
		text = s.Object + " " + s.Unit
	}
	text += " " + s.Does
	if s.To != "" && s.Ring != RingFleet {
		text += ":"
	}
	switch {
	case s.From != "" && s.To != "":
		text += " " + s.From + " → " + s.To
	case s.To != "":
		text += " " + s.To
	}
	return text
}

// Wait is why something has not moved at some moment, in the words of its ring.
type Wait struct {
	// At is since when, since the change.
	At        Offset `json:"at"`
	Ring      string `json:"ring"`
	Object    string `json:"object"`
	Namespace string `json:"namespace"`
	// Reason is the engine's or the ring's word for it; Sentence is that of its status.
	Reason   rollout.Reason `json:"reason,omitempty"`
	Sentence string         `json:"sentence"`
	// Next is when its ring looks again, of what waits in the end because that is later
	// than was looked ahead; zero of everything else.
	Next time.Time `json:"next,omitzero"`
}

// Compare orders keys by namespace, kind and name.
func (k Key) Compare(other Key) int {
	return cmp.Or(cmp.Compare(k.Namespace, other.Namespace), cmp.Compare(k.Kind, other.Kind), cmp.Compare(k.Name, other.Name))
}

// Reference is a kind and a name as commands take them.
func Reference(kind, name string) string { return strings.ToLower(kind) + "/" + name }

// The rings, as steps and waits name them.
const (
	RingConfig = "config"
	RingZones  = "zones"
	RingPlans  = "plans"
	RingFleet  = "fleet"
)

// Key identifies a Pod, a workload or a cluster.
type Key struct{ Kind, Namespace, Name string }

// KeyOf returns the key of an object.
func KeyOf(kind, namespace, name string) Key {
	return Key{Kind: kind, Namespace: namespace, Name: name}
}

// SameAs reports whether another wait says the same of the same object.
func (w Wait) SameAs(other Wait) bool {
	return w.Namespace == other.Namespace && w.Object == other.Object && w.Sentence == other.Sentence
}

// Kubernetes stands in a [Step] or a [Wait] for the ring, where none has to do with it.
const Kubernetes = "kube"

// RepeatedBy reports whether another wait says the same, or both are for an attempt at the next one: then only the time,
// and what was answered, differ.
func (w Wait) RepeatedBy(other Wait) bool {
	if w.Reason == rollout.ReasonRetry && other.Reason == rollout.ReasonRetry {
		return w.Namespace == other.Namespace && w.Object == other.Object
	}
	return w.SameAs(other)
}
