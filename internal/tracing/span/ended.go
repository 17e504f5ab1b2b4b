package span

import (
	"slices"
	"time"

	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/spillway-dev/spillway/api/spillway/v1alpha1"
	"github.com/spillway-dev/spillway/rollout"
)

// Ended are the spans that ended between two states of an object, of which the first is nil
// if it is not known, and the second if the object is deleted.
func Ended(before, after client.Object, now time.Time) []Span {
	was, is := Of(before), Of(after)
	var ended []Span
	for _, s := range is {
		switch {
		case s.Kind == KindReason:
			if isNews(was, &s) {
				s.Start = notZero(s.Start, now)
				s.End = s.Start
				ended = append(ended, s)
			}
		case !s.End.IsZero() && !slices.ContainsFunc(was, func(w Span) bool { return w.ID == s.ID && w.Trace == s.Trace && !w.End.IsZero() }):
			ended = append(ended, s)
		}
	}
	return append(ended, gone(was, is, after, now)...)
}

// isNews is true of a reason that is not the one of before.
func isNews(was []Span, s *Span) bool {
	return !slices.ContainsFunc(was, func(w Span) bool {
		return w.Trace == s.Trace && w.Parent == s.Parent && w.Kind == KindReason && w.Name == s.Name
	})
}

// gone are the spans of rollouts that no status has any more, and that had not ended.
func gone(was, is []Span, after client.Object, now time.Time) []Span {
	var ended []Span
	for _, s := range was {
		isLeft := slices.ContainsFunc(is, func(i Span) bool { return i.Trace == s.Trace })
		if isLeft || !s.End.IsZero() || s.Kind == KindReason {
			continue
		}
		if s.Outcome = outcomeOf(&s, is, after); s.Outcome == "" {
			continue
		}
		s.End = now
		ended = append(ended, s)
	}
	return ended
}

// outcomeOf is how a rollout ended that no status has any more, empty if it may go on. Those of
// policies are in a status only while they are under way.
func outcomeOf(s *Span, is []Span, after client.Object) string {
	var status *v1alpha1.ConfigPolicyStatus
	switch o := after.(type) {
	case nil:
		return outcomeDeleted
	case *v1alpha1.ConfigPolicy:
		status = &o.Status
	case *v1alpha1.ClusterConfigPolicy:
		status = &o.Status
	default:
		return outcomeUnknown
	}
	another := func(i Span) bool {
		return i.Object.Kind == s.Object.Kind && i.Object.Namespace == s.Object.Namespace && i.Object.Name == s.Object.Name
	}
	switch {
	case s.Outcome == string(rollout.OutcomeRolledBack):
		return s.Outcome
	case int(status.Underway) > len(status.Releases):
		return ""
	case slices.ContainsFunc(is, another):
		return string(rollout.OutcomeSuperseded)
	default:
		return string(rollout.OutcomeComplete)
	}
}

func notZero(t, or time.Time) time.Time {
	if t.IsZero() {
		return or
	}
	return t
}
