// Package span says which spans the rollouts of an object consist of, and which have ended
// between two states of it. It is pure.
package span

import (
	"slices"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/spillway-dev/spillway/internal/ring"
	"github.com/spillway-dev/spillway/internal/tracing/identity"
	"github.com/spillway-dev/spillway/rollout"
)

// The kinds of spans that are no units of a ring.
const (
	KindRollout = "Rollout"
	// KindReason is a moment: a reason became the main one for which a rollout waits.
	KindReason = "Reason"
	// KindZone is a zone of a group, and KindPod a Pod of it.
	KindZone = "Zone"
	KindPod  = "Pod"
)

// Outcomes: of rollouts that no status has any more, and those that are not of package rollout.
const (
	outcomeDeleted = "Deleted"
	outcomeUnknown = "Unknown"
	// outcomeAbandoned is that of a plan, and outcomeStalled that of a reason that needs a user.
	outcomeAbandoned = "Abandoned"
	outcomeStalled   = "Stalled"
)

// Span is a part of a rollout, or all of it.
type Span struct {
	// Trace, ID and Parent are in hexadecimal digits; the root has no parent.
	Trace, ID, Parent string
	// Kind and Name say what it is: "Zone" and "zone-a". The name of a root is that of its
	// object, and the name of a reason is the reason.
	Kind, Name string
	// Start and End are zero if they are not known yet.
	Start, End time.Time
	// Outcome is how it ended, as the status has it, and Message why.
	Outcome, Message string
	Object           Object
	path             []string
}

// Object is what is rolled out.
type Object struct {
	Ring, Kind, Namespace, Name string
	// Rollout says which of its rollouts it is.
	Rollout string
}

// IsError is true of a span that ended as a user would not have it.
func (s *Span) IsError() bool {
	return slices.Contains([]string{string(rollout.OutcomeFailed), string(rollout.OutcomeRolledBack), outcomeAbandoned, outcomeStalled}, s.Outcome)
}

// tree are the spans of an object. A parent is in front of its parts.
type tree struct {
	object Object
	spans  []Span
}

// node is the place of a span.
type node struct {
	tree *tree
	at   int
}

// rollout adds a root.
func (t *tree) rollout(trace, id string, startedAt metav1.MicroTime, ended *metav1.MicroTime, outcome, message string) node {
	object := t.object
	object.Rollout = id
	t.spans = append(t.spans, Span{
		Trace: trace, ID: identity.Span(trace), Kind: KindRollout, Name: object.Kind + " " + object.Name, Object: object,
		Start: startedAt.Time, End: ring.TimeOf(ended), Outcome: outcome, Message: message,
	})
	return node{t, len(t.spans) - 1}
}

// part adds a part that has begun; of another one it returns the node itself.
func (n node) part(kind, name string, startedAt, ended *metav1.MicroTime, outcome, message string) node {
	if startedAt == nil {
		return n
	}
	return n.add(kind, name, startedAt.Time, ring.TimeOf(ended), outcome, message)
}

func (n node) add(kind, name string, start, end time.Time, outcome, message string) node {
	parent := n.tree.spans[n.at]
	path := append(slices.Clone(parent.path), kind, name)
	s := Span{
		Trace: parent.Trace, ID: identity.Span(parent.Trace, path...), Parent: parent.ID, Kind: kind, Name: name, Object: parent.Object,
		Start: start, End: end, Outcome: outcome, Message: message, path: path,
	}
	if end.IsZero() && !parent.End.IsZero() { // what was broken off ended with the whole
		s.End, s.Outcome = parent.End, parent.Outcome
	}
	n.tree.spans = append(n.tree.spans, s)
	return node{n.tree, len(n.tree.spans) - 1}
}

// reason adds the reason for which a rollout waits to the part that is under way. At is zero
// if the status does not say since when.
func (n node) reason(reason, message string, at time.Time, stalled bool) {
	root := n.tree.spans[n.at]
	if reason == "" || !root.End.IsZero() {
		return
	}
	for i := n.at; i < len(n.tree.spans); i++ {
		if n.tree.spans[i].End.IsZero() {
			n.at = i
		}
	}
	outcome := ""
	if stalled {
		outcome = outcomeStalled
	}
	s := &n.tree.spans[n.add(KindReason, reason, at, at, outcome, message).at]
	if !at.IsZero() {
		s.ID = identity.Span(s.Trace, append(s.path, at.UTC().Format(time.RFC3339Nano))...)
	}
}

// Part is a part of a span that has ended, which the status does not have.
func (s *Span) Part(kind, name, id string, start, end time.Time) Span {
	return Span{
		Trace: s.Trace, ID: identity.Span(s.Trace, append(slices.Clone(s.path), kind, name, id)...), Parent: s.ID, Kind: kind, Name: name,
		Object: s.Object, Start: start, End: end, Outcome: s.Outcome,
	}
}

// Title is what a viewer shows.
func (s *Span) Title() string {
	if s.Kind == KindReason {
		return s.Name
	}
	return s.Kind + " " + s.Name
}

// Reason is the event of a span: the reason that it is about, or how it ended.
func (s *Span) Reason() string {
	if s.Kind == KindReason {
		return s.Name
	}
	return s.Outcome
}
