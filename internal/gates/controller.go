package gates

import (
	"context"
	"fmt"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/spillway-dev/spillway/api/spillway/v1alpha1"
	"github.com/spillway-dev/spillway/internal/kube"
	"github.com/spillway-dev/spillway/internal/outbound"
	"github.com/spillway-dev/spillway/internal/ring"
	"github.com/spillway-dev/spillway/internal/vocabulary"
	"github.com/spillway-dev/spillway/internal/watch"
)

// +kubebuilder:rbac:groups="",resources=services,verbs=get
// +kubebuilder:rbac:groups=spillway.dev,resources=rolloutgates;gatetemplates,verbs=list;watch
// +kubebuilder:rbac:groups=spillway.dev,resources=rolloutgates,verbs=get
// +kubebuilder:rbac:groups=batch,resources=jobs,verbs=get;list;watch
// +kubebuilder:rbac:groups=batch,resources=cronjobs,verbs=get
// +kubebuilder:rbac:groups=spillway.dev,resources=rolloutgates/status,verbs=update
// +kubebuilder:rbac:groups=apiextensions.k8s.io,resources=customresourcedefinitions,resourceNames=gatetemplates.spillway.dev;rolloutgates.spillway.dev,verbs=list;watch
// +kubebuilder:rbac:groups=events.k8s.io,resources=events,verbs=create;patch

// nameIndex finds the RolloutGates of a gate by its name.
const nameIndex = "spillway.dev/gate"

// Options are the choices of the user who runs the manager.
type Options struct {
	// Now is the clock.
	Now func() time.Time
	// Namespaces are those of the manager, all if empty.
	Namespaces []string
	// Off leaves all gates to users and other programs.
	Off bool
	// Hosts are those that gates may reach besides public ones and those of their namespace.
	Hosts outbound.Hosts
	// Own is what of the cluster they may not reach otherwise; see [outbound.Own].
	Own *outbound.Own
}

// Setup adds the controller to a manager. While its kinds are not installed, it says so and
// waits for them.
func Setup(ctx context.Context, mgr ctrl.Manager, o Options) error {
	needed := kube.Needed{
		Ring: "gates", Called: "the kinds RolloutGate and GateTemplate are", Without: "no gate is measured",
		Action:     "apply what \"spillway install --export\" prints",
		Kinds:      []schema.GroupVersionKind{v1alpha1.GroupVersion.WithKind("RolloutGate"), v1alpha1.GroupVersion.WithKind("GateTemplate")},
		IsOptional: true, // nothing waits for a gate whose kind the cluster does not have
	}
	return needed.Start(ctx, mgr, func(ctx context.Context) error { return start(ctx, mgr, o) })
}

func start(ctx context.Context, mgr ctrl.Manager, o Options) error {
	err := mgr.GetFieldIndexer().IndexField(ctx, &v1alpha1.RolloutGate{}, nameIndex, func(obj client.Object) []string {
		if g, ok := obj.(*v1alpha1.RolloutGate); ok {
			return []string{g.Spec.Gate}
		}
		return nil
	})
	if err != nil {
		return fmt.Errorf("index RolloutGates by name: %w", err)
	}
	ofGates := labels.SelectorFromSet(labels.Set{vocabulary.GateJob.Native: "true"})
	watches, err := watch.New(mgr, watch.Options{Namespaces: o.Namespaces, Marked: ofGates, Verbs: "list and watch"})
	if err != nil {
		return fmt.Errorf("watch the Jobs of gates: %w", err)
	}
	r := &reconciler{
		options: o, cached: mgr.GetClient(), live: mgr.GetAPIReader(), status: mgr.GetClient().Status(),
		reporter: newReporter(mgr.GetEventRecorder("spillway")), turns: outbound.NewTurns(),
		jobs: jobs{live: mgr.GetAPIReader(), writer: mgr.GetClient(), watches: watches},
	}
	err = watches.Wake(func() (controller.Controller, error) {
		return ctrl.NewControllerManagedBy(mgr).Named("gates").
			Watches(&v1alpha1.RolloutGate{}, &handler.EnqueueRequestForObject{}).
			Watches(&v1alpha1.GateTemplate{}, r.toGates()).
			WatchesRawSource(r.turns.Source()).
			WithOptions(controller.Options{MaxConcurrentReconciles: outbound.Parallel, RateLimiter: ring.Passes().RateLimiter()}).
			Build(r)
	})
	if err != nil {
		return fmt.Errorf("build the controller: %w", err)
	}
	return nil
}

