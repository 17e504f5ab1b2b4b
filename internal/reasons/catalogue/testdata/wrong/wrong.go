// Package wrong breaks each of the rules.
package wrong

import (
	"github.com/prometheus/client_golang/prometheus"
	eventsv1 "k8s.io/api/events/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/tools/events"

	"github.com/spillway-dev/spillway/rollout"
)

const (
	// ReasonNoMend: it is so.
	ReasonNoMend rollout.Reason = "NoMend" // want "the comment of ReasonNoMend has to be"
	// It has another name.
	// Action: nothing.
	ReasonUnnamed rollout.Reason = "Unnamed" // want "the comment of ReasonUnnamed has to be"
	// ReasonEmpty: it is so.
	// Action:
	ReasonEmpty  rollout.Reason = "Empty"  // want "the comment of ReasonEmpty has to be"
	ReasonSilent rollout.Reason = "Silent" // want "the comment of ReasonSilent has to be"
	// ReasonTwice: it is so.
	// Action: nothing.
	ReasonTwice rollout.Reason = "Empty" // want "ReasonTwice is the word .Empty., as wrong.ReasonEmpty is"
	// ReasonUnused: it is so.
	// Action: nothing.
	ReasonUnused rollout.Reason = "Unused" // want "wrong.ReasonUnused is shown nowhere"
)

const untyped = "Untyped"

var (
	waiting = prometheus.NewGaugeVec(prometheus.GaugeOpts{}, []string{"name", "reason"})
	uses    = []rollout.Block{{Reason: ReasonNoMend}, {Reason: ReasonUnnamed}, {Reason: ReasonEmpty}, {Reason: ReasonSilent}, {Reason: ReasonTwice}}
)

type series struct {
	gauge  *prometheus.GaugeVec
	labels [2]string
}

func blocks(text string) []rollout.Block {
	return []rollout.Block{
		{Reason: "Literal"},                   // want ".Literal. is a reason without a constant"
		{Reason: untyped},                     // want "is a reason without a constant"
		{Reason: rollout.Reason("Converted")}, // want ".Converted. is a reason without a constant"
		{Reason: rollout.Reason(text)},        // want "text is made a reason"
		{Reason: ReasonNoMend + "More"},       // want "is a reason without a constant"
	}
}

func conditions(text string, holds []rollout.Hold) []metav1.Condition {
	c := metav1.Condition{Reason: "Literal"} // want "is shown as a reason"
	c.Reason = text                          // want "text is shown as a reason"
	c.Reason, c.Message = two()              // want "a reason is shown that is not seen to be one"
	c.Reason = string(rollout.PhaseComplete) // want "is shown as a reason"
	c.Reason = string(holds[0].Reason)
	return []metav1.Condition{c, {"Ready", "True", 0, metav1.Time{}, untyped, ""}} // want "untyped is shown as a reason"
}

func two() (a, b string) { return "", "" }

func tell(r events.EventRecorder, about runtime.Object, text string) *eventsv1.Event {
	r.Eventf(about, nil, "Normal", "Literal", "Act", "told") // want "is shown as a reason"
	r.Eventf(about, nil, "Normal", text, "Act", "told")      // want "text is shown as a reason"
	return &eventsv1.Event{Reason: text}                     // want "text is shown as a reason"
}

func count(text string) []series {
	waiting.WithLabelValues("name", text).Inc()                           // want "text is shown as a reason"
	waiting.With(prometheus.Labels{"name": "name", "reason": text}).Inc() // want "text is shown as a reason"
	return []series{{waiting, [2]string{text}}}                           // want "text is shown as a reason"
}

func is(r rollout.Reason) bool { return r == "" || r == "Compared" } // want ".Compared. is a reason without a constant"
