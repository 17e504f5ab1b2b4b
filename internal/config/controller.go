package config

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
	"sigs.k8s.io/controller-runtime/pkg/source"

	"github.com/spillway-dev/spillway/internal/config/argo"
	"github.com/spillway-dev/spillway/internal/config/content"
	"github.com/spillway-dev/spillway/internal/config/cronjobs"
	"github.com/spillway-dev/spillway/internal/config/decision"
	"github.com/spillway-dev/spillway/internal/config/follow"
	"github.com/spillway-dev/spillway/internal/config/jobs"
	"github.com/spillway-dev/spillway/internal/config/policy"
	"github.com/spillway-dev/spillway/internal/config/snapshots"
	"github.com/spillway-dev/spillway/internal/config/workload"
	"github.com/spillway-dev/spillway/internal/kube"
	"github.com/spillway-dev/spillway/internal/ring"
)

// +kubebuilder:rbac:groups="",resources=configmaps;secrets,verbs=get;list;watch
// +kubebuilder:rbac:groups=apps,resources=deployments;statefulsets;daemonsets,verbs=list;watch;patch
// +kubebuilder:rbac:groups=secrets-store.csi.x-k8s.io,resources=secretproviderclasspodstatuses,verbs=list;watch
// +kubebuilder:rbac:groups="",resources=pods,verbs=list;watch;delete
// +kubebuilder:rbac:groups=events.k8s.io,resources=events,verbs=create;patch

// +kubebuilder:rbac:groups=spillway.dev,resources=rolloutgates,verbs=list;watch;create;patch;delete

// +kubebuilder:rbac:groups=spillway.dev,resources=configrollouts,verbs=list;watch;create;update;delete

// batch is about how many objects a pass reads before it writes, so that the first
// workloads roll while the config of others is not read yet.
const batch = 64

// usesIndex finds the tracked workloads that use an object.
const usesIndex = "spillway.dev/config"

// Interests are what the ring watches: ConfigMaps and Secrets as digests, and the
// relevant workloads.
func Interests(o Options) []kube.Interest {
	interests := []kube.Interest{
		{Object: &corev1.ConfigMap{}, Reduce: o.Reloader.Reduce, Attributed: true},
		{Object: &corev1.Secret{}, Reduce: o.Reloader.Reduce, Attributed: true},
	}
	for _, kind := range workload.Kinds() { // a policy may track any of them
		interests = append(interests, kube.Interest{Object: workload.New(kind), Reduce: workload.SlimFor(o.Reloader), Attributed: true})
	}
	return interests
}

// Setup adds the ring to a manager whose cache was made with [Interests].
func Setup(ctx context.Context, mgr ctrl.Manager, o Options) error {
	provided, err := content.DriverInstalled(mgr.GetRESTMapper())
	if err != nil {
		return err
	}
	permitted := &permissions{reader: mgr.GetAPIReader(), namespaces: o.Namespaces, missing: map[content.Kind]bool{}, granted: make(chan event.GenericEvent, 2)}
	if err := permitted.askFor(ctx, content.ConfigMap, content.Secret); err != nil {
		return err
	}
	config := content.Source{Digests: mgr.GetCache(), Values: mgr.GetAPIReader(), Provided: provided, Forbidden: permitted.isMissing}
	r := &reconciler{
		observer: newObserver(o, mgr.GetClient(), config),
		writer:   mgr.GetClient(),
		decide:   decision.Decide,
		reporter: newReporter(mgr.GetEventRecorder("spillway"), &o),
	}
	r.observer.batch = batch
	r.observer.budget = newBudget(mgr.GetAPIReader(), mgr.GetClient(), o)
	policies := cmp.Or(o.Policies, &policy.Kinds{})
	r.observer.policies, r.status = policies.Reader(mgr.GetClient()), mgr.GetClient().Status()
	if err := r.setupPins(ctx, mgr, o); err != nil {
		return err
	}
	wake := wakes(&o)
	if r.observer.pods, err = watchPods(ctx, mgr, wake); err != nil {
		return err
	}
	b := ctrl.NewControllerManagedBy(mgr).Named("config")
	for _, kind := range workload.Kinds() {
		if err := mgr.GetFieldIndexer().IndexField(ctx, workload.New(kind), usesIndex, indexUses); err != nil {
			return fmt.Errorf("index the config of workloads: %w", err)
		}
		b = b.Watches(workload.New(kind), toRing(), builder.WithPredicates(workloadMatters(r.observer.tracker)))
	}
	if namespaces := r.observer.pins.Watched(); namespaces != nil {
		b = b.Watches(namespaces, toRing(), builder.WithPredicates(r.observer.pins.Switched()))
	}
	if provided {
		b = b.Watches(content.NewPodStatus(), toRing(), builder.WithPredicates(providedMatters(ctx, mgr.GetCache(), r.observer.tracker)))
	}
	b = b.WatchesRawSource(source.Channel(permitted.granted, toRing())).WatchesRawSource(source.Channel(wake, toRing()))
	c, err := b.WithOptions(controller.Options{RateLimiter: ring.Passes().RateLimiter()}).Build(r)
	if err != nil {
		return fmt.Errorf("build the controller: %w", err)
	}
	r.observer.spread.watch = watchNamespaces(mgr, c, mgr.GetLogger().WithName("config"))
	if err := setupFollowers(ctx, mgr, o, r.observer.source, policies); err != nil {
		return err
	}
	if err := addDefaultPolicy(mgr, o, policies); err != nil {
		return err
	}
	kinds := &policyKinds{mgr: mgr, controller: c, readable: policies, namespaces: o.Namespaces, wake: wake}
	if err := kinds.watch(ctx); err != nil {
		return fmt.Errorf("watch policies: %w", err)
	}
	return permitted.watchConfig(ctx, mgr, c, r.observer.tracker)
}

