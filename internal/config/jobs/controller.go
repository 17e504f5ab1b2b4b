package jobs

import (
	"cmp"
	"context"
	"fmt"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/predicate"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
	"sigs.k8s.io/controller-runtime/pkg/source"

	"github.com/spillway-dev/spillway/internal/config/pin"
	"github.com/spillway-dev/spillway/internal/config/snapshots"
	"github.com/spillway-dev/spillway/internal/ring"
)

// Setup adds what pins Jobs to a manager, in the namespaces with pins.
func Setup(ctx context.Context, mgr ctrl.Manager, keeper *snapshots.Keeper, where *snapshots.Where) error {
	p := &pinner{jobs: keeper.Jobs(), live: mgr.GetAPIReader(), writer: mgr.GetClient(), keeper: keeper, where: where}
	held := predicate.NewTypedPredicateFuncs(pin.IsHeld)
	b := ctrl.NewControllerManagedBy(mgr).Named("config-jobs").
		WatchesRawSource(source.Kind(keeper.Jobs(), &batchv1.Job{}, &handler.TypedEnqueueRequestForObject[*batchv1.Job]{}, held))
	for _, obj := range []client.Object{&corev1.ConfigMap{}, &corev1.Secret{}} {
		b = b.Watches(obj, handler.EnqueueRequestsFromMapFunc(p.heldIn), builder.WithPredicates(predicate.NewPredicateFuncs(func(o client.Object) bool {
			return where.On(ctx, o.GetNamespace())
		})))
	}
	if namespaces := where.Watched(); namespaces != nil { // a Job is resumed where there are no pins any more
		b = b.Watches(namespaces, handler.EnqueueRequestsFromMapFunc(p.heldIn), builder.WithPredicates(where.Switched()))
	}
	if err := b.WithOptions(controller.Options{RateLimiter: ring.Passes().RateLimiter()}).Complete(p); err != nil {
		return fmt.Errorf("build the controller of Jobs: %w", err)
	}
	return nil
}

// pinner pins the Jobs that are held.
type pinner struct {
	// jobs has the Jobs of the namespaces with pins.
	jobs client.Reader
	// live reads config from the API server: what was created shortly before a Job may not be in
	// a cache yet.
	live   client.Reader
	writer client.Writer
	keeper *snapshots.Keeper
	where  *snapshots.Where
}

// heldIn are the Jobs that may wait for an object, or for their namespace.
func (p *pinner) heldIn(ctx context.Context, obj client.Object) []reconcile.Request {
	jobs := &batchv1.JobList{}
	if err := p.jobs.List(ctx, jobs, client.InNamespace(cmp.Or(obj.GetNamespace(), obj.GetName())), client.UnsafeDisableDeepCopy); err != nil {
		return nil // the cache has not started; it delivers all Jobs then
	}
	var requests []reconcile.Request
	for i := range jobs.Items {
		if j := &jobs.Items[i]; pin.IsHeld(j) {
			requests = append(requests, reconcile.Request{NamespacedName: client.ObjectKeyFromObject(j)})
		}
	}
	return requests
}

// Reconcile makes one pass over a Job.
func (p *pinner) Reconcile(ctx context.Context, req reconcile.Request) (reconcile.Result, error) {
	defer ring.UnderWay.Begin("config-jobs")()
	// 1. Observe.
	o, err := p.observe(ctx, req.NamespacedName)
	if err != nil || o == nil {
		return reconcile.Result{}, err
	}
	// 2. Plan.
	d := decide(o)
	// 3. Act.
	if err := p.act(ctx, o, &d); ring.IsConflict(err) {
		return reconcile.Result{RequeueAfter: ring.AfterConflict}, nil
	} else if err != nil {
		return reconcile.Result{}, err
	}
	return reconcile.Result{}, nil
}
