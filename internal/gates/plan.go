package gates

import (
	"time"

	apimeta "k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/spillway-dev/spillway/api/spillway/v1alpha1"
	"github.com/spillway-dev/spillway/internal/gates/measure"
)

// snapshot is a gate and its template, read at one moment.
type snapshot struct {
	now  time.Time
	gate *v1alpha1.RolloutGate
	// template is nil if there is none of the name of the gate.
	template *v1alpha1.GateTemplate
	// found is the Job of a gate that Jobs measure.
	found foundJob
}

// plan is what is to be done about a gate.
type plan struct {
	// persist is a state to write now, nil if there is none.
	persist *measure.State
	// state is that to which a measurement is added, if measure is true; sample is one that
	// was made by a Job.
	state   measure.State
	measure bool
	sample  *measure.Sample
	rules   measure.Rules
	// stop is a Job that nothing waits for any more.
	stop *v1alpha1.GateJob
	// err is why it is not known what to do.
	err error
	// wake is when time alone changes something.
	wake time.Time
}

// decide is pure.
func decide(s *snapshot) plan {
	if job := s.leftJob(); job != nil {
		return plan{stop: job}
	}
	if !s.isMeasured() {
		return plan{}
	}
	p := plan{rules: s.rules()}
	state, begun := s.state(p.rules)
	p.state = state
	next := measure.Look(&p.state, p.rules, s.now)
	switch {
	case next.TimedOut:
		over := measure.TimeOut(p.state, p.rules)
		p.persist = &over
	case !begun && (p.state.DryRun || !next.Measure): // what others wait for, or cannot be found out again
		p.persist = &p.state
	case next.Measure && s.template.Spec.Job != nil:
		s.follow(&p, next)
	default:
		p.measure, p.wake = next.Measure, next.Wake
	}
	return p
}

// state is how far the measuring has come. It has begun if the status says so.
func (s *snapshot) state(r measure.Rules) (state measure.State, begun bool) {
	if m := s.gate.Status.Measurement; m != nil && (m.Verdict != "" || m.Template == versionOf(s.template)) {
		return *m.DeepCopy(), true
	}
	return s.begin(r), false
}

func (s *snapshot) rules() measure.Rules {
	return measure.RulesOf(&s.template.Spec).Of(&s.gate.Spec)
}

// needsJob is true if what is to be done follows from a Job.
func (s *snapshot) needsJob() bool {
	if !s.isMeasured() || s.template.Spec.Job == nil {
		return false
	}
	rules := s.rules()
	state, _ := s.state(rules)
	return measure.Look(&state, rules, s.now).Measure
}

// isMeasured is true of a gate that the rollout has reached, that a template is to measure,
// and that no user has decided.
func (s *snapshot) isMeasured() bool {
	g := s.gate
	switch {
	case g.DeletionTimestamp != nil || g.Spec.ReachedAt == nil || s.template == nil || s.template.Spec.Manual != nil:
		return false
	case g.Status.Measurement != nil && g.Status.Measurement.DryRun:
		return true
	default:
		c := apimeta.FindStatusCondition(g.Status.Conditions, v1alpha1.GatePassed)
		return c == nil || c.Status == metav1.ConditionUnknown
	}
}

// leftJob is a Job that runs, and that nothing waits for any more: the gate was decided, or its
// template has changed.
func (s *snapshot) leftJob() *v1alpha1.GateJob {
	m := s.gate.Status.Measurement
	waits := m != nil && m.Verdict == "" && s.isMeasured() && m.Template == versionOf(s.template)
	if m == nil || waits || s.gate.DeletionTimestamp != nil {
		return nil
	}
	return m.Job
}

// begin is the state at the beginning: from when the gate was reached, and after a change of
// the template from now on.
func (s *snapshot) begin(r measure.Rules) measure.State {
	at := s.gate.Spec.ReachedAt.Time
	if s.gate.Status.Measurement != nil {
		at = s.now
	}
	return measure.Begin(at, versionOf(s.template), s.template.Spec.DryRun, r)
}

func versionOf(t *v1alpha1.GateTemplate) v1alpha1.GateTemplateVersion {
	return v1alpha1.GateTemplateVersion{Name: t.Name, UID: t.UID, Generation: t.Generation}
}
