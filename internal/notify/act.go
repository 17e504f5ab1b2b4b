package notify

import (
	"context"

	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/spillway-dev/spillway/api/spillway/v1alpha1"
	"github.com/spillway-dev/spillway/internal/notify/decision"
	"github.com/spillway-dev/spillway/internal/notify/transport"
	"github.com/spillway-dev/spillway/internal/outbound"
	"github.com/spillway-dev/spillway/internal/ring"
)

// result is what became of a plan.
type result struct {
	// object is the Notifier as the API server answered, nil if nothing was written.
	object *v1alpha1.Notifier
	err    error
	// delivered is how many messages were, and failure why the next one was not.
	delivered int
	failure   *decision.Failure
	// renewed is true if the alerts were sent again, whatever became of that.
	renewed bool
}

// act records what is reported, or sends what is recorded. Nothing is written that is about another
// version of the Notifier than the one that was read.
func (r *reconciler) act(ctx context.Context, s *snapshot, p *plan) result {
	if p.Persist {
		return r.write(ctx, s, &p.Status, result{})
	}
	if !p.sends() && !p.renew {
		return result{}
	}
	key := client.ObjectKeyFromObject(s.notifier)
	if !r.turns.Take(key) {
		return result{} // it is woken when it is its turn
	}
	defer r.turns.Done(key)
	if p.renew {
		return result{renewed: true, failure: r.send(ctx, s, p.Stopped, func(int) {})}
	}
	done := result{}
	if !s.notifier.Spec.Suspend {
		done.failure = r.send(ctx, s, p.Deliver, func(n int) { done.delivered = n })
	}
	status := decision.Delivered(p.Status, p.Deliver[:done.delivered], done.failure, r.options.Now())
	status.ObservedGeneration = s.notifier.Generation
	describe(&status, s, p, r.options.Now())
	return r.write(ctx, s, &status, done)
}

// send sends messages until one fails, and counts them.
func (r *reconciler) send(ctx context.Context, s *snapshot, messages []v1alpha1.NotifierMessage, count func(int)) *decision.Failure {
	spec := &s.notifier.Spec
	secret, err := outbound.Secret(ctx, r.live, s.notifier.Namespace, spec.SecretRef.Name)
	if err != nil {
		return &decision.Failure{Text: err.Error()}
	}
	target, err := transport.To(r.options.Hosts, s.notifier.Namespace, spec, secret)
	if err != nil {
		return &decision.Failure{Text: err.Error()}
	}
	for i := range messages {
		m := &transport.Message{NotifierMessage: messages[i], Namespace: s.notifier.Namespace}
		if failure := target.Send(ctx, m, r.options.Now()); failure != nil {
			return failure
		}
		count(i + 1)
	}
	return nil
}

// write writes the status, and adds to a result what became of that.
func (r *reconciler) write(ctx context.Context, s *snapshot, status *v1alpha1.NotifierStatus, done result) result {
	done.object, done.err = ring.UpdateStatus(ctx, r.status, s.notifier, func(n *v1alpha1.Notifier) { n.Status = *status }, ring.ReadBack)
	return done
}
