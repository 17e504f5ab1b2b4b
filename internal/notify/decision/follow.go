package decision

import (
	"fmt"
	"slices"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/spillway-dev/spillway/api/spillway/v1alpha1"
	"github.com/spillway-dev/spillway/internal/message"
)

const (
	// mostStops bounds how often it is reported that one rollout has stopped.
	mostStops = 8
	// sentenceLength bounds a sentence, in bytes. The kind has the same limit.
	sentenceLength = 1024
)

// The severities of messages.
const (
	severityInfo    = "info"
	severityWarning = "warning"
	severityError   = "error"
)

// follower brings the record of a Notifier up to date.
type follower struct {
	o      *Observed
	filter *Filter
	status v1alpha1.NotifierStatus
	plan   Plan
}

// subject tells the rollouts of a subject since the one that was reported last.
func (f *follower) subject(s *Subject, t v1alpha1.ToldRollout) v1alpha1.ToldRollout {
	news := s.Rollouts[f.from(s, &t):]
	for i := range news {
		f.rollout(s, &news[i], &t)
	}
	return t
}

// rollout tells what is new of a rollout.
func (f *follower) rollout(s *Subject, r *Rollout, t *v1alpha1.ToldRollout) {
	switch again := isOver(t.Phase) && (r.State < Ended || r.Reason != t.Outcome); {
	case !isSame(t, r):
		f.end(s, t, outcomeUnknown)
		*t = v1alpha1.ToldRollout{Key: s.Key, Name: s.Name, Rollout: r.ID, StartedAt: metav1.NewMicroTime(r.StartedAt), TraceID: r.Trace}
		if r.StartedAt.IsZero() {
			t.StartedAt = metav1.NewMicroTime(f.o.Now.Truncate(time.Second))
		}
		f.start(s, t)
	case again:
		t.Tries, t.Stops, t.Outcome = t.Tries+1, 0, ""
		f.start(s, t)
	}
	f.state(s, r, t)
}

func (f *follower) start(s *Subject, t *v1alpha1.ToldRollout) {
	t.Phase = v1alpha1.RolloutStarted
	f.tell(s, t, &v1alpha1.NotifierMessage{Phase: t.Phase, Reason: "Running", Severity: severityInfo, At: t.StartedAt})
}

// state tells the state of a rollout that has started.
func (f *follower) state(s *Subject, r *Rollout, t *v1alpha1.ToldRollout) {
	switch {
	case isOver(t.Phase):
	case r.State == Running:
		f.resume(s, t)
	case r.State == Stopped:
		f.stop(s, r, t)
	default:
		f.resume(s, t)
		f.over(s, r, t)
	}
}

// stop tells that a rollout is stopped, unless that was reported.
func (f *follower) stop(s *Subject, r *Rollout, t *v1alpha1.ToldRollout) {
	m := v1alpha1.NotifierMessage{Phase: v1alpha1.RolloutStopped, Reason: r.Reason, Severity: severityError, Sentence: r.Sentence, At: f.at(r.At)}
	if t.Phase != v1alpha1.RolloutStopped && t.Stops < mostStops {
		t.Phase, t.Stops = v1alpha1.RolloutStopped, t.Stops+1
		f.tell(s, t, &m)
	}
	if t.Phase == v1alpha1.RolloutStopped {
		f.complete(s, t, &m)
		if f.filter.Lets(f.o.Notifier.Namespace, &m) {
			f.plan.Stopped = append(f.plan.Stopped, m)
		}
	}
}

// resume notes that a rollout is not stopped, and resolves the alert about it.
func (f *follower) resume(s *Subject, t *v1alpha1.ToldRollout) {
	if t.Phase != v1alpha1.RolloutStopped {
		return
	}
	t.Phase = v1alpha1.RolloutStarted
	f.tell(s, t, &v1alpha1.NotifierMessage{Phase: v1alpha1.RolloutResumed, Reason: "Running", Severity: severityInfo, At: f.at(time.Time{})})
}

