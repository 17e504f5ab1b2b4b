package plans

import (
	"context"
	"errors"
	"fmt"

	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/util/workqueue"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/spillway-dev/spillway/api/kudo/v1beta1"
	"github.com/spillway-dev/spillway/internal/kube"
)

// These are the permissions of the ring itself. Those to apply what packages
// render are granted apart from them, see docs/plans.md.
//
// +kubebuilder:rbac:groups=kudo.dev,resources=instances,verbs=get;list;watch;create;patch;delete
// +kubebuilder:rbac:groups=kudo.dev,resources=instances/status,verbs=update
// +kubebuilder:rbac:groups=kudo.dev,resources=instances/finalizers,verbs=update
// +kubebuilder:rbac:groups=kudo.dev,resources=operatorversions,verbs=get;list;watch
// +kubebuilder:rbac:groups=apps,resources=controllerrevisions,verbs=get;list;create;delete
// +kubebuilder:rbac:groups=spillway.dev,resources=rolloutgroups,verbs=get;list;watch
// +kubebuilder:rbac:groups="",resources=namespaces,verbs=get
// +kubebuilder:rbac:groups=events.k8s.io,resources=events,verbs=create

// passesParallel bounds how many passes follow one another without a pause.
const passesParallel = 50

// Setup adds the ring to a manager. While its kinds are not installed, the ring
// says so and waits for them; the rest of the manager goes on.
func Setup(ctx context.Context, mgr ctrl.Manager, o Options) error {
	needed := kube.Needed{
		Ring: "plans", Called: "the kinds of kudo.dev are", Without: "no plan runs",
		Action: "apply what \"spillway install --export --rings=plans\" prints, or leave plans out of --rings",
		Kinds:  []schema.GroupVersionKind{v1beta1.GroupVersion.WithKind("Instance"), v1beta1.GroupVersion.WithKind("OperatorVersion")},
	}
	return needed.Start(ctx, mgr, func(context.Context) error { return start(mgr, o) })
}

// start adds the controller.
func start(mgr ctrl.Manager, o Options) error {
	w, err := newWatches(mgr, o)
	if err != nil {
		return err
	}
	if o.Files == nil {
		if o.Files, err = newExecFiles(mgr.GetConfig(), mgr.GetHTTPClient()); err != nil {
			return err
		}
	}
	r := &reconciler{
		observer: newObserver(mgr, o, w),
		actor:    actor{client: mgr.GetClient(), live: mgr.GetAPIReader(), files: o.Files, now: o.Now},
		reporter: newReporter(mgr.GetEventRecorder("spillway")),
	}
	w.starting.Lock() // the controller may run before this returns
	defer w.starting.Unlock()
	c, err := ctrl.NewControllerManagedBy(mgr).Named("plans").
		Watches(&v1beta1.Instance{}, &handler.EnqueueRequestForObject{}, builder.WithPredicates(instanceMatters())).
		WithOptions(controller.Options{
			MaxConcurrentReconciles: instancesParallel,
			RateLimiter:             workqueue.NewTypedItemExponentialFailureRateLimiter[reconcile.Request](retryFirst, retryPass),
		}).Build(r)
	if err != nil {
		return fmt.Errorf("build the controller: %w", err)
	}
	w.controller = c
	return nil
}

// reconciler runs the ring. There is one request for each Instance.
type reconciler struct {
	observer *observer
	actor    actor
	reporter *reporter
}

// Reconcile observes, plans, acts and tells; and once more at once while there is
// more to do.
func (r *reconciler) Reconcile(ctx context.Context, req reconcile.Request) (reconcile.Result, error) {
	for range passesParallel {
		// 1. Observe: the Instance and what it refers to.
		o, err := r.observer.observe(ctx, req.NamespacedName)
		if err != nil {
			return reconcile.Result{}, err
		}
		if o.Instance == nil {
			r.observer.forget(req.NamespacedName)
			r.reporter.forget(req.NamespacedName)
			return reconcile.Result{}, nil
		}
		// 2. Plan: pure, but that it may ask to look at more.
		plan, err := r.observer.decide(ctx, &o)
		if err != nil {
			return reconcile.Result{}, r.reporter.cannotLook(o.Instance, err)
		}
		// 3. Act: permit, and then do what was permitted.
		d := r.actor.act(ctx, &o, &plan)
		// 4. Tell: Events, metrics, log.
		r.reporter.report(ctx, &o, &plan, &d)
		r.observer.learn(req.NamespacedName, &d)
		if d.err != nil || len(d.outcomes) == 0 && !plan.Again {
			return r.next(&plan, &d)
		}
	}
	return reconcile.Result{RequeueAfter: breath}, nil
}

// next says when to look again.
func (r *reconciler) next(p *Plan, d *deeds) (reconcile.Result, error) {
	switch {
	case errors.Is(d.err, errOvertaken):
		return reconcile.Result{RequeueAfter: overtakenPause}, nil
	case d.err != nil:
		return reconcile.Result{}, d.err
	case p.Wake.IsZero():
		return reconcile.Result{}, nil
	default:
		return reconcile.Result{RequeueAfter: max(p.Wake.Sub(r.observer.options.Now()), 1)}, nil
	}
}
