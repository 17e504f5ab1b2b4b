package config

import (
	"context"
	"errors"
	"fmt"

	"github.com/go-logr/logr"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/predicate"
	"sigs.k8s.io/controller-runtime/pkg/source"

	"github.com/spillway-dev/spillway/api/spillway/v1alpha1"
	"github.com/spillway-dev/spillway/internal/config/policy"
	"github.com/spillway-dev/spillway/internal/config/verdict"
	"github.com/spillway-dev/spillway/internal/gates/ask"
	"github.com/spillway-dev/spillway/internal/kube"
)

// +kubebuilder:rbac:groups=apiextensions.k8s.io,resources=customresourcedefinitions,resourceNames=configpolicies.spillway.dev;clusterconfigpolicies.spillway.dev;configrollouts.spillway.dev,verbs=list;watch

// policyKinds watches the kinds of policies: those that are installed when the manager begins,
// and the others as soon as they are.
type policyKinds struct {
	mgr        ctrl.Manager
	controller controller.Controller
	readable   *policy.Kinds
	namespaces []string
	// wake starts a pass.
	wake chan event.GenericEvent
}

// watch watches all kinds. Those that must not be read are left out: no policy of them is then
// in force.
func (p *policyKinds) watch(ctx context.Context) error {
	for _, kind := range append(policy.KindsFor(p.namespaces), policy.Records()) {
		err := p.begin(ctx, kind)
		switch {
		case errors.Is(err, policy.ErrNotInstalled):
			if err := p.mgr.Add(&awaitedKind{policyKinds: p, kind: kind}); err != nil {
				return fmt.Errorf("wait for the kind %s: %w", kind.Name, err)
			}
		case apierrors.IsForbidden(err):
			p.sayForbidden(kind)
		case err != nil:
			return err
		}
	}
	return nil
}

// begin reads and watches a kind from now on.
func (p *policyKinds) begin(ctx context.Context, kind policy.KindOf) error {
	if err := kind.Verify(ctx, p.mgr.GetRESTMapper(), p.mgr.GetAPIReader(), p.namespaces); err != nil {
		return err
	}
	err := p.controller.Watch(source.Kind(p.mgr.GetCache(), kind.Object, toRing(), predicate.GenerationChangedPredicate{}, verdictsMatter()))
	if err != nil {
		return fmt.Errorf("watch the kind %s: %w", kind.Name, err)
	}
	if kind.Name == policy.Kind {
		if err := p.watchGates(ctx); err != nil {
			return err
		}
	}
	return p.readable.Add(kind)
}

// watchGates watches RolloutGates of ConfigPolicies, if they are installed and may be read.
// Otherwise all gates are pending.
func (p *policyKinds) watchGates(ctx context.Context) error {
	installed, err := ask.Installed(p.mgr.GetRESTMapper())
	if err != nil || !installed {
		return err
	}
	for _, namespace := range kube.OrAll(p.namespaces) {
		err := p.mgr.GetAPIReader().List(ctx, &v1alpha1.RolloutGateList{}, client.InNamespace(namespace), client.Limit(1))
		if apierrors.IsForbidden(err) {
			p.log().Error(nil, "gates of policies do not pass: no permission to list RolloutGates; grant list, watch, create, patch and delete, and restart the manager")
			return nil
		}
		if err != nil {
			return fmt.Errorf("list one RolloutGate: %w", err)
		}
	}
	ofPolicies := predicate.NewPredicateFuncs(func(obj client.Object) bool {
		g, ok := obj.(*v1alpha1.RolloutGate)
		return ok && g.Spec.TargetRef.Kind == policy.Kind
	})
	err = p.controller.Watch(source.Kind[client.Object](p.mgr.GetCache(), &v1alpha1.RolloutGate{}, toRing(), ofPolicies))
	if err != nil {
		return fmt.Errorf("watch RolloutGates: %w", err)
	}
	p.readable.AddGates()
	return nil
}

func (p *policyKinds) sayForbidden(kind policy.KindOf) {
	what := "no policy of the kind is in force"
	if kind.Name == verdict.Kind {
		what = "what fails is not recorded, so no workload gets its previous config back, and an undo lets others be rolled"
	}
	p.log().Error(nil, what+": no permission to list it; grant list and watch, and restart the manager", "kind", kind.Name)
}

func (p *policyKinds) log() logr.Logger { return p.mgr.GetLogger().WithName("config") }

// awaitedKind is a kind that was not installed when the manager began.
type awaitedKind struct {
	*policyKinds

	kind policy.KindOf
}

// NeedLeaderElection is false: the webhooks of all replicas read policies.
func (*awaitedKind) NeedLeaderElection() bool { return false }

// Start waits until the kind is installed. The manager runs without it meanwhile.
func (a *awaitedKind) Start(ctx context.Context) error {
	kind := v1alpha1.GroupVersion.WithKind(a.kind.Name)
	if err := kube.UntilDefined(ctx, a.mgr, kind, a.isServed); err != nil || ctx.Err() != nil {
		return err
	}
	a.log().Info("the kind is installed now", "kind", a.kind.Name)
	select {
	case a.wake <- event.GenericEvent{Object: a.kind.Object}:
	default: // a pass follows already
	}
	return nil
}

// isServed begins with the kind, if it may be read.
func (a *awaitedKind) isServed(ctx context.Context) (bool, error) {
	err := a.begin(ctx, a.kind)
	if apierrors.IsForbidden(err) {
		a.sayForbidden(a.kind)
		return true, nil
	}
	return err == nil, err
}
