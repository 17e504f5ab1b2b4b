package cronjobs

import (
	"context"
	"fmt"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/selection"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/predicate"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
	"sigs.k8s.io/controller-runtime/pkg/source"

	"github.com/spillway-dev/spillway/internal/config/content"
	"github.com/spillway-dev/spillway/internal/config/reloader"
	"github.com/spillway-dev/spillway/internal/config/workload"
	"github.com/spillway-dev/spillway/internal/kube"
	"github.com/spillway-dev/spillway/internal/metrics"
	"github.com/spillway-dev/spillway/internal/ring"
	"github.com/spillway-dev/spillway/internal/vocabulary"
)

// Options are the manager's choices for the runs of CronJobs.
type Options struct {
	Reloader *reloader.Options
	// Source reads config.
	Source content.Source
	// Window is for how long a change may be followed by another one.
	Window time.Duration
	Now    func() time.Time
}

// Setup adds what runs CronJobs to a manager.
func Setup(ctx context.Context, mgr ctrl.Manager, o Options) error {
	jobs, err := watched(mgr, o.Source.Namespaces)
	if err != nil {
		return err
	}
	r := &runner{
		options: o, cronJobs: mgr.GetClient(), jobs: jobs, writer: mgr.GetClient(), status: mgr.GetClient().Status(), first: map[client.ObjectKey]change{},
		reporter: ring.Reporter{Events: mgr.GetEventRecorder("spillway"), Action: "Run", Writes: metrics.ConfigWrites},
	}
	b := ctrl.NewControllerManagedBy(mgr).Named("config-cronjobs").For(&batchv1.CronJob{}).
		WatchesRawSource(source.Kind(jobs, &batchv1.Job{}, handler.TypedEnqueueRequestForOwner[*batchv1.Job](mgr.GetScheme(), mgr.GetRESTMapper(), &batchv1.CronJob{}, handler.OnlyControllerOwner())))
	for _, obj := range []client.Object{&corev1.ConfigMap{}, &corev1.Secret{}} {
		b = b.Watches(obj, handler.EnqueueRequestsFromMapFunc(r.runIn), builder.WithPredicates(predicate.Funcs{UpdateFunc: func(e event.UpdateEvent) bool {
			return content.Differ(e.ObjectOld, e.ObjectNew) || o.Reloader.Differ(e.ObjectOld, e.ObjectNew)
		}}))
	}
	if o.Reloader.Namespaces != nil {
		namespace := &metav1.PartialObjectMetadata{}
		namespace.SetGroupVersionKind(corev1.SchemeGroupVersion.WithKind("Namespace"))
		b = b.Watches(namespace, handler.EnqueueRequestsFromMapFunc(func(ctx context.Context, obj client.Object) []reconcile.Request {
			o.Reloader.Namespaces.Learn(o.Now(), obj.GetName(), obj.GetLabels())
			return r.runIn(ctx, &metav1.PartialObjectMetadata{ObjectMeta: metav1.ObjectMeta{Namespace: obj.GetName()}})
		}))
	}
	if err := b.WithOptions(controller.Options{RateLimiter: ring.Passes().RateLimiter()}).Complete(r); err != nil {
		return fmt.Errorf("build the controller of CronJobs: %w", err)
	}
	return nil
}

// watched is a cache of the Jobs that were started, of some namespaces, of all if there are none.
func watched(mgr ctrl.Manager, namespaces []string) (cache.Cache, error) {
	ours, err := labels.NewRequirement(vocabulary.ConfigRun.Native, selection.Exists, nil)
	if err != nil {
		return nil, fmt.Errorf("select Jobs: %w", err)
	}
	jobs, err := kube.NewCache(mgr, cache.Options{
		DefaultNamespaces: kube.InNamespaces(namespaces), DefaultLabelSelector: labels.NewSelector().Add(*ours), DefaultTransform: cache.TransformStripManagedFields(),
	})
	if err != nil {
		return nil, fmt.Errorf("make a cache of the Jobs of CronJobs: %w", err)
	}
	if err := mgr.Add(jobs); err != nil {
		return nil, fmt.Errorf("add the cache of the Jobs of CronJobs: %w", err)
	}
	return jobs, nil
}

// runner runs CronJobs whose config has changed.
type runner struct {
	options Options
	// cronJobs reads CronJobs, jobs the Jobs that were started.
	cronJobs client.Reader
	jobs     client.Reader
	writer   client.Writer
	status   client.SubResourceWriter
	reporter ring.Reporter
	// first is when a change was seen first, of CronJobs of which it may be followed by another one.
	first map[client.ObjectKey]change
}

// change is what a CronJob is to be run for, and since when it is that.
type change struct {
	record string
	since  time.Time
}

// runIn are the CronJobs of the namespace of an object that may be run for it.
func (r *runner) runIn(ctx context.Context, obj client.Object) []reconcile.Request {
	list := &batchv1.CronJobList{}
	if err := r.cronJobs.List(ctx, list, client.InNamespace(obj.GetNamespace()), client.UnsafeDisableDeepCopy); err != nil {
		return nil // the cache has not started; it delivers all CronJobs then
	}
	var requests []reconcile.Request
	for i := range list.Items {
		if c := &list.Items[i]; workload.ReadRun(c, r.options.Reloader) != nil {
			requests = append(requests, reconcile.Request{NamespacedName: client.ObjectKeyFromObject(c)})
		}
	}
	return requests
}

// Reconcile makes one pass over a CronJob.
func (r *runner) Reconcile(ctx context.Context, req reconcile.Request) (reconcile.Result, error) {
	defer ring.UnderWay.Begin("config-cronjobs")()
	// 1. Observe.
	o, err := r.observe(ctx, req.NamespacedName)
	if err != nil || o == nil {
		delete(r.first, req.NamespacedName)
		return reconcile.Result{}, err
	}
	// 2. Plan.
	p := decide(o)
	// 3. Act.
	err = r.act(ctx, o, &p)
	// 4. Report.
	r.report(ctx, o, &p, err)
	switch {
	case apierrors.IsAlreadyExists(err): // by an earlier pass, or another client: the wait grows
		return reconcile.Result{}, err
	case ring.IsConflict(err):
		return reconcile.Result{RequeueAfter: ring.AfterConflict}, nil
	case err != nil:
		return reconcile.Result{}, err
	case !p.wake.IsZero():
		return reconcile.Result{RequeueAfter: max(p.wake.Sub(o.now), 1)}, nil
	default:
		return reconcile.Result{}, nil
	}
}
