package kube

import (
	"context"
	"fmt"

	apimeta "k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime/schema"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/manager"
)

// Needed are kinds without which a ring cannot run.
type Needed struct {
	// Ring is the ring's name.
	Ring string
	// Kinds are what it needs.
	Kinds []schema.GroupVersionKind
	// Called is how sentences call them: "the kinds of kudo.dev are".
	Called string
	// Without is what does not happen without them, Action what to do.
	Without, Action string
	// IsOptional is true if it is no error that they are not installed.
	IsOptional bool
}

// Start starts a ring. While its kinds are not installed, it says so and waits for
// them; the rest of the manager goes on.
func (n Needed) Start(ctx context.Context, mgr ctrl.Manager, start func(context.Context) error) error {
	missing, err := n.missing(mgr.GetRESTMapper())
	if err != nil {
		return err
	}
	if len(missing) == 0 {
		return start(ctx)
	}
	err = mgr.Add(manager.RunnableFunc(func(ctx context.Context) error { return n.startOnceInstalled(ctx, mgr, missing, start) }))
	if err != nil {
		return fmt.Errorf("wait for %s: %w", n.Called, err)
	}
	return nil
}

// missing are the kinds that the API server does not serve.
func (n Needed) missing(mapper apimeta.RESTMapper) (missing []schema.GroupVersionKind, err error) {
	for _, kind := range n.Kinds {
		served, err := isServed(mapper, kind)
		if err != nil {
			return nil, err
		}
		if !served {
			missing = append(missing, kind)
		}
	}
	return missing, nil
}

func isServed(mapper apimeta.RESTMapper, kind schema.GroupVersionKind) (bool, error) {
	_, err := mapper.RESTMapping(kind.GroupKind(), kind.Version)
	if apimeta.IsNoMatchError(err) {
		return false, nil
	}
	if err != nil {
		return false, fmt.Errorf("look for the kind %s: %w", kind.Kind, err)
	}
	return true, nil
}

func (n Needed) startOnceInstalled(ctx context.Context, mgr ctrl.Manager, missing []schema.GroupVersionKind, start func(context.Context) error) error {
	logger := mgr.GetLogger().WithName(n.Ring)
	if text := n.Without + ": " + n.Called + " not installed; " + n.Action; n.IsOptional {
		logger.Info(text, "missing", missing[0].GroupKind().String())
	} else {
		logger.Error(nil, text, "missing", missing[0].GroupKind().String())
	}
	for _, kind := range missing {
		served := func(context.Context) (bool, error) { return isServed(mgr.GetRESTMapper(), kind) }
		if err := UntilDefined(ctx, mgr, kind, served); err != nil {
			return err
		}
		if ctx.Err() != nil {
			return nil //nolint:nilerr // the manager stops
		}
	}
	logger.Info(n.Called + " installed now")
	return start(ctx)
}