// wakes has the events that start passes. With a selector of namespaces there is one: no workload starts a pass
// before one has selected them.
func wakes(o *Options) chan event.GenericEvent {
	wake := make(chan event.GenericEvent, 1)
	if o.Reloader != nil && o.Reloader.Namespaces != nil {
		wake <- event.GenericEvent{Object: &corev1.Namespace{}}
	}
	return wake
}

// setupFollowers has what is not rolled by a hash follow its config: Rollouts of Argo, and CronJobs if that is asked for.
func setupFollowers(ctx context.Context, mgr ctrl.Manager, o Options, source content.Source, policies *policy.Kinds) error {
	if o.Reloader == nil {
		return nil
	}
	options := follow.Options{Reloader: o.Reloader, Source: source, Window: o.CoalesceWindow, Now: o.Now}
	if !o.KeepRollouts {
		if err := argo.Setup(ctx, mgr, options, o.Namespaces, policies); err != nil {
			return fmt.Errorf("set up the restarts of Rollouts: %w", err)
		}
	}
	if !o.RunCronJobs {
		return nil
	}
	if permitted, err := follow.Permits(ctx, mgr, o.Namespaces, "reloader.cronJobs", &batchv1.CronJobList{}, &batchv1.JobList{}); err != nil || !permitted {
		return err
	}
	return cronjobs.Setup(mgr, options)
}

// setupPins lets workloads and Jobs of the namespaces with pins keep their config.
func (r *reconciler) setupPins(ctx context.Context, mgr ctrl.Manager, o Options) (err error) {
	if o.PinNamespaces.IsEmpty() {
		return nil
	}
	r.snapshots, r.observer.pins, err = snapshots.Setup(ctx, mgr, snapshots.Options{Namespaces: o.PinNamespaces, Watched: o.Namespaces, By: o.PinBy, Now: o.Now})
	if err != nil {
		return fmt.Errorf("set up the snapshots of config: %w", err)
	}
	for namespace, why := range r.observer.pins.Refused() {
		mgr.GetLogger().WithName("config").Error(nil, "no workload keeps the config of its revisions: "+why, "namespace", namespace)
	}
	if r.snapshots == nil {
		return nil
	}
	if err := jobs.Setup(ctx, mgr, r.snapshots, r.observer.pins); err != nil {
		return fmt.Errorf("set up the pins of Jobs: %w", err)
	}
	return nil
}

// reconciler runs the ring. There is one request for all workloads, because
// they share the budget.
type reconciler struct {
	observer *observer
	writer   client.Writer
	reporter *reporter
	decide   func(decision.Observed, decision.Options) decision.Plan
	// status writes how releases go on their policies.
	status client.SubResourceWriter
	// snapshots writes what pins refer to, nil without pins.
	snapshots *snapshots.Keeper
}

