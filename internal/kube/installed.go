package kube

import (
	"context"
	"fmt"
	"time"

	apimeta "k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/wait"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/manager"
)

// installedEvery is how often to look for kinds that are not installed: the API
// server sends no event when its kinds change.
const installedEvery = 5 * time.Second

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
	if missing == "" {
		return start(ctx)
	}
	err = mgr.Add(manager.RunnableFunc(func(ctx context.Context) error { return n.startOnceInstalled(ctx, mgr, missing, start) }))
	if err != nil {
		return fmt.Errorf("wait for %s: %w", n.Called, err)
	}
	return nil
}

// missing is the first kind that the API server does not know, empty if it knows all.
func (n Needed) missing(mapper apimeta.RESTMapper) (string, error) {
	for _, kind := range n.Kinds {
		_, err := mapper.RESTMapping(kind.GroupKind(), kind.Version)
		if apimeta.IsNoMatchError(err) {
			return kind.GroupKind().String(), nil
		}
		if err != nil {
			return "", fmt.Errorf("look for the kind %s: %w", kind.Kind, err)
		}
	}
	return "", nil
}

func (n Needed) startOnceInstalled(ctx context.Context, mgr ctrl.Manager, missing string, start func(context.Context) error) error {
	logger := mgr.GetLogger().WithName(n.Ring)
	if text := n.Without + ": " + n.Called + " not installed; " + n.Action; n.IsOptional {
		logger.Info(text, "missing", missing)
	} else {
		logger.Error(nil, text, "missing", missing)
	}
	err := wait.PollUntilContextCancel(ctx, installedEvery, false, func(context.Context) (bool, error) {
		missing, err := n.missing(mgr.GetRESTMapper())
		if err != nil {
			logger.V(1).Info("looking again", "error", err.Error())
		}
		return err == nil && missing == "", nil
	})
	if err != nil {
		return nil //nolint:nilerr // the manager stops
	}
	logger.Info(n.Called + " installed now")
	return start(ctx)
}
