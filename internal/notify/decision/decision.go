package decision

import (
	"slices"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/spillway-dev/spillway/api/spillway/v1alpha1"
	"github.com/spillway-dev/spillway/internal/ring"
)

const (
	// mostTold bounds the record, mostQueued the queue. The kind has the same limits.
	mostTold   = 512
	mostQueued = 64
	// batch is how many messages are sent before what was delivered is recorded.
	batch = 5
	// mostSilenced bounds about how many StatefulSets alerts are silenced at a time. The kind
	// has the same limit.
	mostSilenced = 64
)

// Plan is what is to be done for a Notifier.
type Plan struct {
	// Status is the status with what is reported now.
	Status v1alpha1.NotifierStatus
	// Persist is true if Status must be written before anything is sent.
	Persist bool
	// Verify is true if it is not known whether anything can be sent.
	Verify bool
	// Deliver are the messages to send, in order.
	Deliver []v1alpha1.NotifierMessage
	// Dropped is how many messages are dropped.
	Dropped int
	// Untold is how many objects have rollouts of which nothing is reported, because the record is
	// full.
	Untold int
	// Stopped are the rollouts that are stopped, and were reported to be: their alerts last.
	Stopped []v1alpha1.NotifierMessage
	// Silenced are the StatefulSets about which alerts are silenced, and Unsilenced those about
	// which they were, and no longer are to be.
	Silenced, Unsilenced []string
	// Problem is why the filter is not valid, nil if it is. Nothing is reported then.
	Problem error
	// Wake is when time alone changes something, zero for never.
	Wake time.Time
}

// Decide is pure.
func Decide(o *Observed) Plan {
	f := follower{o: o, status: *o.Notifier.Status.DeepCopy()}
	f.filter, f.plan.Problem = CompileFilter(o.Notifier.Spec.Filter)
	if f.plan.Problem == nil {
		f.follow()
	}
	f.silence()
	f.status.Pending = int32(len(f.status.Queue)) //nolint:gosec // bounded by mostQueued
	f.plan.Status = f.status
	f.plan.Persist = !equality.Semantic.DeepEqual(f.status, o.Notifier.Status)
	f.schedule()
	return f.plan
}

// schedule says what to send now, and when to go on.
func (f *follower) schedule() {
	p, s := &f.plan, &f.status
	p.Verify = s.ObservedGeneration != f.o.Notifier.Generation
	if p.Persist || f.o.Notifier.Spec.Suspend {
		return
	}
	if at := s.RetryAt; at != nil && f.o.Now.Before(at.Time) && !p.Verify {
		p.Wake = ring.Earlier(p.Wake, at.Time)
		return
	}
	p.Deliver = slices.Clone(s.Queue[:min(len(s.Queue), batch)])
	p.Verify = p.Verify || s.Attempts > 0 && len(p.Deliver) == 0
}

// follow compares all subjects with the record.
func (f *follower) follow() {
	told := map[string]v1alpha1.ToldRollout{}
	for _, t := range f.status.Told {
		told[t.Key] = t
	}
	f.status.Told = nil
	for i := range f.o.Subjects {
		s := &f.o.Subjects[i]
		t, known := told[s.Key]
		delete(told, s.Key)
		if !known && len(s.Rollouts) > 0 && len(f.status.Told)+len(told) >= mostTold {
			f.plan.Untold++
			continue
		}
		if t = f.subject(s, t); t.Rollout != "" {
			f.status.Told = append(f.status.Told, t)
		}
	}
	for _, t := range f.o.Notifier.Status.Told {
		if _, left := told[t.Key]; left {
			f.missing(t)
		}
	}
	slices.SortFunc(f.status.Told, func(a, b v1alpha1.ToldRollout) int { return strings.Compare(a.Key, b.Key) })
}

// missing ends what is reported of a subject that does not exist any more.
func (f *follower) missing(t v1alpha1.ToldRollout) {
	gone := f.o.Missing(t.Key)
	if gone == nil {
		f.status.Told = append(f.status.Told, t)
		return
	}
	s := &Subject{Key: t.Key, Ring: gone.Ring, Kind: gone.Kind, Name: t.Name}
	f.end(s, &t, gone.Outcome)
}

// since is when the Notifier was created: what had ended before is not told.
func (f *follower) since() time.Time { return f.o.Notifier.CreationTimestamp.Time }

// Delivered is the status after messages were delivered in vain or not: those before the
// first failure, which is nil if there was none.
func Delivered(s v1alpha1.NotifierStatus, done []v1alpha1.NotifierMessage, failure *Failure, now time.Time) v1alpha1.NotifierStatus {
	s = *s.DeepCopy()
	at := metav1.NewMicroTime(now.Truncate(time.Microsecond))
	if len(done) > 0 {
		s.LastDelivery = &v1alpha1.NotifierDelivery{At: at, ID: done[len(done)-1].ID}
		s.Attempts = 0
	}
	s.Queue = without(s.Queue, done)
	if failure == nil {
		s.LastError, s.Attempts, s.RetryAt = "", 0, nil
	} else {
		s = failed(s, failure, now)
	}
	s.Pending = int32(len(s.Queue)) //nolint:gosec // bounded by mostQueued
	return s
}

// without are the messages of a queue that were not delivered.
func without(queue, done []v1alpha1.NotifierMessage) []v1alpha1.NotifierMessage {
	return slices.DeleteFunc(queue, func(m v1alpha1.NotifierMessage) bool {
		return slices.ContainsFunc(done, func(d v1alpha1.NotifierMessage) bool { return d.ID == m.ID })
	})
}
