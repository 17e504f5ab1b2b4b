package span

import (
	"slices"
	"time"

	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/spillway-dev/spillway/api/spillway/v1alpha1"
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
		if s.Outcome = outcomeOf(after); s.Outcome == "" {
			continue
		}
		s.End = now
		ended = append(ended, s)
	}
	return ended
}

// outcomeOf is how a rollout ended that no status has any more, empty if it may go on: a policy
// does not list all that are under way.
func outcomeOf(after client.Object) string {
	switch after.(type) {
	case nil:
		return outcomeDeleted
	case *v1alpha1.ConfigPolicy, *v1alpha1.ClusterConfigPolicy:
		return ""
	default:
		return outcomeUnknown
	}
}

func notZero(t, or time.Time) time.Time {
	if t.IsZero() {
		return or
	}
	return t
}
