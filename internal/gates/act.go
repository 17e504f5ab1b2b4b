package gates

import (
	"context"

	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/spillway-dev/spillway/api/spillway/v1alpha1"
	"github.com/spillway-dev/spillway/internal/gates/measure"
	"github.com/spillway-dev/spillway/internal/gates/source"
	"github.com/spillway-dev/spillway/internal/metrics"
	"github.com/spillway-dev/spillway/internal/outbound"
	"github.com/spillway-dev/spillway/internal/ring"
)

// result is what became of a plan.
type result struct {
	// object is the gate as the API server answered, nil if nothing was written.
	object *v1alpha1.RolloutGate
	err    error
	// waits is true if it is not the turn of the gate.
	waits bool
}

// act measures if that is due, and writes the status. Nothing is written that is about
// another version of the gate than the one that was read.
func (r *reconciler) act(ctx context.Context, s *snapshot, p *plan) result {
	state := p.persist
	if p.measure {
		key := client.ObjectKeyFromObject(s.gate)
		if !r.turns.Take(key) {
			return result{waits: true}
		}
		defer r.turns.Done(key)
		after := measure.Add(p.state, p.rules, r.ask(ctx, s))
		state = &after
	}
	if state == nil {
		return result{}
	}
	now := r.options.Now()
	written, err := ring.UpdateStatus(ctx, r.status, s.gate, func(g *v1alpha1.RolloutGate) { describe(g, state, now) }, ring.ReadBack)
	return result{object: written, err: err}
}

// ask makes a measurement.
func (r *reconciler) ask(ctx context.Context, s *snapshot) measure.Sample {
	spec := &s.template.Spec
	q := &source.Question{Namespace: s.gate.Namespace, Template: spec, Labels: labelsOf(s.gate)}
	secret, err := r.secret(ctx, s)
	sample := source.Unreadable(s.now, err)
	if err == nil {
		q.Secret = secret
		sample = source.Ask(ctx, r.options.Hosts, q, s.now)
	}
	metrics.GatesMeasurements.WithLabelValues(sourceName(spec), string(sample.Result)).Inc()
	return sample
}

// secret reads the Secret that a template refers to.
func (r *reconciler) secret(ctx context.Context, s *snapshot) (*corev1.Secret, error) {
	ref := s.template.Spec.SecretRef
	if ref == nil {
		return nil, nil //nolint:nilnil // there is none
	}
	return outbound.Secret(ctx, r.live, s.gate.Namespace, ref.Name)
}

func sourceName(s *v1alpha1.GateTemplateSpec) string {
	if s.HTTP != nil {
		return "http"
	}
	return "prometheus"
}

// labelsOf are what a template may contain of a gate.
func labelsOf(g *v1alpha1.RolloutGate) source.Labels {
	s := &g.Spec
	return source.Labels{
		"namespace": g.Namespace, "kind": s.TargetRef.Kind, "name": s.TargetRef.Name, "group": s.TargetRef.Name,
		"stage": s.Stage, "zone": s.Stage, "revision": s.Revision, "gate": s.Gate,
	}
}