// over tells how a rollout has ended.
func (f *follower) over(s *Subject, r *Rollout, t *v1alpha1.ToldRollout) {
	t.Phase, t.Outcome = v1alpha1.RolloutEnded, r.Reason
	severity := severityWarning
	switch {
	case r.State == Returned:
		t.Phase = v1alpha1.RolloutReturned
	case r.Reason == OutcomeComplete || r.Reason == OutcomeSuperseded:
		severity = severityInfo
	}
	f.tell(s, t, &v1alpha1.NotifierMessage{Phase: t.Phase, Reason: r.Reason, Severity: severity, Sentence: r.Sentence, At: f.at(r.EndedAt)})
}

// end ends a rollout of which no status says anything any more.
func (f *follower) end(s *Subject, t *v1alpha1.ToldRollout, outcome string) {
	if t.Rollout == "" || isOver(t.Phase) {
		return
	}
	f.resume(s, t)
	f.over(s, &Rollout{ID: t.Rollout, State: Ended, Reason: outcome}, t)
}

// at is a time of a message: that in the status, or now.
func (f *follower) at(t time.Time) metav1.MicroTime {
	if t.IsZero() {
		t = f.o.Now
	}
	return metav1.NewMicroTime(t.Truncate(time.Microsecond))
}

// tell puts a message into the queue, if it is to be sent.
func (f *follower) tell(s *Subject, t *v1alpha1.ToldRollout, m *v1alpha1.NotifierMessage) {
	f.complete(s, t, m)
	if f.o.Notifier.Spec.Suspend || !f.isSent(m) {
		return
	}
	f.status.Queue = append(f.status.Queue, *m)
	if n := len(f.status.Queue) - mostQueued; n > 0 {
		f.status.Queue = slices.Clone(f.status.Queue[n:])
		f.status.Dropped += int64(n)
		f.plan.Dropped += n
	}
}

// isSent is true of the messages that the transport has, and the filter lets through. An alert
// is resolved whatever the filter says.
func (f *follower) isSent(m *v1alpha1.NotifierMessage) bool {
	alerts := f.o.Notifier.Spec.Alertmanager != nil
	if m.Phase == v1alpha1.RolloutResumed {
		return alerts
	}
	if alerts && m.Phase != v1alpha1.RolloutStopped && m.Phase != v1alpha1.RolloutReturned {
		return false
	}
	return f.filter.Lets(f.o.Notifier.Namespace, m)
}

// complete adds to a message what it is about, and its identity: that of the object, that of
// the rollout, and the phase.
func (f *follower) complete(s *Subject, t *v1alpha1.ToldRollout, m *v1alpha1.NotifierMessage) {
	m.Ring, m.Kind, m.Name, m.Rollout, m.TraceID, m.Sentence = s.Ring, s.Kind, s.Name, t.Rollout, t.TraceID, message.Cut(m.Sentence, sentenceLength)
	_, object, _ := strings.Cut(s.Key, "/") // without the kind
	m.ID = fmt.Sprintf("%s/%s/%d/%s", object, t.Rollout, t.StartedAt.UnixMicro(), m.Phase)
	if t.Tries > 0 {
		m.ID += fmt.Sprintf(".%d", t.Tries)
	}
	if m.Phase == v1alpha1.RolloutStopped || m.Phase == v1alpha1.RolloutResumed {
		m.ID += fmt.Sprintf("/%d", t.Stops)
	}
}

// from is the place of the first rollout to look at: the one that was reported last, or all since
// then.
func (f *follower) from(s *Subject, t *v1alpha1.ToldRollout) int {
	if i := slices.IndexFunc(s.Rollouts, func(r Rollout) bool { return isSame(t, &r) }); i >= 0 {
		return i
	}
	i := slices.IndexFunc(s.Rollouts, func(r Rollout) bool {
		isNews := r.State < Ended || r.EndedAt.IsZero() || !r.EndedAt.Before(f.since())
		return isNews && (t.Rollout == "" || r.StartedAt.IsZero() || r.StartedAt.After(t.StartedAt.Time))
	})
	if i < 0 {
		return len(s.Rollouts)
	}
	return i
}

// isSame is true of the rollout that was reported last.
func isSame(t *v1alpha1.ToldRollout, r *Rollout) bool {
	return t.Rollout == r.ID && (r.StartedAt.IsZero() || t.StartedAt.Time.Equal(r.StartedAt.Truncate(time.Microsecond)))
}

func isOver(p v1alpha1.NotifierPhase) bool {
	return p == v1alpha1.RolloutEnded || p == v1alpha1.RolloutReturned
}
