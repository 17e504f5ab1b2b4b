package plans

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"

	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/util/workqueue"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/predicate"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/spillway-dev/spillway/api/kudo/v1beta1"
	"github.com/spillway-dev/spillway/internal/kube"
	"github.com/spillway-dev/spillway/internal/plans/pipe"
	"github.com/spillway-dev/spillway/internal/vocabulary"
	"github.com/spillway-dev/spillway/internal/watch"
)

// These are the permissions of the ring itself. Permissions to apply what packages
// render are granted separately, see docs/plans.md.
//
// +kubebuilder:rbac:groups=kudo.dev,resources=instances,verbs=get;list;watch;create;patch;delete
// +kubebuilder:rbac:groups=kudo.dev,resources=instances/status,verbs=update
// +kubebuilder:rbac:groups=kudo.dev,resources=instances/finalizers,verbs=update
// +kubebuilder:rbac:groups=kudo.dev,resources=operatorversions,verbs=get;list;watch
// +kubebuilder:rbac:groups=apps,resources=controllerrevisions,verbs=get;list;create;delete
// +kubebuilder:rbac:groups=spillway.dev,resources=rolloutgroups,verbs=get;list;watch
// +kubebuilder:rbac:groups="",resources=namespaces,verbs=get
// +kubebuilder:rbac:groups=events.k8s.io,resources=events,verbs=create

// Setup adds the ring to a manager. While its kinds are not installed, the ring
// reports that and waits for them; the rest of the manager runs.
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
	w, err := watch.New(mgr, watch.Options{
		Namespaces: o.Namespaces, Marked: labels.SelectorFromSet(labels.Set{vocabulary.Heritage: vocabulary.HeritageOf}),
		Verbs: "get, list, watch, create, patch and delete",
	})
	if err != nil {
		return err
	}
	if o.Files == nil {
		if o.Files, err = pipe.NewExecFiles(mgr.GetConfig(), mgr.GetHTTPClient()); err != nil {
			return err
		}
	}
	r := &reconciler{
		observer: newObserver(mgr, o, w),
		actor:    actor{client: mgr.GetClient(), live: mgr.GetAPIReader(), files: o.Files, now: o.Now},
		reporter: newReporter(mgr.GetEventRecorder("spillway")),
	}
	err = w.Wake(func() (controller.Controller, error) {
		return ctrl.NewControllerManagedBy(mgr).Named("plans").
			Watches(&v1beta1.Instance{}, &handler.EnqueueRequestForObject{}, builder.WithPredicates(exceptStatus())).
			WithOptions(controller.Options{
				MaxConcurrentReconciles: maxConcurrent,
				RateLimiter:             workqueue.NewTypedItemExponentialFailureRateLimiter[reconcile.Request](retryFirst, retryLast),
			}).Build(r)
	})
	if err != nil {
		return fmt.Errorf("build the controller: %w", err)
	}
	return nil
}

// exceptStatus ignores updates of the status, which only the ring writes. A manager
// that writes an outdated status gets a conflict.
func exceptStatus() predicate.Predicate {
	return predicate.Funcs{UpdateFunc: func(e event.UpdateEvent) bool {
		a, b := e.ObjectOld, e.ObjectNew
		return a.GetResourceVersion() == b.GetResourceVersion() || a.GetUID() != b.GetUID() || a.GetGeneration() != b.GetGeneration() ||
			!maps.Equal(a.GetAnnotations(), b.GetAnnotations()) || !slices.Equal(a.GetFinalizers(), b.GetFinalizers())
	}}
}

// reconciler runs the ring. There is one request for each Instance.
type reconciler struct {
	observer *observer
	actor    actor
	reporter *reporter
}

// Reconcile observes, decides, acts and reports; and once more immediately while there
// is more to do.
func (r *reconciler) Reconcile(ctx context.Context, req reconcile.Request) (reconcile.Result, error) {
	for range maxPasses {
		// 1. Observe: the Instance and what it refers to.
		s, err := r.observer.observe(ctx, req.NamespacedName)
		if err != nil {
			return reconcile.Result{}, err
		}
		if s.Instance == nil {
			r.observer.forget(req.NamespacedName)
			r.reporter.forget(req.NamespacedName)
			return reconcile.Result{}, nil
		}
		// 2. Decide: pure, except that the decision may need to read more.
		d, err := r.observer.decide(ctx, &s)
		if err != nil {
			return reconcile.Result{}, r.reporter.unreadable(s.Instance, err)
		}
		// 3. Act: write the status, and then make the writes that it permits.
		results := r.actor.act(ctx, &s, &d)
		// 4. Report: Events, metrics, log.
		r.reporter.report(ctx, &s, &d, &results)
		r.observer.note(req.NamespacedName, &results)
		if results.err != nil || len(results.writes) == 0 && !d.again {
			return r.next(&d, &results)
		}
	}
	return reconcile.Result{RequeueAfter: pause}, nil
}

// next says when to reconcile again.
func (r *reconciler) next(d *decision, results *results) (reconcile.Result, error) {
	switch {
	case errors.Is(results.err, errConflict):
		return reconcile.Result{RequeueAfter: conflictPause}, nil
	case results.err != nil:
		return reconcile.Result{}, results.err
	case d.Wake.IsZero():
		return reconcile.Result{}, nil
	default:
		return reconcile.Result{RequeueAfter: max(d.Wake.Sub(r.observer.options.Now()), 1)}, nil
	}
}
