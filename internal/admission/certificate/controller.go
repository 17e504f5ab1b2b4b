package certificate

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"sync/atomic"
	"time"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/util/workqueue"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
	"sigs.k8s.io/controller-runtime/pkg/source"

	"github.com/spillway-dev/spillway/internal/admission"
	"github.com/spillway-dev/spillway/internal/admission/serve"
	"github.com/spillway-dev/spillway/internal/kube"
)

// Failed writes are tried again after retryFirst, then after twice as long, up
// to retryMost.
const (
	retryFirst = 500 * time.Millisecond
	retryMost  = 2 * time.Minute
	// retryAfterConflict is when to observe again after a conflict, if no watch has
	// caused a pass before.
	retryAfterConflict = time.Second
)

// The one request that there is: certificate and configurations are looked at
// together.
var request = reconcile.Request{NamespacedName: types.NamespacedName{Name: "certificate"}}

// Setup adds the server, its certificate and its readiness to a manager. Caches
// of its own hold the one Secret and the webhook configurations: those of the
// manager may be restricted to namespaces, and hold digests.
func Setup(mgr ctrl.Manager, o admission.Options, webhooks []admission.Webhook, routes []admission.Route) error {
	if err := o.Validate(); err != nil {
		return err
	}
	o = o.WithDefaults()
	log := mgr.GetLogger().WithName("admission")
	server, err := serve.New(o.Address, webhooks, routes, log)
	if err != nil {
		return err
	}
	writer, err := client.New(mgr.GetConfig(), client.Options{HTTPClient: mgr.GetHTTPClient(), Scheme: mgr.GetScheme(), Mapper: mgr.GetRESTMapper()})
	if err != nil {
		return fmt.Errorf("client for certificates: %w", err)
	}
	r := &reconciler{observer: observer{options: o}, actor: actor{writer, o}, server: server, options: o}
	unanswered.from.Store(newGuardReader(&r.observer, mgr.GetAPIReader(), webhooks))
	sources, err := r.watch(mgr)
	if err != nil {
		return err
	}
	return errors.Join(r.build(mgr, sources), mgr.Add(server), mgr.AddReadyzCheck("webhooks", r.Ready))
}

// build makes the controller. Every replica runs it: one that waits to lead
// must be ready to serve.
func (r *reconciler) build(mgr ctrl.Manager, sources []source.Source) error {
	no := false
	b := ctrl.NewControllerManagedBy(mgr).Named("admission").WithOptions(controller.Options{
		NeedLeaderElection: &no,
		RateLimiter:        workqueue.NewTypedItemExponentialFailureRateLimiter[reconcile.Request](retryFirst, retryMost),
	})
	for _, s := range sources {
		b = b.WatchesRawSource(s)
	}
	if err := b.Complete(r); err != nil {
		return fmt.Errorf("build the controller of certificates: %w", err)
	}
	return nil
}

// watch adds to the manager what is to be read, and returns what wakes up.
func (r *reconciler) watch(mgr ctrl.Manager) ([]source.Source, error) {
	sources := []source.Source{source.Func(firstPass)}
	for _, name := range views(&r.options) {
		view, err := addCache(mgr, configurationsNamed(name))
		if err != nil {
			return nil, err
		}
		r.observer.views = append(r.observer.views, view)
		sources = append(sources,
			source.Kind[client.Object](view, &admissionregistrationv1.MutatingWebhookConfiguration{}, toRequest()),
			source.Kind[client.Object](view, &admissionregistrationv1.ValidatingWebhookConfiguration{}, toRequest()))
	}
	if r.options.Source != admission.Generated {
		files, err := watchFiles(mgr, r.options.CertDir)
		return append(sources, files), err
	}
	secrets, err := addCache(mgr, map[client.Object]cache.ByObject{&corev1.Secret{}: {
		Namespaces: map[string]cache.Config{r.options.Namespace: {FieldSelector: named(r.options.SecretName)}},
	}})
	r.observer.secrets = secrets
	return append(sources, source.Kind[client.Object](secrets, &corev1.Secret{}, toRequest())), err
}

