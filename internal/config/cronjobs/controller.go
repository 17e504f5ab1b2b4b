package cronjobs

import (
	"context"
	"fmt"

	batchv1 "k8s.io/api/batch/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/selection"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
	"sigs.k8s.io/controller-runtime/pkg/source"

	"github.com/spillway-dev/spillway/internal/config/follow"
	"github.com/spillway-dev/spillway/internal/kube"
	"github.com/spillway-dev/spillway/internal/metrics"
	"github.com/spillway-dev/spillway/internal/ring"
	"github.com/spillway-dev/spillway/internal/vocabulary"
)

// Setup adds what runs CronJobs to a manager.
func Setup(mgr ctrl.Manager, o follow.Options) error {
	jobs, err := watched(mgr, o.Source.Namespaces)
	if err != nil {
		return err
	}
	r := &runner{
		config: follow.NewReader(o), cronJobs: mgr.GetClient(), jobs: jobs, writer: mgr.GetClient(), status: mgr.GetClient().Status(),
		reporter: ring.Reporter{Events: mgr.GetEventRecorder("spillway"), Action: "Run", Writes: metrics.ConfigWrites},
	}
	b := ctrl.NewControllerManagedBy(mgr).Named("config-cronjobs").For(&batchv1.CronJob{}).
		WatchesRawSource(source.Kind(jobs, &batchv1.Job{}, handler.TypedEnqueueRequestForOwner[*batchv1.Job](mgr.GetScheme(), mgr.GetRESTMapper(), &batchv1.CronJob{}, handler.OnlyControllerOwner())))
	b = o.Watch(b, r.cronJobs, &batchv1.CronJobList{})
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
	config *follow.Reader
	// cronJobs reads CronJobs, jobs the Jobs that were started.
	cronJobs client.Reader
	jobs     client.Reader
	writer   client.Writer
	status   client.SubResourceWriter
	reporter ring.Reporter
}

// Reconcile makes one pass over a CronJob.
func (r *runner) Reconcile(ctx context.Context, req reconcile.Request) (reconcile.Result, error) {
	defer ring.UnderWay.Begin("config-cronjobs")()
	// 1. Observe.
	o, err := r.observe(ctx, req.NamespacedName)
	if err != nil || o == nil {
		r.config.Forget(req.NamespacedName)
		return reconcile.Result{}, err
	}
	// 2. Plan.
	p := decide(o)
	// 3. Act.
	err = r.act(ctx, o, &p)
	// 4. Report.
	r.report(ctx, o, &p, err)
	return o.Again(p.wake, err)
}
