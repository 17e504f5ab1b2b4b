package gates

import (
	"context"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/spillway-dev/spillway/api/spillway/v1alpha1"
	"github.com/spillway-dev/spillway/internal/gates/measure"
	"github.com/spillway-dev/spillway/internal/gates/source"
	"github.com/spillway-dev/spillway/internal/kube"
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
	switch {
	case p.err != nil:
		return result{err: p.err}
	case p.stop != nil:
		return r.stop(ctx, s, p.stop)
	case p.sample != nil:
		after := measure.Add(p.state, p.rules, counted(s, *p.sample))
		state = &after
	case p.measure:
		key := client.ObjectKeyFromObject(s.gate)
		if !r.turns.Take(key) {
			return result{waits: true}
		}
		defer r.turns.Done(key)
		after, err := r.measure(ctx, s, p)
		if err != nil {
			return result{err: err}
		}
		state = &after
	}
	if state == nil {
		return result{}
	}
	now := r.options.Now()
	return r.write(ctx, s, func(g *v1alpha1.RolloutGate) { describe(g, state, now) })
}

func (r *reconciler) write(ctx context.Context, s *snapshot, set func(*v1alpha1.RolloutGate)) result {
	written, err := ring.UpdateStatus(ctx, r.status, s.gate, set, ring.ReadBack)
	return result{object: written, err: err}
}

// stop deletes a Job that nothing waits for any more. What was decided stays.
func (r *reconciler) stop(ctx context.Context, s *snapshot, job *v1alpha1.GateJob) result {
	if err := r.jobs.stop(ctx, s.gate, job); err != nil {
		return result{err: err}
	}
	return r.write(ctx, s, func(g *v1alpha1.RolloutGate) { g.Status.Measurement.Job = nil })
}

// measure makes a measurement, or begins one that a Job makes.
func (r *reconciler) measure(ctx context.Context, s *snapshot, p *plan) (measure.State, error) {
	if s.template.Spec.Job != nil {
		return r.jobs.start(ctx, s, p)
	}
	return measure.Add(p.state, p.rules, counted(s, r.ask(ctx, s))), nil
}

// counted counts a measurement for the metrics.
func counted(s *snapshot, sample measure.Sample) measure.Sample {
	metrics.GatesMeasurements.WithLabelValues(sourceName(&s.template.Spec), string(sample.Result)).Inc()
	return sample
}

// ask makes a measurement.
func (r *reconciler) ask(ctx context.Context, s *snapshot) measure.Sample {
	spec := &s.template.Spec
	q := &source.Question{Namespace: s.gate.Namespace, Template: spec, Labels: labelsOf(s.gate)}
	secret, err := r.secret(ctx, s)
	if err != nil {
		return source.Unreadable(s.now, err)
	}
	q.Secret = secret
	return source.Ask(ctx, outbound.Network{Hosts: r.options.Hosts, Services: r.live, Own: r.options.Own}, q, s.now)
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
	switch {
	case s.HTTP != nil:
		return "http"
	case s.Job != nil:
		return "job"
	default:
		return "prometheus"
	}
}

// labelsOf are what a template may contain of a gate.
func labelsOf(g *v1alpha1.RolloutGate) source.Labels {
	s := &g.Spec
	return source.Labels{
		"namespace": g.Namespace, "kind": s.TargetRef.Kind, "name": s.TargetRef.Name, "group": s.TargetRef.Name,
		"stage": s.Stage, "zone": s.Stage, "revision": s.Revision, "gate": s.Gate,
	}
}

// createJob creates a Job, of which the name follows from the measurement that it makes.
func createJob(ctx context.Context, w client.Writer, job *batchv1.Job) error {
	return w.Create(ctx, job, client.FieldOwner(kube.FieldOwner), client.DisableReadYourWritesConsistency) //nolint:wrapcheck // the caller does
}

// deleteJob deletes a Job with its Pods, if it is the one of the UID.
func deleteJob(ctx context.Context, w client.Writer, job *batchv1.Job, uid types.UID) error {
	return w.Delete(ctx, job, client.Preconditions{UID: &uid}, client.PropagationPolicy(metav1.DeletePropagationBackground)) //nolint:wrapcheck // the caller does
}
