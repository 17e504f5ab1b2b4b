package notify

import (
	"context"
	"fmt"
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/runtime/schema"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/spillway-dev/spillway/api/spillway/v1alpha1"
	"github.com/spillway-dev/spillway/internal/kube"
	"github.com/spillway-dev/spillway/internal/outbound"
	"github.com/spillway-dev/spillway/internal/ring"
)

// +kubebuilder:rbac:groups="",resources=services,verbs=get
// +kubebuilder:rbac:groups=spillway.dev,resources=notifiers,verbs=list;watch
// +kubebuilder:rbac:groups=spillway.dev,resources=notifiers/status,verbs=update
// +kubebuilder:rbac:groups=apiextensions.k8s.io,resources=customresourcedefinitions,resourceNames=notifiers.spillway.dev,verbs=list;watch
// +kubebuilder:rbac:groups=events.k8s.io,resources=events,verbs=create;patch

// Options are the choices of the user who runs the manager.
type Options struct {
	// Now is the clock.
	Now func() time.Time
	// Off sends nothing.
	Off bool
	// Rings are those that run, and Namespaces those that are watched, all if empty. The
	// manager sets them.
	Rings, Namespaces []string
	// Hosts are those that messages may be sent to besides public ones and those of their
	// namespace.
	Hosts outbound.Hosts
	// Own is what of the cluster they may not be sent to otherwise; see [outbound.Own].
	Own *outbound.Own
	// Traced is true if rollouts are written as traces, whose ids messages then have.
	Traced bool
}

// Setup adds the controller to a manager. While its kind is not installed, it says so and
// waits for it.
func Setup(ctx context.Context, mgr ctrl.Manager, o Options) error {
	needed := kube.Needed{
		Ring: "notify", Called: "the kind Notifier is", Without: "no message is sent about rollouts",
		Action: "apply what \"spillway install --export\" prints",
		Kinds:  []schema.GroupVersionKind{v1alpha1.GroupVersion.WithKind("Notifier")}, IsOptional: true,
	}
	return needed.Start(ctx, mgr, func(ctx context.Context) error { return start(ctx, mgr, o) })
}

func start(ctx context.Context, mgr ctrl.Manager, o Options) error {
	r := &reconciler{
		options: o, cached: mgr.GetClient(), live: mgr.GetAPIReader(), status: mgr.GetClient().Status(),
		reporter: newReporter(mgr.GetEventRecorder("spillway")), turns: outbound.NewTurns(),
	}
	c, err := ctrl.NewControllerManagedBy(mgr).Named("notify").
		Watches(&v1alpha1.Notifier{}, &handler.EnqueueRequestForObject{}).
		WatchesRawSource(r.turns.Source()).
		WithOptions(controller.Options{MaxConcurrentReconciles: outbound.Parallel, RateLimiter: ring.Passes().RateLimiter()}).
		Build(r)
	if err != nil {
		return fmt.Errorf("build the controller: %w", err)
	}
	return r.watchAll(ctx, mgr, c)
}

// toNotifiers maps an object with rollouts to the Notifiers of the namespaces that it is about.
func (r *reconciler) toNotifiers() handler.EventHandler {
	return handler.EnqueueRequestsFromMapFunc(func(ctx context.Context, obj client.Object) []reconcile.Request {
		var requests []reconcile.Request
		for _, namespace := range namespacesOf(obj) {
			list := &v1alpha1.NotifierList{}
			if err := r.cached.List(ctx, list, client.InNamespace(namespace), client.UnsafeDisableDeepCopy); err != nil {
				return nil // the cache is not ready; it will show the Notifiers
			}
			for i := range list.Items {
				requests = append(requests, reconcile.Request{NamespacedName: client.ObjectKeyFromObject(&list.Items[i])})
			}
		}
		return requests
	})
}

// namespacesOf are those that the rollouts of an object are about. For a change this is asked
// of the object before and after it.
func namespacesOf(obj client.Object) []string {
	p, ok := obj.(*v1alpha1.ClusterConfigPolicy)
	if !ok {
		return []string{obj.GetNamespace()}
	}
	namespaces := make([]string, len(p.Status.Releases))
	for i := range p.Status.Releases {
		namespaces[i] = p.Status.Releases[i].Namespace
	}
	slices.Sort(namespaces)
	return slices.Compact(namespaces)
}

// reconciler sends the messages of Notifiers. There is one request for each.
type reconciler struct {
	options  Options
	cached   client.Client
	live     client.Reader
	status   client.SubResourceWriter
	reporter reporter
	turns    *outbound.Turns
	readable readable
	memories ring.Memories[memory]
}

// memory is what is remembered of a Notifier: when its alerts and silences were sent last, and its
// metrics. A manager that begins without it sends them once more.
type memory struct {
	ring.Gauges

	renewed, silencedAt time.Time
	silenced            []string
	// unheard is why the silences were not renewed last, empty if they were.
	unheard string
}

// learn remembers what was sent.
func (m *memory) learn(p *plan, done *result, now time.Time) {
	if done.renewed {
		m.renewed = now
	}
	if done.silenced {
		m.silenced, m.silencedAt, m.unheard = p.Silenced, now, ""
		if done.unheard != nil {
			m.unheard = done.unheard.Text
		}
	}
}

// maxPasses bounds how many passes follow one another: one that records, one that sends, one that
// renews alerts, one that renews silences, and one that finds out when to go on.
const maxPasses = 5

// Reconcile makes passes over a Notifier.
func (r *reconciler) Reconcile(ctx context.Context, req reconcile.Request) (reconcile.Result, error) {
	defer r.turns.Next(req.Namespace)
	m := r.memories.Of(req.NamespacedName, func() *memory { return &memory{} })
	loop := ring.Loop[snapshot, plan, result]{
		Most: maxPasses, Now: r.options.Now,
		Observe: func(ctx context.Context, _ bool) (snapshot, error) { return r.observe(ctx, req.NamespacedName, m) },
		Forget: func() {
			m.Show(nil)
			r.memories.Forget(req.NamespacedName)
		},
		Plan:   decide,
		Act:    r.act,
		Report: func(ctx context.Context, s *snapshot, p *plan, done *result) { r.reporter.report(ctx, s, p, done, m) },
		Learn: func(_ context.Context, _ *snapshot, p *plan, done *result) (ring.Next, error) {
			m.learn(p, done, r.options.Now())
			if ring.IsConflict(done.err) {
				return ring.Next{Again: true}, nil
			}
			return ring.Next{Again: done.object != nil || done.renewed || done.silenced, Wake: p.Wake}, done.err
		},
	}
	return loop.Run(ctx)
}
