package argo

import (
	"cmp"
	"context"
	"fmt"
	"sync"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime/schema"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/predicate"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
	"sigs.k8s.io/controller-runtime/pkg/source"

	"github.com/spillway-dev/spillway/internal/config/content"
	"github.com/spillway-dev/spillway/internal/config/follow"
	"github.com/spillway-dev/spillway/internal/config/policy"
	"github.com/spillway-dev/spillway/internal/config/workload"
	"github.com/spillway-dev/spillway/internal/kube"
	"github.com/spillway-dev/spillway/internal/message"
	"github.com/spillway-dev/spillway/internal/metrics"
	"github.com/spillway-dev/spillway/internal/ring"
	"github.com/spillway-dev/spillway/rollout"
)

// The reasons of Events on Rollouts.
const (
	// EventRestarted: a ConfigMap or Secret that the Rollout uses has changed, and Argo was asked to restart it.
	// Action: nothing, for information only.
	EventRestarted rollout.Reason = "RolloutRestarted"
)

// Setup adds what restarts Rollouts to a manager: now, or once the kind is installed.
func Setup(ctx context.Context, mgr ctrl.Manager, o follow.Options, namespaces []string, policies *policy.Kinds) error {
	workload.AddRollouts(mgr.GetScheme())
	needed := kube.Needed{
		Ring: "config", Kinds: []schema.GroupVersionKind{workload.ArgoVersion.WithKind(workload.ArgoRollout)}, Called: "Rollouts of Argo are",
		Without: "no Rollout is restarted for changes of its config", Action: "they are once Argo Rollouts is installed", IsOptional: true,
	}
	return needed.Start(ctx, mgr, func(ctx context.Context) error { return start(ctx, mgr, o, namespaces, policies) })
}

// start begins, if that is permitted.
func start(ctx context.Context, mgr ctrl.Manager, o follow.Options, namespaces []string, policies *policy.Kinds) error {
	if permitted, err := follow.Permits(ctx, mgr, namespaces, "reloader.annotations", &workload.RolloutList{}); err != nil || !permitted {
		return err
	}
	r := &restarter{
		config: follow.NewReader(o), rollouts: mgr.GetClient(), policies: policies.Reader(mgr.GetClient()), writer: mgr.GetClient(),
		reporter: ring.Reporter{Events: mgr.GetEventRecorder("spillway"), Action: "Restart", Writes: metrics.ConfigWrites},
	}
	b := o.Watch(ctrl.NewControllerManagedBy(mgr).Named("config-rollouts").For(&workload.Rollout{}), r.rollouts, &workload.RolloutList{})
	c, err := b.WithOptions(controller.Options{RateLimiter: ring.Passes().RateLimiter()}).Build(r)
	if err != nil {
		return fmt.Errorf("build the controller of Rollouts: %w", err)
	}
	return policies.Each(func(kind policy.KindOf) error {
		err := c.Watch(source.Kind(mgr.GetCache(), kind.Object, handler.EnqueueRequestsFromMapFunc(r.heldIn), predicate.GenerationChangedPredicate{}))
		if err != nil {
			return fmt.Errorf("watch %s for Rollouts: %w", kind.Name, err)
		}
		return nil
	})
}

// restarter restarts Rollouts whose config has changed.
type restarter struct {
	config   *follow.Reader
	rollouts client.Reader
	policies *policy.Reader
	writer   client.Writer
	reporter ring.Reporter
	// held are the names of those that a policy keeps as they are.
	held sync.Map
}

// observed is a Rollout that follows its config, and what is known of that.
type observed struct {
	*follow.Config

	rollout *workload.Rollout
	// isHeld is true if a policy for something that has changed keeps it as it is, and opens is when time alone may end that.
	isHeld bool
	opens  time.Time
}

// observe reads a Rollout and its config; nil if it does not follow it.
func (r *restarter) observe(ctx context.Context, name client.ObjectKey) (*observed, error) {
	o := &observed{rollout: &workload.Rollout{}}
	err := r.rollouts.Get(ctx, name, o.rollout)
	if apierrors.IsNotFound(err) {
		return nil, nil //nolint:nilnil // there is nothing to do
	}
	if err != nil {
		return nil, fmt.Errorf("get Rollout %s: %w", name.Name, err)
	}
	if o.Config, err = r.config.Read(ctx, o.rollout); err != nil || o.Config == nil {
		return nil, err
	}
	return o, r.observePolicies(ctx, name, o)
}

// observePolicies finds the policies that keep a Rollout as it is. Those that change later start a pass over it: so it counts as held
// before they are read.
func (r *restarter) observePolicies(ctx context.Context, name client.ObjectKey, o *observed) error {
	if len(o.Changed) == 0 {
		r.held.Delete(name)
		return nil
	}
	r.held.Store(name, nil)
	set, err := r.policies.Read(ctx, []string{name.Namespace})
	if err != nil {
		return fmt.Errorf("read the policies of namespace %s: %w", name.Namespace, err)
	}
	for _, of := range o.Changed {
		p := set.For(name.Namespace, labels.Set(o.rollout.Labels), of)
		if p == nil {
			continue
		}
		block := p.Block(o.Now)
		o.isHeld = o.isHeld || p.Pause != nil || block != nil
		if block != nil {
			o.opens = ring.Earlier(o.opens, block.Until)
		}
	}
	if !o.isHeld {
		r.held.Delete(name)
	}
	return nil
}

// heldIn are those in the namespace of a policy, in all for one of the cluster.
func (r *restarter) heldIn(_ context.Context, of client.Object) (requests []reconcile.Request) {
	r.held.Range(func(key, _ any) bool {
		if name, is := key.(client.ObjectKey); is && (of.GetNamespace() == "" || of.GetNamespace() == name.Namespace) {
			requests = append(requests, reconcile.Request{NamespacedName: name})
		}
		return true
	})
	return requests
}

// Reconcile makes one pass over a Rollout.
func (r *restarter) Reconcile(ctx context.Context, req reconcile.Request) (reconcile.Result, error) {
	defer ring.UnderWay.Begin("config-rollouts")()
	// 1. Observe.
	o, err := r.observe(ctx, req.NamespacedName)
	if err != nil || o == nil {
		r.config.Forget(req.NamespacedName)
		r.held.Delete(req.NamespacedName)
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

// report counts and logs the write of a pass, and tells of a restart.
func (r *restarter) report(ctx context.Context, o *observed, p *plan, err error) {
	if p.record == "" {
		return
	}
	act := "record"
	if !p.restartAt.IsZero() {
		act = "restart"
	}
	r.reporter.Wrote(ctx, ring.Change{Act: act, Object: "Rollout " + o.rollout.Namespace + "/" + o.rollout.Name}, err)
	if act == "restart" && err == nil {
		why := message.Join(o.Changed, ", ", func(of content.Object) string { return of.From(o.rollout.Namespace) })
		r.reporter.Normal(o.rollout, EventRestarted, "Argo restarts it: %s changed", cmp.Or(why, "what Reloader had rolled it for has"))
	}
}
