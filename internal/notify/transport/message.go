package transport

import (
	"strings"
	"time"

	"github.com/spillway-dev/spillway/api/spillway/v1alpha1"
	"github.com/spillway-dev/spillway/internal/notify/subject"
	"github.com/spillway-dev/spillway/internal/shell"
)

// Message is a message of a Notifier in a namespace.
type Message struct {
	v1alpha1.NotifierMessage

	Namespace string
}

// object names the object: "RolloutGroup shop/ingester". An object of another namespace has that
// in its name already.
func (m *Message) object() string {
	namespace, name := m.place()
	return m.Kind + " " + namespace + "/" + name
}

func (m *Message) place() (namespace, name string) {
	if namespace, name, ok := strings.Cut(m.Name, "/"); ok {
		return namespace, name
	}
	return m.Namespace, m.Name
}

// Headline says what has happened: "RolloutGroup shop/ingester: rollout 3 stopped".
func (m *Message) Headline() string {
	return m.object() + ": " + m.rollout() + " " + m.verb()
}

// rollout is the rollout as a person calls it.
func (m *Message) rollout() string {
	switch m.Kind {
	case subject.KindGroup:
		return "rollout " + m.Rollout
	case subject.KindInstance:
		return "plan " + m.Rollout
	case subject.KindModule, subject.KindBootstrapModule:
		return "revision " + m.Rollout
	default:
		return "content " + m.Rollout
	}
}

func (m *Message) verb() string {
	switch m.Phase {
	case v1alpha1.RolloutEnded:
		return "ended (" + m.Reason + ")"
	case v1alpha1.RolloutReturned:
		return "was returned to what was before"
	default:
		return strings.ToLower(string(m.Phase))
	}
}

// Next is the command that shows more.
func (m *Message) Next() string {
	verb := "explain"
	if m.Phase == v1alpha1.RolloutEnded {
		verb = "history"
	}
	namespace, name := m.place()
	return "spillway " + verb + " " + shell.Join(strings.ToLower(m.Kind)+"/"+name, "-n", namespace)
}

// at is when it happened, as JSON has it.
func (m *Message) at() string { return m.At.UTC().Format(time.RFC3339Nano) }
