package ring

import (
	"context"
	"fmt"
	"strings"

	"github.com/prometheus/client_golang/prometheus"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/client-go/tools/events"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/log"

	"github.com/spillway-dev/spillway/internal/message"
	"github.com/spillway-dev/spillway/internal/reasons"
	"github.com/spillway-dev/spillway/rollout"
)

// Reporter reports what happened: Events, metrics, log.
type Reporter struct {
	// Events are emitted through it, with Action as their action.
	Events events.EventRecorder
	Action string
	// Writes counts writes by the labels act and result: made, conflict or failed.
	Writes *prometheus.CounterVec
}

// Wrote counts and logs a write. One that lost a conflict is decided again, in silence.
func (r *Reporter) Wrote(ctx context.Context, c Change, err error, keysAndValues ...any) {
	l := log.FromContext(ctx).WithValues("act", c.Act, "object", c.Object)
	switch {
	case err == nil:
		r.Writes.WithLabelValues(c.Act, "made").Inc()
		l.Info("write made", keysAndValues...)
	case IsConflict(err):
		r.Writes.WithLabelValues(c.Act, "conflict").Inc()
		l.V(1).Info("conflict, observing again", "error", err.Error())
	default:
		r.Writes.WithLabelValues(c.Act, "failed").Inc()
		l.Error(err, "write failed, retrying later")
	}
}

// Course is whether a rollout is stalled, paused or continues, as the status of its object
// says. [Reporter.Turned] compares the Course before a write of the status with that after it.
type Course struct {
	Stalled, Paused bool
	// Message is why, Progress how far it has come.
	Message, Progress string
}

// Turned emits an Event if a rollout has become stuck, is paused or goes on: what the
// status did not say before it was written and says now, so that every change is
// reported once, whichever manager leads.
func (r *Reporter) Turned(about client.Object, was, is Course) {
	switch {
	case !was.Stalled && is.Stalled:
		r.Warning(about, reasons.RolloutStuck, "%s", is.Message)
	case was.Stalled && !is.Stalled, was.Paused && !is.Paused:
		r.Normal(about, reasons.RolloutResumed, "the rollout continues: %s", is.Progress)
	case !was.Paused && is.Paused:
		r.Normal(about, reasons.RolloutPaused, "%s", is.Message)
	}
}

// Normal emits an Event about an object.
func (r *Reporter) Normal(about client.Object, reason rollout.Reason, note string, args ...any) {
	r.emit(about, corev1.EventTypeNormal, reason, fmt.Sprintf(note, args...))
}

// Warning emits a warning about an object.
func (r *Reporter) Warning(about client.Object, reason rollout.Reason, note string, args ...any) {
	r.emit(about, corev1.EventTypeWarning, reason, fmt.Sprintf(note, args...))
}

func (r *Reporter) emit(about client.Object, eventType string, reason rollout.Reason, note string) {
	r.Events.Eventf(about, nil, eventType, string(reason), r.Action, "%s", message.Cut(note, message.NoteLength))
}

// Said remembers the last sentence that was reported about each subject, so that the same
// sentence is not reported again in each pass. It is in memory only: a new manager reports a
// sentence once more. The zero value is ready to use.
type Said struct{ sentences map[string]string }

// IsNew is true if a sentence is another than the last one about the same, and is not
// empty.
func (s *Said) IsNew(about, sentence string) bool {
	if s.sentences[about] == sentence {
		return false
	}
	if s.sentences == nil {
		s.sentences = map[string]string{}
	}
	s.sentences[about] = sentence
	return sentence != ""
}

// Series is one time series of a gauge.
type Series struct {
	gauge  *prometheus.GaugeVec
	labels string
}

// separator is in no label.
const separator = "\xff"

// SeriesOf is the time series of a gauge with these values of its labels.
func SeriesOf(gauge *prometheus.GaugeVec, labels ...string) Series {
	return Series{gauge: gauge, labels: strings.Join(labels, separator)}
}

// Gauges are the time series that an object shows. The zero value is ready to use. To
// find those that end among the series of all objects would cost every pass more the
// more objects there are.
type Gauges struct{ shown map[Series]float64 }

// Show makes these the series of the object.
func (g *Gauges) Show(now map[Series]float64) {
	for s := range g.shown {
		if _, lasts := now[s]; !lasts {
			s.gauge.DeleteLabelValues(s.values()...)
		}
	}
	for s, value := range now {
		if before, known := g.shown[s]; !known || before != value {
			s.gauge.WithLabelValues(s.values()...).Set(value)
		}
	}
	g.shown = now
}

func (s Series) values() []string { return strings.Split(s.labels, separator) }
