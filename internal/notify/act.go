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
	// silenced is true if the silences were renewed, unsilenced about what they were ended,
	// whatever became of that, and unheard why one of these failed.
	silenced   bool
	unsilenced []string
	unheard    *decision.Failure
}

// act records what is reported, or sends what is recorded. Nothing is written that is about another
// version of the Notifier than the one that was read.
func (r *reconciler) act(ctx context.Context, s *snapshot, p *plan) result {
	if p.Persist {
		return r.write(ctx, s, &p.Status, result{})
	}
	if !p.sends() && !p.renew && !p.silence {
		return result{}
	}
	key := client.ObjectKeyFromObject(s.notifier)
	if !r.turns.Take(key) {
		return result{} // it is woken when it is its turn
	}
	defer r.turns.Done(key)
	switch {
	case p.sends():
		return r.deliver(ctx, s, p)
	case p.renew:
		return result{renewed: true, failure: r.send(ctx, s, p.Stopped, func(int) {})}
	default:
		return r.silence(ctx, s, p)
	}
}

// deliver sends messages, and records what was delivered.
func (r *reconciler) deliver(ctx context.Context, s *snapshot, p *plan) result {
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
	target, err := r.target(ctx, s)
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

// target is where messages are sent, by what its Secret says now.
func (r *reconciler) target(ctx context.Context, s *snapshot) (*transport.Target, error) {
	secret, err := outbound.Secret(ctx, r.live, s.notifier.Namespace, s.notifier.Spec.SecretRef.Name)
	if err != nil {
		return nil, err
	}
	return transport.To(outbound.Network{Hosts: r.options.Hosts, Services: r.live, Own: r.options.Own}, s.notifier.Namespace, &s.notifier.Spec, secret)
}

// silence renews and ends silences, and records which were ended. None is tried again before the
// next minute: what was not renewed or ended lapses.
func (r *reconciler) silence(ctx context.Context, s *snapshot, p *plan) result {
	done := result{silenced: true, unsilenced: p.Unsilenced}
	var target *transport.Target
	if s.notifier.Spec.Alertmanager != nil {
		var err error
		if target, err = r.target(ctx, s); err != nil {
			done.unheard = &decision.Failure{Text: err.Error()}
		}
	}
	try := func(names []string, send func(*transport.Unit) *decision.Failure) {
		if target == nil { // the silences of an earlier spec lapse
			return
		}
		for i := 0; i < len(names) && done.unheard == nil; i++ {
			done.unheard = send(&transport.Unit{Namespace: s.notifier.Namespace, Notifier: s.notifier.Name, StatefulSet: names[i]})
		}
	}
	try(p.Unsilenced, func(u *transport.Unit) *decision.Failure { return target.EndSilence(ctx, u) })
	try(p.Silenced, func(u *transport.Unit) *decision.Failure { return target.Silence(ctx, u, r.options.Now()) })
	if len(p.Unsilenced) == 0 {
		return done
	}
	status := decision.Unsilenced(p.Status, p.Unsilenced)
	return r.write(ctx, s, &status, done)
}

// write writes the status, and adds to a result what became of that.
func (r *reconciler) write(ctx context.Context, s *snapshot, status *v1alpha1.NotifierStatus, done result) result {
	done.object, done.err = ring.UpdateStatus(ctx, r.status, s.notifier, func(n *v1alpha1.Notifier) { n.Status = *status }, ring.ReadBack)
	return done
}
