package plans

import (
	"context"
	"fmt"
	"maps"
	"slices"

	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/predicate"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/spillway-dev/spillway/api/kudo/v1beta1"
	"github.com/spillway-dev/spillway/api/spillway/v1alpha1"
	"github.com/spillway-dev/spillway/internal/gates/ask"
	"github.com/spillway-dev/spillway/internal/kube"
	"github.com/spillway-dev/spillway/internal/plans/account"
	"github.com/spillway-dev/spillway/internal/plans/decision"
	"github.com/spillway-dev/spillway/internal/plans/pipe"
	"github.com/spillway-dev/spillway/internal/plans/write"
	"github.com/spillway-dev/spillway/internal/ring"
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
// +kubebuilder:rbac:groups=apiextensions.k8s.io,resources=customresourcedefinitions,resourceNames=instances.kudo.dev;operatorversions.kudo.dev,verbs=list;watch
// +kubebuilder:rbac:groups=apps,resources=controllerrevisions,verbs=get;list;create;delete
// +kubebuilder:rbac:groups=spillway.dev,resources=rolloutgates,verbs=list;watch;create;patch;delete
// +kubebuilder:rbac:groups=spillway.dev,resources=rolloutgroups,verbs=get;list;watch
// +kubebuilder:rbac:groups="",resources=namespaces,verbs=get
// +kubebuilder:rbac:groups="",resources=serviceaccounts,verbs=impersonate
// +kubebuilder:rbac:groups=storage.k8s.io,resources=storageclasses,verbs=get;list;watch
// +kubebuilder:rbac:groups=events.k8s.io,resources=events,verbs=create;patch

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

// Reduced is what the cache keeps of who has written Instances.
func Reduced() []kube.Interest {
	return []kube.Interest{{Object: &v1beta1.Instance{}, Reduce: decision.Attribute, Attributed: true}}
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
	accounts, err := newAccounts(mgr, o)
	if err != nil {
		return err
	}
	r := &reconciler{
		observer: newObserver(mgr, o, w, accounts.Of),
		actor:    actor{client: mgr.GetClient(), live: mgr.GetAPIReader(), now: o.Now},
		reporter: newReporter(mgr.GetEventRecorder("spillway")),
	}
	hasGates, err := ask.Installed(mgr.GetRESTMapper())
	if err != nil {
		return err
	}
	r.observer.noGates = !hasGates
	err = w.Wake(func() (controller.Controller, error) {
		b := ctrl.NewControllerManagedBy(mgr).Named("plans").
			Watches(&v1beta1.Instance{}, &handler.EnqueueRequestForObject{}, builder.WithPredicates(exceptStatus()))
		if hasGates {
			b = b.Watches(&v1alpha1.RolloutGate{}, ask.ToTarget(v1beta1.GroupVersion.String(), "Instance"))
		}
		return b.WithOptions(controller.Options{
			MaxConcurrentReconciles: maxConcurrent,
			RateLimiter:             ring.Passes().RateLimiter(),
		}).Build(r)
	})
	if err != nil {
		return fmt.Errorf("build the controller: %w", err)
	}
	return nil
}

// newAccounts makes the clients by which plans act: the manager's, and those that act as accounts.
func newAccounts(mgr ctrl.Manager, o Options) (*account.Clients, error) {
	own := account.Rights{Client: mgr.GetClient(), Live: mgr.GetAPIReader(), Files: o.Files}
	if own.Files == nil {
		var err error
		if own.Files, err = pipe.NewExecFiles(mgr.GetConfig(), mgr.GetHTTPClient()); err != nil {
			return nil, err
		}
	}
	return account.NewClients(account.Clients{Config: mgr.GetConfig(), Scheme: mgr.GetScheme(), Mapper: mgr.GetRESTMapper(), Own: own, Files: o.Files}), nil
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
	reporter reporter
	memories ring.Memories[memory]
}

// Reconcile makes passes over an Instance.
func (r *reconciler) Reconcile(ctx context.Context, req reconcile.Request) (reconcile.Result, error) {
	m := r.memories.Of(req.NamespacedName, func() *memory { return &memory{refusals: write.Refusals{}} })
	m.answers = answers{} // those of an earlier reconcile may be outdated
	defer func() { m.rendered = nil }()
	loop := ring.Loop[snapshot, decision.Decision, results]{
		Most: maxPasses, Pause: pause, Now: r.observer.options.Now,
		Observe: func(ctx context.Context, _ bool) (snapshot, error) {
			s, err := r.observer.observe(ctx, req.NamespacedName, m)
			return s, r.reporter.unreadable(s.Instance, err)
		},
		Plan: func(s *snapshot) decision.Decision { return s.decision },
		Act:  r.actor.act,
		Report: func(ctx context.Context, s *snapshot, d *decision.Decision, done *results) {
			r.reporter.report(ctx, s, d, done, m)
		},
		Learn: func(_ context.Context, s *snapshot, d *decision.Decision, done *results) (ring.Next, error) {
			return r.learn(req.NamespacedName, s, d, done, m)
		},
	}
	return loop.Run(ctx)
}

// learn remembers what became of a pass, and says how to go on: immediately, as long as
// there is something to write.
func (r *reconciler) learn(key types.NamespacedName, s *snapshot, d *decision.Decision, done *results, m *memory) (ring.Next, error) {
	if s.Instance == nil {
		r.observer.follower.Forget(key)
		r.memories.Forget(key)
		return ring.Next{}, nil
	}
	err := endedBy(done)
	m.answers, m.kept = answersOf(s, done), keptOf(s, done)
	m.heads = headsOf(s, s.after(done), m.answers.objects)
	next := ring.Next{
		Again: err == nil && (len(done.Writes) > 0 || d.Again),
		Wake:  ring.Earlier(d.Wake, m.learn(r.observer.options.Now(), d.Status.Execution, done)),
	}
	if ring.IsConflict(err) {
		return next, nil
	}
	return next, err
}
