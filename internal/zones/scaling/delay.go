package scaling

import (
	"fmt"
	"time"

	"github.com/spillway-dev/spillway/rollout"
)

// delay lets only Pods go that have been prepared for long enough: as many as there are
// in a row at the end. The others are called.
func (o *Observed) delay(w *wish) {
	s := w.set
	stays := min(w.to, s.Replicas)
	if calls := s.toStay(stays); len(calls) > 0 {
		w.calls = append(w.calls, Call{Set: s.Name, Ordinals: calls})
	}
	if w.to >= s.Replicas {
		return
	}
	if s.Unprepared != "" {
		w.block = &rollout.Block{Reason: ReasonDelay, Message: s.Unprepared}
		return
	}
	if ask := o.toPrepare(s, stays); len(ask) > 0 {
		w.calls = append(w.calls, Call{Set: s.Name, Prepare: true, Ordinals: ask})
		message := fmt.Sprintf("preparing its last Pods (%d) for %s", s.Replicas-stays, s.Settings.Delay.For)
		if failed := o.Refusals[s.Name]; failed.Reason != "" {
			message += "; the last attempt failed: " + failed.Reason
		}
		w.block = &rollout.Block{Reason: ReasonDelay, Message: message}
		return
	}
	allowed, until := o.ripe(s, stays)
	if allowed == s.Replicas {
		w.block = &rollout.Block{Reason: ReasonDelay, Until: until, Message: fmt.Sprintf(
			"%s-%d must be prepared for %s, until %s", s.Name, s.FirstOrdinal+s.Replicas-1, s.Settings.Delay.For, rollout.Clock(until))}
		return
	}
	w.to = allowed
}

// toStay are the Pods that do not know yet that they stay.
func (s *Set) toStay(n int) []int {
	var ordinals []int
	for i := s.FirstOrdinal; i < s.FirstOrdinal+n; i++ {
		if !s.Answers[i].Stays {
			ordinals = append(ordinals, i)
		}
	}
	return ordinals
}

// toPrepare are the Pods to ask since when they are prepared: those that were not asked
// yet, and those whose time is over, if they have not said so since.
func (o *Observed) toPrepare(s *Set, n int) []int {
	var ordinals []int
	for i := s.FirstOrdinal + n; i < s.FirstOrdinal+s.Replicas; i++ {
		answer := s.Answers[i]
		ripens := answer.Since.Add(s.Settings.Delay.For)
		if answer.Stays || answer.Asked.IsZero() || !answer.Since.IsZero() && !o.Now.Before(ripens) && answer.Asked.Before(ripens) {
			ordinals = append(ordinals, i)
		}
	}
	return ordinals
}

// ripe is how many replicas remain when those at the end go that may, and when the next
// one may.
func (o *Observed) ripe(s *Set, n int) (remain int, until time.Time) {
	for remain = s.Replicas; remain > n; remain-- {
		until = s.Answers[s.FirstOrdinal+remain-1].Since
		if !until.IsZero() {
			until = until.Add(s.Settings.Delay.For)
		}
		if o.Now.Before(until) {
			return remain, until
		}
	}
	return n, time.Time{}
}
