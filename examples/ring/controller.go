package ring

import (
	"context"
	"fmt"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	corev1 "k8s.io/api/core/v1"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/spillway-dev/spillway/internal/ring"
	"github.com/spillway-dev/spillway/rollout"
)

// maxPasses bounds how many passes follow one another: one that finds that the cache does
// not suffice, one that permits, one that acts, and one to spare.
const maxPasses = 4

// EventRolled is emitted when a member is at its new revision.
const EventRolled rollout.Reason = "MemberRolled"

// reconciler runs the ring. There is one request for each rollout.
type reconciler struct {
	cached, live client.Reader
	client       client.Client
	reporter     ring.Reporter
	memories     ring.Memories[memory]
	now          func() time.Time
}

// memory is what the ring remembers of a rollout: what package ring asks for suffices.
type memory struct {
	ring.Memory[*corev1.ConfigMap]
}

// Setup adds the ring to a manager.
func Setup(mgr ctrl.Manager, now func() time.Time) error {
	r := &reconciler{cached: mgr.GetCache(), live: mgr.GetAPIReader(), client: mgr.GetClient(), now: now}
	r.reporter = ring.Reporter{
		Events: mgr.GetEventRecorder("example"), Action: "Roll",
		Writes: prometheus.NewCounterVec(prometheus.CounterOpts{Name: "example_writes_total", Help: "Writes by act and result."}, []string{"act", "result"}),
	}
	err := ctrl.NewControllerManagedBy(mgr).Named("example-ring").
		Watches(&corev1.ConfigMap{}, handler.EnqueueRequestsFromMapFunc(toRollout)).
		WithOptions(controller.Options{RateLimiter: ring.Passes().RateLimiter()}).
		Complete(r)
	if err != nil {
		return fmt.Errorf("build the controller: %w", err)
	}
	return nil
}

// toRollout maps a ConfigMap to the rollout that it is, or is a member of.
func toRollout(_ context.Context, obj client.Object) []reconcile.Request {
	for _, label := range []string{rolloutLabel, memberLabel} {
		if name := obj.GetLabels()[label]; name != "" {
			return []reconcile.Request{{NamespacedName: client.ObjectKey{Namespace: obj.GetNamespace(), Name: name}}}
		}
	}
	return nil
}

// Reconcile makes passes over a rollout.
func (r *reconciler) Reconcile(ctx context.Context, req reconcile.Request) (reconcile.Result, error) {
	m := r.memories.Of(req.NamespacedName, func() *memory { return &memory{} })
	loop := ring.Loop[snapshot, plan, results]{
		Most: maxPasses, Now: r.now,
		Observe: func(ctx context.Context, live bool) (snapshot, error) {
			return r.observe(ctx, req.NamespacedName, m, live)
		},
		Plan:      func(s *snapshot) plan { return decide(s, m) },
		NeedsLive: func(p *plan) bool { return p.needsLive },
		Act:       r.act,
		Report:    r.report,
		Learn: func(_ context.Context, s *snapshot, p *plan, done *results) (ring.Next, error) {
			if s.object == nil {
				r.memories.Forget(req.NamespacedName)
			}
			wake := ring.Learn(&m.Memory, r.now(), done, false)
			return ring.Next{Again: p.permits && done.Written(), Wake: ring.Earlier(p.Wake, wake)}, done.Failure()
		},
	}
	return loop.Run(ctx)
}

// report counts and logs the writes, and emits an Event for each member that was rolled.
func (r *reconciler) report(ctx context.Context, s *snapshot, _ *plan, done *results) {
	for i := range done.Writes {
		w := &done.Writes[i]
		r.reporter.Wrote(ctx, w.Change, w.Err)
		if w.Err == nil {
			r.reporter.Normal(s.object, EventRolled, "ConfigMap %s is at revision %s", w.Write.Name, w.Write.Revision)
		}
	}
}