// toGates maps a GateTemplate to the gates that it measures.
func (r *reconciler) toGates() handler.EventHandler {
	return handler.EnqueueRequestsFromMapFunc(func(ctx context.Context, obj client.Object) []reconcile.Request {
		list := &v1alpha1.RolloutGateList{}
		err := r.cached.List(ctx, list, client.InNamespace(obj.GetNamespace()), client.MatchingFields{nameIndex: obj.GetName()}, client.UnsafeDisableDeepCopy)
		if err != nil {
			return nil // the cache is not ready; it will show the gates
		}
		requests := make([]reconcile.Request, len(list.Items))
		for i := range list.Items {
			requests[i].NamespacedName = client.ObjectKeyFromObject(&list.Items[i])
		}
		return requests
	})
}

// reconciler measures gates. There is one request for each.
type reconciler struct {
	options  Options
	cached   client.Client
	live     client.Reader
	status   client.SubResourceWriter
	reporter reporter
	turns    *outbound.Turns
	jobs     jobs
}

// maxPasses bounds how many passes follow one another: one that begins, one that
// measures, and one that finds out when to go on.
const maxPasses = 3

// Reconcile makes passes over a gate.
func (r *reconciler) Reconcile(ctx context.Context, req reconcile.Request) (reconcile.Result, error) {
	defer r.turns.Next(req.Namespace)
	r.jobs.watches.Begin(req.NamespacedName)
	defer r.jobs.watches.End(req.NamespacedName)
	loop := ring.Loop[snapshot, plan, result]{
		Most: maxPasses, Now: r.options.Now,
		Observe: func(ctx context.Context, _ bool) (snapshot, error) { return r.observe(ctx, req.NamespacedName) },
		Plan:    decide,
		Act:     r.act,
		Report: func(ctx context.Context, s *snapshot, _ *plan, done *result) {
			if done.object == nil && done.err == nil {
				return
			}
			r.reporter.Wrote(ctx, ring.Change{Act: "Measure", Object: req.Name}, done.err)
			if done.err == nil {
				r.reporter.decided(s.gate, done.object)
			}
		},
		Learn: func(_ context.Context, _ *snapshot, p *plan, done *result) (ring.Next, error) {
			if ring.IsConflict(done.err) {
				return ring.Next{Again: true}, nil
			}
			return ring.Next{Again: done.object != nil, Wake: p.wake}, done.err
		},
	}
	return loop.Run(ctx)
}

// observe reads a gate and its template.
func (r *reconciler) observe(ctx context.Context, key types.NamespacedName) (snapshot, error) {
	s := snapshot{now: r.options.Now().Truncate(time.Microsecond), gate: &v1alpha1.RolloutGate{}} // as it comes back from the status
	err := r.cached.Get(ctx, key, s.gate)
	if apierrors.IsNotFound(err) {
		return s, ring.ErrGone
	}
	if err != nil {
		return s, fmt.Errorf("get RolloutGate %s: %w", key.Name, err)
	}
	template := &v1alpha1.GateTemplate{}
	switch err := r.cached.Get(ctx, client.ObjectKey{Namespace: key.Namespace, Name: s.gate.Spec.Gate}, template); {
	case apierrors.IsNotFound(err):
	case err != nil:
		return s, fmt.Errorf("get GateTemplate %s: %w", s.gate.Spec.Gate, err)
	default:
		s.template = template
	}
	if s.needsJob() {
		s.found = r.jobs.look(ctx, &s)
	}
	return s, nil
}
