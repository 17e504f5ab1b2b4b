package config

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/go-logr/logr"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/apimachinery/pkg/watch"
	toolscache "k8s.io/client-go/tools/cache"
	watchtools "k8s.io/client-go/tools/watch"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/predicate"
	"sigs.k8s.io/controller-runtime/pkg/source"

	"github.com/spillway-dev/spillway/api/spillway/v1alpha1"
	"github.com/spillway-dev/spillway/internal/config/policy"
	"github.com/spillway-dev/spillway/internal/gates/ask"
)

// +kubebuilder:rbac:groups=apiextensions.k8s.io,resources=customresourcedefinitions,resourceNames=configpolicies.spillway.dev;clusterconfigpolicies.spillway.dev,verbs=list;watch

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
	for _, kind := range policy.KindsFor(p.namespaces) {
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
	err := p.controller.Watch(source.Kind(p.mgr.GetCache(), kind.Object, toRing(), predicate.GenerationChangedPredicate{}))
	if err != nil {
		return fmt.Errorf("watch the kind %s: %w", kind.Name, err)
	}
	if kind.Name == policy.Kind {
		if err := p.watchGates(ctx); err != nil {
			return err
		}
	}
	p.readable.Add(kind)
	return nil
}

// watchGates watches RolloutGates of ConfigPolicies, if they are installed and may be read.
// Otherwise all gates are pending.
func (p *policyKinds) watchGates(ctx context.Context) error {
	installed, err := ask.Installed(p.mgr.GetRESTMapper())
	if err != nil || !installed {
		return err
	}
	for _, namespace := range orAll(p.namespaces) {
		err := p.mgr.GetAPIReader().List(ctx, &v1alpha1.RolloutGateList{}, client.InNamespace(namespace), client.Limit(1))
		if apierrors.IsForbidden(err) {
			p.log().Error(nil, "gates of policies do not pass: no permission to list RolloutGates; grant list, watch, create and delete, and restart the manager")
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

// orAll are namespaces, or the one that stands for all.
func orAll(namespaces []string) []string {
	if len(namespaces) == 0 {
		return []string{""}
	}
	return namespaces
}

func (p *policyKinds) sayForbidden(kind policy.KindOf) {
	p.log().Error(nil, "no policy of the kind is in force: no permission to list it; grant list and watch, and restart the manager", "kind", kind.Name)
}

func (p *policyKinds) log() logr.Logger { return p.mgr.GetLogger().WithName("config") }

// awaitedKind is a kind that was not installed when the manager began.
type awaitedKind struct {
	*policyKinds

	kind policy.KindOf
}

// NeedLeaderElection is false: the webhooks of all replicas read policies.
func (*awaitedKind) NeedLeaderElection() bool { return false }

// servedWithin is how long after its definition a kind may need to be served.
const servedWithin = time.Minute

// Start waits until the kind is installed. The manager runs without it meanwhile, and for good
// if it must not know.
func (a *awaitedKind) Start(ctx context.Context) error {
	c, err := client.NewWithWatch(a.mgr.GetConfig(), client.Options{HTTPClient: a.mgr.GetHTTPClient(), Scheme: a.mgr.GetScheme(), Mapper: a.mgr.GetRESTMapper()})
	if err != nil {
		return fmt.Errorf("make a client that watches definitions: %w", err)
	}
	definitions := a.definitions(c)
	if _, err := toolscache.ToListerWatcherWithContext(definitions).ListWithContext(ctx, metav1.ListOptions{Limit: 1}); err != nil {
		a.log().V(1).Info("no policy of the kind is in force: it was not installed when the manager began; restart the manager once it is", "kind", a.kind.Name, "error", err.Error())
		return nil
	}
	_, err = watchtools.UntilWithSync(ctx, definitions, &metav1.PartialObjectMetadata{}, nil, func(watch.Event) (bool, error) { return a.isServed(ctx) })
	if ctx.Err() != nil {
		return nil //nolint:nilerr // the manager stops
	}
	if err != nil {
		return fmt.Errorf("wait for the kind %s: %w", a.kind.Name, err)
	}
	a.log().Info("the kind is installed now", "kind", a.kind.Name)
	select {
	case a.wake <- event.GenericEvent{Object: a.kind.Object}:
	default: // a pass follows already
	}
	return nil
}

// isServed begins with the kind, if it may be read. Its definition exists, so the API server
// serves it soon.
func (a *awaitedKind) isServed(ctx context.Context) (bool, error) {
	err := wait.PollUntilContextTimeout(ctx, time.Second, servedWithin, true, func(ctx context.Context) (bool, error) {
		err := a.begin(ctx, a.kind)
		if apierrors.IsForbidden(err) {
			a.sayForbidden(a.kind)
			return true, nil
		}
		return err == nil, nil
	})
	return err == nil, ctx.Err() //nolint:wrapcheck // the manager stops; else until the definition changes
}

// definitions lists and watches the definition of the kind, by its metadata.
func (a *awaitedKind) definitions(c client.WithWatch) toolscache.ListerWatcher {
	gvk := schema.GroupVersionKind{Group: "apiextensions.k8s.io", Version: "v1", Kind: "CustomResourceDefinitionList"}
	options := func(o metav1.ListOptions) *client.ListOptions {
		return &client.ListOptions{FieldSelector: fields.OneTermEqualSelector("metadata.name", a.kind.Definition()), Raw: &o}
	}
	list := func() *metav1.PartialObjectMetadataList {
		l := &metav1.PartialObjectMetadataList{}
		l.SetGroupVersionKind(gvk)
		return l
	}
	return &toolscache.ListWatch{
		ListWithContextFunc: func(ctx context.Context, o metav1.ListOptions) (runtime.Object, error) {
			l := list()
			err := c.List(ctx, l, options(o))
			return l, err //nolint:wrapcheck // the reflector reads what it is
		},
		WatchFuncWithContext: func(ctx context.Context, o metav1.ListOptions) (watch.Interface, error) {
			return c.Watch(ctx, list(), options(o))
		},
	}
}