// views are the names to watch, one view each, because a watch can be granted
// for one name; the empty one stands for all.
func views(o *admission.Options) []string {
	if len(o.Only) == 0 {
		return []string{""}
	}
	names := slices.Concat(o.Own, o.Only)
	slices.Sort(names)
	return slices.Compact(names)
}

// firstPass makes the first pass when nothing was observed yet.
func firstPass(_ context.Context, queue workqueue.TypedRateLimitingInterface[reconcile.Request]) error {
	queue.Add(request)
	return nil
}

func toRequest() handler.EventHandler {
	return handler.EnqueueRequestsFromMapFunc(func(context.Context, client.Object) []reconcile.Request { return []reconcile.Request{request} })
}

func configurationsNamed(name string) map[client.Object]cache.ByObject {
	by := cache.ByObject{Transform: kube.Transform([]kube.Interest{{Reduce: reduceConfiguration}})}
	if name != "" {
		by.Field = named(name)
	}
	return map[client.Object]cache.ByObject{
		&admissionregistrationv1.MutatingWebhookConfiguration{}:   by,
		&admissionregistrationv1.ValidatingWebhookConfiguration{}: by,
	}
}

func named(name string) fields.Selector { return fields.OneTermEqualSelector("metadata.name", name) }

// everywhere makes a cache run on every replica.
type everywhere struct{ cache.Cache }

// NeedLeaderElection is false: every replica reads.
func (everywhere) NeedLeaderElection() bool { return false }

func addCache(mgr ctrl.Manager, objects map[client.Object]cache.ByObject) (cache.Cache, error) {
	c, err := kube.NewCache(mgr, cache.Options{ByObject: objects})
	if err != nil {
		return nil, fmt.Errorf("cache for certificates: %w", err)
	}
	if err := mgr.Add(everywhere{c}); err != nil {
		return nil, fmt.Errorf("cache for certificates: %w", err)
	}
	return c, nil
}

// reconciler keeps the certificate, and the configurations that trust it.
type reconciler struct {
	observer observer
	actor    actor
	server   *serve.Server
	options  admission.Options
	// problem is why there is no certificate to serve, as of the last pass.
	problem atomic.Pointer[error]
}

// Reconcile observes, plans, serves and writes, once.
func (r *reconciler) Reconcile(ctx context.Context, _ reconcile.Request) (reconcile.Result, error) {
	// 1. Observe: all the reads.
	o, err := r.observer.observe(ctx)
	if err != nil {
		r.problem.Store(&err)
		return reconcile.Result{}, err
	}
	// 2. Plan: pure.
	p := decide(o)
	// 3. Serve what may be served.
	r.present(p)
	// 4. Act: all the writes.
	errs := r.act(ctx, o, p)
	// 5. Report.
	wait, err := report(ctrl.LoggerFrom(ctx), p, errs)
	if err == nil && !o.generated {
		err = p.problem // the owner of the files must fix it; not every file system has events
	}
	return reconcile.Result{RequeueAfter: cmp.Or(wait, p.after(o.now))}, err
}

// present hands a certificate to the server. One that is served already stays
// until there is a better one.
func (r *reconciler) present(p plan) {
	if p.problem != nil {
		r.problem.Store(&p.problem)
		return
	}
	r.server.Present(p.serve)
}

// act makes the writes and returns the result of each: of the injections, and
// of the certificate last.
func (r *reconciler) act(ctx context.Context, o observed, p plan) []error {
	errs := make([]error, 0, len(p.injections)+1)
	for _, i := range p.injections {
		errs = append(errs, r.actor.inject(ctx, i))
	}
	if p.step == keep {
		return errs
	}
	m, err := p.step.make(o)
	if err == nil {
		err = r.actor.keepMaterial(ctx, o.secret, m)
	}
	return append(errs, err)
}

// after is how long to wait until the plan's wake time.
func (p plan) after(now time.Time) time.Duration {
	if p.wake.IsZero() {
		return 0
	}
	return p.wake.Sub(now)
}
