package config

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/wait"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	"sigs.k8s.io/controller-runtime/pkg/source"

	"github.com/spillway-dev/spillway/internal/config/content"
	"github.com/spillway-dev/spillway/internal/kube"
)

// permittedEvery is how often to ask for a permission that is missing: the API server
// sends no event when permissions change.
const permittedEvery = 10 * time.Second

// permissions are the kinds of config that the manager may not list and watch. Workloads
// that use them wait; the others are rolled.
type permissions struct {
	reader     client.Reader
	namespaces []string
	mu         sync.Mutex
	missing    map[content.Kind]bool
	// granted starts a pass once one of them is permitted.
	granted chan event.GenericEvent
}

// isMissing is true for a kind that cannot be read.
func (p *permissions) isMissing(kind content.Kind) bool {
	if p == nil {
		return false
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.missing[kind]
}

func (p *permissions) set(kind content.Kind, missing bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.missing[kind] = missing
}

// askFor finds out which kinds of config may be listed.
func (p *permissions) askFor(ctx context.Context, kinds ...content.Kind) error {
	for _, kind := range kinds {
		permitted, err := p.has(ctx, kind)
		if err != nil && ctx.Err() == nil {
			return err
		}
		p.set(kind, !permitted)
	}
	return nil
}

// has is true if a kind may be listed in all namespaces of the manager.
func (p *permissions) has(ctx context.Context, kind content.Kind) (bool, error) {
	for _, namespace := range kube.OrAll(p.namespaces) {
		list := &metav1.PartialObjectMetadataList{} // no values
		list.SetGroupVersionKind(corev1.SchemeGroupVersion.WithKind(string(kind) + "List"))
		err := p.reader.List(ctx, list, client.InNamespace(namespace), client.Limit(1))
		if apierrors.IsForbidden(err) {
			return false, nil
		}
		if err != nil {
			return false, fmt.Errorf("list one %s: %w", kind, err)
		}
	}
	return true, nil
}

// awaitPermission watches a kind once that is permitted, and says what is missing until
// then.
func (p *permissions) awaitPermission(mgr ctrl.Manager, kind content.Kind, start func() error) error {
	logger, resource := mgr.GetLogger().WithName("config"), strings.ToLower(string(kind))+"s"
	err := mgr.Add(manager.RunnableFunc(func(ctx context.Context) error {
		logger.Error(nil, "workloads that use "+string(kind)+"s are not rolled: no permission to list and watch "+resource+
			"; grant it, for example by spillway install", "namespaces", strings.Join(p.namespaces, ","))
		err := wait.PollUntilContextCancel(ctx, permittedEvery, false, func(ctx context.Context) (bool, error) {
			permitted, err := p.has(ctx, kind)
			return err == nil && permitted, nil
		})
		if err != nil {
			return nil //nolint:nilerr // the manager stops
		}
		logger.Info("permitted now", "resource", resource)
		if err := start(); err != nil {
			return err
		}
		p.set(kind, false)
		p.granted <- event.GenericEvent{Object: kind.New()}
		return nil
	}))
	if err != nil {
		return fmt.Errorf("wait for the permission to watch %s: %w", resource, err)
	}
	return nil
}

// watchConfig watches the kinds of config, those that are not permitted as soon as they are.
func (p *permissions) watchConfig(ctx context.Context, mgr ctrl.Manager, c controller.Controller, t *tracker) error {
	for _, kind := range []content.Kind{content.ConfigMap, content.Secret} {
		watch := func() error {
			return c.Watch(source.Kind(mgr.GetCache(), kind.New(), toRing(), objectMatters(ctx, mgr.GetCache(), t)))
		}
		begin := watch
		if p.isMissing(kind) {
			begin = func() error { return p.awaitPermission(mgr, kind, watch) }
		}
		if err := begin(); err != nil {
			return err
		}
	}
	return nil
}
