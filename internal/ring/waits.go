package ring

import (
	"time"

	"github.com/spillway-dev/spillway/internal/metrics"
	"github.com/spillway-dev/spillway/rollout"
)

// Waits measures for how long the units of an object wait, and why. The zero value is
// ready to use.
type Waits struct {
	asOf     time.Time
	byReason map[rollout.Reason]wait
	queued   int
}

// wait is what waits for one reason.
type wait struct {
	units int
	// since is when the first of them began, as far as that is known.
	since time.Time
}

// Wait shows what waits now, for the metrics of a ring. Without holds the object waits for
// nothing, or is gone.
func (w *Waits) Wait(ring string, now time.Time, holds []rollout.Hold) {
	is, queued := w.count(now, holds)
	for reason, was := range w.byReason {
		metrics.WaitingSeconds.WithLabelValues(ring, string(reason)).Add(float64(was.units) * max(0, now.Sub(w.asOf)).Seconds())
	}
	var oldest time.Time
	for reason, wait := range is {
		oldest = Earlier(oldest, wait.since)
		metrics.WaitingUnits.WithLabelValues(ring, string(reason)).Add(float64(wait.units - w.byReason[reason].units))
	}
	for reason, was := range w.byReason {
		if is[reason].units == 0 {
			metrics.WaitingUnits.WithLabelValues(ring, string(reason)).Sub(float64(was.units))
		}
	}
	metrics.QueuedUnits.WithLabelValues(ring).Add(float64(queued - w.queued))
	metrics.OldestWait.Set(ring, w, oldest)
	w.asOf, w.byReason, w.queued = now, is, queued
}

// count counts the holds by reason. One that does not say since when it lasts began when its
// reason did.
func (w *Waits) count(now time.Time, holds []rollout.Hold) (is map[rollout.Reason]wait, queued int) {
	is = map[rollout.Reason]wait{}
	for i := range holds {
		h := &holds[i]
		since := h.Since
		if since.IsZero() {
			since = now
			if before, known := w.byReason[h.Reason]; known {
				since = before.since
			}
		}
		counted := is[h.Reason]
		is[h.Reason] = wait{units: counted.units + 1, since: Earlier(counted.since, since)}
		if h.Position > 0 {
			queued++
		}
	}
	return is, queued
}
