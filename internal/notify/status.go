package notify

import (
	"context"
	"fmt"
	"time"

	"k8s.io/client-go/tools/events"

	"github.com/spillway-dev/spillway/api/spillway/v1alpha1"
	"github.com/spillway-dev/spillway/internal/metrics"
	"github.com/spillway-dev/spillway/internal/notify/transport"
	"github.com/spillway-dev/spillway/internal/reasons"
	"github.com/spillway-dev/spillway/internal/ring"
)

// describe sets the conditions in a status.
func describe(status *v1alpha1.NotifierStatus, s *snapshot, p *plan, now time.Time) {
	c := ring.Conditions{Ready: true, Reason: ReasonNotifying, Message: "messages are sent to the address in Secret " + s.notifier.Spec.SecretRef.Name}
	switch {
	case p.Problem != nil:
		c = ring.Conditions{Stalled: true, Reason: ReasonInvalidFilter, Message: p.Problem.Error()}
	case s.notifier.Spec.Suspend:
		c.Reason, c.Message = reasons.Suspended, "no message is sent: spec.suspend is true"
	case status.Attempts > 0:
		c = ring.Conditions{Reconciling: true, Reason: ReasonDeliveryFailed, Message: "messages are pending: " + status.LastError}
	}
	if p.Untold > 0 {
		c.Message += fmt.Sprintf("; nothing is reported of %d further objects, because there are too many", p.Untold)
	}
	c.Set(&status.Conditions, s.notifier.Generation, now)
}

// reporter reports what was sent and written.
type reporter struct{ ring.Reporter }

func newReporter(recorder events.EventRecorder) reporter {
	return reporter{ring.Reporter{Events: recorder, Action: "Notify", Writes: metrics.NotifyWrites}}
}

func (r *reporter) report(ctx context.Context, s *snapshot, p *plan, done *result, m *memory) {
	counts := metrics.NotifyMessages.MustCurryWith(map[string]string{"transport": transport.Name(&s.notifier.Spec)})
	counts.WithLabelValues("delivered").Add(float64(done.delivered))
	if done.failure != nil {
		counts.WithLabelValues("failed").Inc()
	}
	counts.WithLabelValues("dropped") // an increase of what there was not before would not be seen
	m.Show(pending(s, p, done))
	r.unheard(s, done, m)
	if done.object == nil && done.err == nil {
		return
	}
	r.Wrote(ctx, ring.Change{Act: "Notify", Object: s.notifier.Name}, done.err)
	if done.err != nil {
		return
	}
	was, is := &s.notifier.Status, &done.object.Status
	if n := is.Dropped - was.Dropped; n > 0 {
		counts.WithLabelValues("dropped").Add(float64(n))
		r.Warning(done.object, EventDropped, "%d messages are dropped and not sent again", n)
	}
	if is.Attempts > 0 && was.Attempts == 0 {
		r.Warning(done.object, ReasonDeliveryFailed, "messages are pending: %s", is.LastError)
	}
}

// pending is how many messages wait to be delivered. A Notifier that is suspended delivers none on
// purpose.
func pending(s *snapshot, p *plan, done *result) map[ring.Series]float64 {
	if s.notifier.Spec.Suspend {
		return nil
	}
	return map[ring.Series]float64{
		ring.SeriesOf(metrics.NotifyPending, s.notifier.Namespace, s.notifier.Name): float64(p.Status.Pending) - float64(done.delivered),
	}
}

// unheard reports once that silences cannot be made or ended.
func (r *reporter) unheard(s *snapshot, done *result, m *memory) {
	if done.unheard != nil && m.unheard == "" {
		r.Warning(s.notifier, EventSilenceFailed, "alerts are not silenced, or still are: %s", done.unheard.Text)
	}
}
