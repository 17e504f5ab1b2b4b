package argo

import (
	"cmp"
	"context"
	"fmt"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime/schema"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

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
	if err := b.WithOptions(controller.Options{RateLimiter: ring.Passes().RateLimiter()}).Complete(r); err != nil {
		return fmt.Errorf("build the controller of Rollouts: %w", err)
	}
	return nil
}

// restarter restarts Rollouts whose config has changed.
type restarter struct {
	config   *follow.Reader
	rollouts client.Reader
	policies *policy.Reader
	writer   client.Writer
	reporter ring.Reporter
}

// observed is a Rollout that follows its config, and what is known of that.
type observed struct {
	*follow.Config

	rollout *workload.Rollout
	// isHeld is true if a policy for something that has changed keeps it as it is.
	isHeld bool
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
	if len(o.Changed) == 0 {
		return o, nil // no policy matters
	}
	set, err := r.policies.Read(ctx, []string{name.Namespace})
	if err != nil {
		return nil, fmt.Errorf("read the policies of namespace %s: %w", name.Namespace, err)
	}
	for _, of := range o.Changed {
		p := set.For(name.Namespace, labels.Set(o.rollout.Labels), of)
		o.isHeld = o.isHeld || p != nil && (p.Pause != nil || p.Block(o.Now) != nil)
	}
	return o, nil
}

// Reconcile makes one pass over a Rollout.
func (r *restarter) Reconcile(ctx context.Context, req reconcile.Request) (reconcile.Result, error) {
	defer ring.UnderWay.Begin("config-rollouts")()
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
