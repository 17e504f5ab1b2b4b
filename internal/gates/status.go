package gates

import (
	"time"

	apimeta "k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/tools/events"

	"github.com/spillway-dev/spillway/api/spillway/v1alpha1"
	"github.com/spillway-dev/spillway/internal/gates/measure"
	"github.com/spillway-dev/spillway/internal/message"
	"github.com/spillway-dev/spillway/internal/metrics"
	"github.com/spillway-dev/spillway/internal/ring"
	"github.com/spillway-dev/spillway/rollout"
)

// describe sets the status of a gate to a state of its measuring, and the condition to what
// follows from it.
func describe(g *v1alpha1.RolloutGate, s *measure.State, now time.Time) {
	g.Status.Measurement = s
	c := metav1.Condition{
		Type: v1alpha1.GatePassed, Status: metav1.ConditionUnknown, Reason: string(ReasonMeasuring),
		Message: message.Sentence(measure.Sentence(s)), LastTransitionTime: metav1.NewTime(now),
	}
	switch {
	case s.DryRun:
		c.Status, c.Reason, c.Message = metav1.ConditionTrue, string(ReasonDryRun), message.Sentence("dry run: "+dryRunSentence(s))
	case s.Verdict == v1alpha1.VerdictPassed:
		c.Status, c.Reason = metav1.ConditionTrue, string(ReasonMeasured)
	case s.Verdict == v1alpha1.VerdictRefused:
		c.Status, c.Reason = metav1.ConditionFalse, string(ReasonMeasured)
	}
	apimeta.SetStatusCondition(&g.Status.Conditions, c)
}

func dryRunSentence(s *measure.State) string {
	switch s.Verdict {
	case v1alpha1.VerdictRefused:
		return "it would be refused: " + measure.Sentence(s)
	case v1alpha1.VerdictPassed:
		return "it would pass: " + measure.Sentence(s)
	default:
		return measure.Sentence(s)
	}
}

// reporter reports what was written.
type reporter struct{ ring.Reporter }

func newReporter(recorder events.EventRecorder) reporter {
	return reporter{ring.Reporter{Events: recorder, Action: "Measure", Writes: metrics.GatesWrites}}
}

// decided emits an Event for a verdict that the status did not have before.
func (r *reporter) decided(before, after *v1alpha1.RolloutGate) {
	was, is := before.Status.Measurement, after.Status.Measurement
	if is == nil || is.Verdict == "" || was != nil && was.Verdict != "" {
		return
	}
	metrics.GatesVerdicts.WithLabelValues(string(is.Verdict)).Inc()
	c := apimeta.FindStatusCondition(after.Status.Conditions, v1alpha1.GatePassed)
	if is.Verdict == v1alpha1.VerdictRefused {
		r.Warning(after, rollout.ReasonGateRefused, "%s", sentence(after, "was refused", c))
		return
	}
	r.Normal(after, EventPassed, "%s", sentence(after, "has passed", c))
}

func sentence(g *v1alpha1.RolloutGate, what string, c *metav1.Condition) string {
	s := &g.Spec
	return s.TargetRef.Kind + " " + s.TargetRef.Name + ": gate " + s.Gate + " of " + s.Stage + " " + what + ": " + c.Message
}
