package scaling

import (
	"cmp"
	"encoding/json"
	"fmt"
	"time"

	"github.com/spillway-dev/spillway/internal/ring"
	"github.com/spillway-dev/spillway/rollout"
)

// Scaled is what is noted in a StatefulSet, in the write of its replicas, so that every reader
// sees whether another client has set them back since.
type Scaled struct {
	// Replicas are those that were written, and At is when.
	Replicas int       `json:"replicas"`
	At       time.Time `json:"at"`
	// Undone is how often in a row the same replicas were set back before, and Since when they
	// were written first.
	Undone int       `json:"undone,omitempty"`
	Since  time.Time `json:"since,omitzero"`
}

// raises is how often in a row replicas are added that another client removes. Replicas
// that it adds are not removed again at all: each time Pods would go.
const raises = 3

// contested is for how long a set is left as it is after that.
func contested() ring.Backoff { return ring.Backoff{First: 10 * time.Minute, Most: 6 * time.Hour} }

// scaledOf reads what is noted, nil if nothing is, or another client has written it.
func scaledOf(value string) *Scaled {
	s := &Scaled{}
	if value == "" || json.Unmarshal([]byte(value), s) != nil || s.At.IsZero() || s.Replicas < 0 || s.Undone < 0 {
		return nil
	}
	return s
}

// first is when the replicas were written first.
func (s *Scaled) first() time.Time { return cmp.Or(s.Since, s.At) }

// next is what is noted when replicas are written.
func (s *Set) next(to int, now time.Time) Scaled {
	next := Scaled{Replicas: to, At: now.UTC().Truncate(time.Second)}
	if s.undone(to) {
		next.Undone, next.Since = s.Scaled.Undone+1, s.Scaled.first()
	}
	return next
}

// undone is true of replicas that were written before and set back by another client.
func (s *Set) undone(to int) bool {
	return s.Scaled != nil && s.Scaled.Replicas == to && s.Replicas != to
}

// contest keeps a set as it is whose replicas another client sets back.
func (o *Observed) contest(w *wish) {
	s := w.set
	if w.block != nil || !s.undone(w.to) {
		return
	}
	times, said := s.Scaled.Undone+1, "once"
	if times > 1 {
		said = fmt.Sprintf("%d times", times)
	}
	if !w.lowers() && times < raises {
		return
	}
	until := s.Scaled.At.Add(contested().After(s.Scaled.Undone))
	if !o.Now.Before(until) {
		return
	}
	w.calls = nil
	w.block = &rollout.Block{Reason: ReasonContested, Since: s.Scaled.At, Until: until, Message: fmt.Sprintf(
		"another client sets its replicas back from %d to %d (%s since %s); remove spec.replicas from what that client applies; tried again at %s",
		w.to, s.Replicas, said, rollout.Clock(s.Scaled.first()), rollout.Clock(until))}
}
