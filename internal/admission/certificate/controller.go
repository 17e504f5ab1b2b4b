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
	"github.com/spillway-dev/spillway/internal/ring"
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
	r := &reconciler{observer: newObserver(o, webhooks), options: o, putBack: putBack{}, contents: contents{}}
	r.keys = serve.NewKeys(r.readKeys(mgr.GetAPIReader()))
	clients, err := serve.NewClients(o.ClientCA, o.ClientNames)
	if err != nil {
		return err
	}
	if r.server, err = serve.New(o.Address, webhooks, routes, r.keys, clients, log); err != nil {
		return err
	}
	writer, err := client.New(mgr.GetConfig(), client.Options{HTTPClient: mgr.GetHTTPClient(), Scheme: mgr.GetScheme(), Mapper: mgr.GetRESTMapper()})
	if err != nil {
		return fmt.Errorf("client for certificates: %w", err)
	}
	r.actor = actor{writer, o}
	if r.serverTime = o.ServerTime; r.serverTime == nil {
		r.serverTime = serverTime(mgr.GetConfig(), mgr.GetHTTPClient())
	}
	unanswered.from.Store(newGuardReader(&r.observer, mgr.GetAPIReader(), webhooks))
	sources, err := r.watch(mgr)
	if err != nil {
		return err
	}
	return errors.Join(r.build(mgr, sources), mgr.Add(r.server), mgr.AddReadyzCheck("webhooks", r.Ready))
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
	sources := []source.Source{source.Func(firstPass), source.Func(r.whenElected(mgr.Elected()))}
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
		if err != nil {
			return nil, err
		}
		sources = append(sources, files)
	}
	secrets, err := addCache(mgr, map[client.Object]cache.ByObject{&corev1.Secret{}: {
		Namespaces: map[string]cache.Config{r.options.Namespace: {FieldSelector: named(r.options.KeysSecret())}},
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

// whenElected makes a pass when this replica begins to lead.
func (r *reconciler) whenElected(elected <-chan struct{}) func(context.Context, workqueue.TypedRateLimitingInterface[reconcile.Request]) error {
	return func(ctx context.Context, queue workqueue.TypedRateLimitingInterface[reconcile.Request]) error {
		go func() {
			select {
			case <-elected:
				at := r.now()
				r.elected.Store(&at)
				queue.Add(request)
			case <-ctx.Done():
			}
		}()
		return nil
	}
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

// reconciler keeps the certificate and the keys, and the configurations that have them.
type reconciler struct {
	observer observer
	actor    actor
	server   *serve.Server
	keys     *serve.Keys
	options  admission.Options
	// serverTime asks the API server for the time.
	serverTime func(context.Context) (time.Time, error)
	// behind is by how much our clock is behind that of the API server, if it is wrong.
	behind atomic.Int64
	// elected is when this replica has begun to lead, nil if it does not.
	elected atomic.Pointer[time.Time]
	// putBack is used by the passes alone, which follow one another.
	putBack  putBack
	contents contents
	// problem is why there is no certificate to serve, as of the last pass.
	problem atomic.Pointer[error]
}

func newObserver(o admission.Options, webhooks []admission.Webhook) observer {
	r := observer{options: o, served: map[string]bool{}, registered: map[string]string{}}
	for _, w := range webhooks {
		r.registered[w.Name] = w.RegisteredPath()
		for _, path := range w.Served() {
			r.served[path] = true
		}
	}
	return r
}

// now is our clock, or that of the API server if ours is wrong.
func (r *reconciler) now() time.Time { return r.options.Now().Add(time.Duration(r.behind.Load())) }

// readKeys reads the keys that are accepted, from the API server itself.
func (r *reconciler) readKeys(live client.Reader) func(context.Context) ([]string, error) {
	return func(ctx context.Context) ([]string, error) {
		secrets := &corev1.SecretList{} // it may be listed by its name, and not be got
		err := live.List(ctx, secrets, client.InNamespace(r.options.Namespace), client.MatchingFieldsSelector{Selector: named(r.options.KeysSecret())})
		if err != nil {
			return nil, fmt.Errorf("read the keys of paths: %w", err)
		}
		if len(secrets.Items) == 0 {
			return nil, nil
		}
		return observed{now: r.now(), keys: parseKeys(secrets.Items[0].Data[keyPaths])}.accepted(), nil
	}
}

// Reconcile observes, plans, serves and writes, once.
func (r *reconciler) Reconcile(ctx context.Context, _ reconcile.Request) (reconcile.Result, error) {
	defer ring.UnderWay.Begin("admission")()
	// 1. Observe: all the reads.
	o, err := r.observe(ctx)
	if err != nil {
		r.problem.Store(&err)
		return reconcile.Result{}, err
	}
	// 2. Plan: pure.
	p := decide(o)
	if p.writes() {
		if err := r.askTime(ctx, &o); err != nil {
			r.present(p)
			return reconcile.Result{}, err
		}
		p = decide(o)
	}
	// 3. Serve what may be served.
	r.present(p)
	// 4. Act: all the writes.
	errs := r.act(ctx, o, p)
	// 5. Report.
	reportHeld(ctrl.LoggerFrom(ctx), &o)
	wait, err := report(ctrl.LoggerFrom(ctx), p, errs)
	if err == nil && !o.generated {
		err = p.problem // the owner of the files must fix it; not every file system has events
	}
	return reconcile.Result{RequeueAfter: cmp.Or(wait, p.after(o.now))}, err
}

func (r *reconciler) observe(ctx context.Context) (observed, error) {
	o, err := r.observer.observe(ctx)
	if err != nil {
		return o, err
	}
	o.now = r.now()
	if at := r.elected.Load(); at != nil {
		o.elected = *at
	}
	r.putBack.look(&o)
	r.contents.look(&o)
	return o, nil
}

// askTime takes the time of the API server if our clock is wrong. What other replicas and API
// servers find valid is not replaced because one machine has lost the time.
func (r *reconciler) askTime(ctx context.Context, o *observed) error {
	theirs, err := r.serverTime(ctx)
	if err != nil {
		return err
	}
	if ours := r.options.Now(); isWrong(ours, theirs) {
		ctrl.LoggerFrom(ctx).Info("the clock of this machine is wrong; the time of the API server is used", "ours", ours, "theirs", theirs)
		r.behind.Store(int64(theirs.Sub(ours)))
	} else {
		r.behind.Store(0)
	}
	o.now = r.now()
	return nil
}

// present hands a certificate to the server. One that is served already stays
// until there is a better one.
func (r *reconciler) present(p plan) {
	r.keys.Accept(p.accept)
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
	for n := range p.injections {
		i := &p.injections[n]
		err := r.actor.inject(ctx, i)
		if err == nil && i.paths != nil {
			r.putBack.wrote(i, o.now)
		}
		if err == nil && i.confirms {
			r.contents.wrote(i)
		}
		errs = append(errs, err)
	}
	if !p.writes() {
		return errs
	}
	m, err := p.make(o)
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
