package barrier

import (
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

// passed is nil if all is observed and done.
func (m *Manager) passed(ctx context.Context, live client.Client) error {
	queues, views, err := m.parts()
	if err != nil {
		return err
	}
	before := activity(queues, views)
	for _, v := range views {
		if err := v.level(ctx, live); err != nil {
			return err
		}
	}
	for _, q := range queues {
		if err := q.idle(); err != nil {
			return err
		}
	}
	queues, views, err = m.parts()
	if after := activity(queues, views); after != before || err != nil {
		return fmt.Errorf("passes and events: %d before and %d after it was asked: %w", before, after, err)
	}
	return nil
}

func (m *Manager) parts() ([]*queue, []*view, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if !m.started || len(m.queues) < m.controllers {
		return nil, nil, fmt.Errorf("the manager has started %d of %d controllers", len(m.queues), m.controllers)
	}
	return m.queues, m.views, nil
}

// activity grows with each pass and each event.
func activity(queues []*queue, views []*view) (n int) {
	for _, q := range queues {
		n += q.begun()
	}
	for _, v := range views {
		n += v.handled()
	}
	return n
}
