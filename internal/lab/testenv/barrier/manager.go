package barrier

import (
	"cmp"
	"context"
	"fmt"
	"reflect"
	"sync"

	"k8s.io/client-go/util/workqueue"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/spillway-dev/spillway/internal/kube"
)

// Manager is a manager under test.
type Manager struct {
	clock *Clock
	// live reads what is on its API server.
	live client.Client

	mu sync.Mutex
	// started is true once all is set up.
	started     bool
	controllers int
	queues      []*queue
	views       []*view
}

// Observed stands in for a manager whose cache has these options. It sees which watches and
// queues there are.
func (m *Manager) Observed(mgr ctrl.Manager, o cache.Options) ctrl.Manager {
	o.Scheme = mgr.GetScheme()
	return observed{Manager: mgr, under: m, cache: m.observe(mgr.GetCache(), o)}
}

type observed struct {
	ctrl.Manager

	under *Manager
	cache cache.Cache
}

var _ kube.Observing = observed{}

// GetCache implements [ctrl.Manager].
func (o observed) GetCache() cache.Cache { return o.cache }

// Observe implements [kube.Observing].
func (o observed) Observe(seen cache.Cache, options cache.Options) cache.Cache {
	return o.under.observe(seen, options)
}

// Start implements [ctrl.Manager].
func (o observed) Start(ctx context.Context) error {
	o.under.mu.Lock()
	o.under.started = true
	o.under.mu.Unlock()
	return o.Manager.Start(ctx) //nolint:wrapcheck // it stands in for the manager
}

// Add implements [ctrl.Manager].
func (o observed) Add(r manager.Runnable) error {
	if _, ok := r.(controller.Controller); ok {
		// A manager has no default for this option.
		option := reflect.ValueOf(r).Elem().FieldByName("NewQueue")
		option.Set(reflect.ValueOf(o.under.newQueue))
		o.under.mu.Lock()
		o.under.controllers++
		o.under.mu.Unlock()
	}
	return o.Manager.Add(r) //nolint:wrapcheck // it stands in for the manager
}

func (m *Manager) newQueue(name string, limiter workqueue.TypedRateLimiter[reconcile.Request]) workqueue.TypedRateLimitingInterface[reconcile.Request] {
	q := makeQueue(name, limiter, m.clock)
	m.mu.Lock()
	defer m.mu.Unlock()
	m.queues = append(m.queues, q)
	return q
}

// level is nil if all that exists is observed.
func (m *Manager) level(ctx context.Context) error {
	_, views, err := m.parts()
	for _, v := range views {
		if err := v.level(ctx, m.live); err != nil {
			return err
		}
	}
	return err
}

// idle is nil if nothing is to be done. It says how many passes and events there were before
// that was asked.
func (m *Manager) idle() (activity int, err error) {
	queues, views, err := m.parts()
	for _, q := range queues {
		activity += q.begun()
	}
	for _, v := range views {
		activity += v.handled()
	}
	for _, q := range queues {
		err = cmp.Or(err, q.idle())
	}
	return activity, err //nolint:wrapcheck // it says what is not idle
}

func (m *Manager) parts() ([]*queue, []*view, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if !m.started || len(m.queues) < m.controllers {
		return nil, nil, fmt.Errorf("the manager has started %d of %d controllers", len(m.queues), m.controllers)
	}
	return m.queues, m.views, nil
}
