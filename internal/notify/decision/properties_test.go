package decision_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/spillway-dev/spillway/api/spillway/v1alpha1"
	"github.com/spillway-dev/spillway/internal/notify/decision"
)

// objects are so many that have rollouts in the worlds of this test.
const objects = 3

// world is a cluster in which rollouts begin, stop, continue and end, and a manager that stops
// at any moment.
type world struct {
	*teller

	subjects []decision.Subject
	// courses are what each rollout went through, as seen: by object and rollout.
	courses  map[string][]string
	received []v1alpha1.NotifierMessage
}

func newWorld() *world {
	w := &world{teller: newTeller(), courses: map[string][]string{}}
	for i := range objects {
		w.subjects = append(w.subjects, decision.Subject{Key: fmt.Sprintf("RolloutGroup/u%d", i), Ring: "zones", Kind: "RolloutGroup", Name: fmt.Sprint("g", i)})
	}
	return w
}

// moves changes one object.
func (w *world) moves(t *rapid.T) {
	w.now = w.now.Add(time.Second)
	s := &w.subjects[rapid.IntRange(0, objects-1).Draw(t, "object")]
	n := len(s.Rollouts)
	if n == 0 || s.Rollouts[n-1].State >= decision.Ended || rapid.IntRange(0, 9).Draw(t, "supersede") == 0 {
		if n > 0 && s.Rollouts[n-1].State < decision.Ended {
			s.Rollouts[n-1].State, s.Rollouts[n-1].Reason, s.Rollouts[n-1].EndedAt = decision.Ended, decision.OutcomeSuperseded, w.now
		}
		s.Rollouts = append(s.Rollouts, decision.Rollout{ID: fmt.Sprint(n + 1), StartedAt: w.now, Reason: "Running"})
		return
	}
	r := &s.Rollouts[n-1]
	r.State = rapid.SampledFrom([]decision.State{decision.Running, decision.Stopped, decision.Ended, decision.Returned}).Draw(t, "state")
	r.Reason, r.EndedAt = [...]string{"Running", "GateRefused", "Complete", "RolledBack"}[r.State], time.Time{}
	if r.State >= decision.Ended {
		r.EndedAt = w.now
	}
}

// passes makes one pass of a manager, which may be stopped before or after each write, or may
// have a receiver that does not answer.
func (w *world) passes(t *rapid.T) {
	p := decision.Decide(w.observed(w.subjects))
	lost := rapid.IntRange(0, 3).Draw(t, "write") == 0
	if p.Persist {
		if len(p.Deliver) > 0 {
			t.Fatal("it sends what is not recorded")
		}
		if !lost {
			w.notifier.Status = p.Status
			w.note()
		}
		return
	}
	var failure *decision.Failure
	done := len(p.Deliver)
	if rapid.IntRange(0, 2).Draw(t, "receiver") == 0 {
		done, failure = rapid.IntRange(0, done).Draw(t, "received"), &decision.Failure{Text: "down"}
	}
	w.received = append(w.received, p.Deliver[:done]...)
	if !lost && (len(p.Deliver) > 0 || p.Verify) {
		w.notifier.Status = decision.Delivered(p.Status, p.Deliver[:done], failure, w.now)
	}
	if !p.Wake.IsZero() {
		w.now = p.Wake
	}
}

// note records what was seen of each rollout.
func (w *world) note() {
	for i := range w.subjects {
		s := &w.subjects[i]
		for k := range s.Rollouts {
			r := &s.Rollouts[k]
			key := s.Name + " " + r.ID
			course := w.courses[key]
			if course == nil {
				course = []string{"Started"}
			}
			last := course[len(course)-1]
			switch state := [...]string{"Running", "Stopped", "Ended", "Returned"}[r.State]; {
			case last == "Ended" || last == "Returned" || last == state || state == "Running" && last == "Started":
			default:
				course = append(course, state)
			}
			w.courses[key] = course
		}
	}
}

// heard is what a receiver has of each rollout that discards repeats by their identity.
func (w *world) heard(t *rapid.T) map[string][]string {
	heard, texts := map[string][]string{}, map[string]string{}
	for i := range w.received {
		m := &w.received[i]
		if text, known := texts[m.ID]; known {
			if text != said(m) {
				t.Fatalf("%s is %s, and was %s", m.ID, said(m), text)
			}
			continue
		}
		texts[m.ID] = said(m)
		key := m.Name + " " + m.Rollout
		heard[key] = append(heard[key], string(m.Phase))
	}
	return heard
}

// TestEachMessageAtLeastOnce checks that of every rollout every message arrives, in order,
// whatever the order of statuses, restarts and failures.
func TestEachMessageAtLeastOnce(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		w := newWorld()
		for range rapid.IntRange(1, 60).Draw(t, "steps") {
			if rapid.Bool().Draw(t, "moves") {
				w.moves(t)
			} else {
				w.passes(t)
			}
		}
		w.note() // the manager and the receiver live from now on
		w.settles(t)
		heard := w.heard(t)
		for key, course := range w.courses {
			want := slices.DeleteFunc(slices.Clone(course), func(phase string) bool { return phase == "Running" })
			if n := strings.Count(strings.Join(want, " "), "Stopped"); n > 8 {
				continue // more are not told
			}
			if !slices.Equal(heard[key], want) {
				t.Fatalf("of %s was reported %q, want %q", key, heard[key], want)
			}
		}
		if len(heard) != len(w.courses) {
			t.Fatalf("told of %d rollouts, there are %d", len(heard), len(w.courses))
		}
	})
}

// settles makes passes until nothing is left to do, and checks that nothing is written then.
func (w *world) settles(t *rapid.T) {
	for range 1000 {
		p := decision.Decide(w.observed(w.subjects))
		switch {
		case p.Persist:
			w.notifier.Status = p.Status
		case len(p.Deliver) > 0:
			w.received = append(w.received, p.Deliver...)
			w.notifier.Status = decision.Delivered(p.Status, p.Deliver, nil, w.now)
		case !p.Wake.IsZero():
			w.now = p.Wake
		case p.Verify:
			w.notifier.Status = decision.Delivered(p.Status, nil, nil, w.now)
		default:
			if w.notifier.Status.Pending != 0 || w.notifier.Status.Dropped != 0 {
				t.Fatalf("it rests with %d pending, %d dropped", w.notifier.Status.Pending, w.notifier.Status.Dropped)
			}
			return
		}
	}
	t.Fatal("it does not come to rest")
}