// describePolicies writes how releases go on their policies, once that is known of all. It
// returns when to observe again, because another client has written one of them.
func (r *reconciler) describePolicies(ctx context.Context, o *decision.Observed, p *decision.Plan) time.Time {
	if len(o.Policies) == 0 || r.observer.unread || !o.IsKnown() {
		return time.Time{}
	}
	conflict, refusals := false, r.observer.retries.Refusals(o.Now)
	for _, write := range o.Policies.Writes(o.Now, p.Reports) {
		if refusals.PutOff(write.Change().Object, o.Now) {
			continue
		}
		err := write.Make(ctx, r.status)
		r.observer.retries.Learn(o.Now, write.Change(), err)
		r.reporter.Wrote(ctx, write.Change(), err)
		conflict = conflict || ring.IsConflict(err)
	}
	return r.observer.statusConflicts.Again(r.observer.options.Now(), conflict)
}

// writeGates creates and deletes RolloutGates. It returns whether another client was faster.
func (r *reconciler) writeGates(ctx context.Context, o *decision.Observed, p *decision.Plan) (conflict bool) {
	refusals := r.observer.retries.Refusals(o.Now)
	for i := range p.Gates {
		write := &p.Gates[i]
		change := write.Change()
		if refusals.PutOff(change.Object, o.Now) || r.observer.unread || r.observer.retries.IsMade(o.Now, change) {
			continue
		}
		err := applyGate(ctx, r.writer, write, r.observer.options.Now())
		r.observer.retries.Learn(o.Now, change, err)
		r.reporter.Wrote(ctx, change, err)
		conflict = conflict || ring.IsConflict(err)
	}
	return conflict
}

// writeRecords writes the records that permit something, or the others. It returns whether another client was faster,
// and the workloads that must not be rolled, because the record of how they are before could not be written.
func (r *reconciler) writeRecords(ctx context.Context, o *decision.Observed, p *decision.Plan, permits bool) (conflict bool, held []unrecorded) {
	refusals := r.observer.retries.Refusals(o.Now)
	for i := range p.Records {
		write := &p.Records[i]
		if write.Permits != permits {
			continue
		}
		var err error
		change := write.Change()
		if refusals.PutOff(change.Object, o.Now) {
			err = errors.New(refusals[change.Object].Reason)
		} else {
			err = writeRecord(ctx, r.writer, write)
			r.observer.retries.Learn(r.observer.options.Now(), change, err)
			r.reporter.Wrote(ctx, change, err)
			conflict = conflict || ring.IsConflict(err)
		}
		if err != nil && len(write.Awaiting) > 0 {
			held = append(held, unrecorded{write.Awaiting, unmade{err}})
		}
	}
	return conflict, held
}

// Reconcile makes one pass over all workloads.
func (r *reconciler) Reconcile(ctx context.Context, _ reconcile.Request) (reconcile.Result, error) {
	conflict := false
	loop := ring.Loop[decision.Observed, decision.Plan, results]{
		Most: 1, Now: r.observer.options.Now,
		Observe: func(ctx context.Context, _ bool) (decision.Observed, error) { return r.observer.observe(ctx) },
		Plan:    func(o *decision.Observed) decision.Plan { return r.decide(*o, r.observer.options.Options) },
		Act: func(ctx context.Context, o *decision.Observed, p *decision.Plan) results {
			raced, held := r.writeRecords(ctx, o, p, true)
			done := r.actRecorded(ctx, p, held)
			conflict, _ = r.writeRecords(ctx, o, p, false) // last: they say what was decided
			conflict = conflict || raced
			return done
		},
		Report: r.reporter.report,
		Learn: func(ctx context.Context, o *decision.Observed, p *decision.Plan, done *results) (ring.Next, error) {
			wake := ring.Earlier(p.Wake, r.describePolicies(ctx, o, p))
			wake = ring.Earlier(wake, r.observer.learn(o.Now, done, r.writeGates(ctx, o, p) || conflict))
			if r.observer.budget.learn(o, p, done) || r.observer.unread {
				wake = o.Now
			}
			return ring.Next{Wake: wake}, nil
		},
	}
	return loop.Run(ctx)
}
