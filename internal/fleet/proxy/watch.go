package proxy

import (
	"context"
	"sync"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/util/workqueue"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
	"sigs.k8s.io/controller-runtime/pkg/source"

	"github.com/spillway-dev/spillway/api/fleet/v1alpha1"
	"github.com/spillway-dev/spillway/internal/fleet/cluster"
)

const (
	// rewatchFirst and rewatchMost bound how long to wait before a watch that ended is
	// begun again.
	rewatchFirst = 200 * time.Millisecond
	rewatchMost  = 30 * time.Second
	// notPermittedAgain is when to try again to watch what may not be watched.
	notPermittedAgain = 5 * time.Minute
	// watchedLongEnough is when a watch that ended did not fail.
	watchedLongEnough = 10 * time.Second
)

// assemblages is what is watched.
var assemblages = v1alpha1.GroupVersion.WithResource("assemblages")

// watches watch, for each ProxyAssemblage, the one Assemblage that it stands for. They
// only say when to look.
type watches struct {
	registry *cluster.Registry
	now      func() time.Time

	mu sync.Mutex
	// root is the context in which watches run, nil until the controller has started.
	root    context.Context
	queue   workqueue.TypedRateLimitingInterface[reconcile.Request]
	running map[types.NamespacedName]*watching
}

// watching is one watch.
type watching struct {
	conn   *cluster.Connection
	cancel context.CancelFunc
	// open is true while it is established.
	open bool
}

func newWatches(registry *cluster.Registry, now func() time.Time) *watches {
	return &watches{registry: registry, now: now, running: map[types.NamespacedName]*watching{}}
}

// source is by which watches wake the controller.
func (w *watches) source() source.Source {
	return source.Func(func(ctx context.Context, queue workqueue.TypedRateLimitingInterface[reconcile.Request]) error {
		w.mu.Lock()
		defer w.mu.Unlock()
		w.root, w.queue = ctx, queue
		return nil
	})
}

// begin watches with a connection, unless a watch runs already. It returns true if changes
// are reported.
func (w *watches) begin(key, secret types.NamespacedName, conn *cluster.Connection) (open bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	former := w.running[key]
	if former != nil && former.conn == conn {
		return former.open
	}
	if former != nil {
		former.cancel()
	}
	if w.root == nil {
		return false
	}
	ctx, cancel := context.WithCancel(w.root)
	now := &watching{conn: conn, cancel: cancel}
	w.running[key] = now
	go w.run(ctx, key, secret, now)
	return false
}

// end ends a watch, of what is gone or cannot be reached.
func (w *watches) end(key types.NamespacedName) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if former := w.running[key]; former != nil {
		former.cancel()
		delete(w.running, key)
	}
}

// run watches until the context ends, again and again.
func (w *watches) run(ctx context.Context, key, secret types.NamespacedName, this *watching) {
	backOff := wait.Backoff{Duration: rewatchFirst, Factor: 2, Jitter: 0.5, Steps: 10, Cap: rewatchMost}
	again := backOff
	for ctx.Err() == nil {
		began := w.now()
		err := w.once(ctx, key, this)
		w.setOpen(key, this, false)
		if w.now().Sub(began) > watchedLongEnough {
			again = backOff
		}
		pause := again.Step()
		switch {
		case cluster.IsConnection(err):
			w.registry.Suspect(secret)
		case apierrors.IsForbidden(err), apierrors.IsUnauthorized(err), apierrors.IsMethodNotSupported(err): // an API server that begins says other things
			pause = notPermittedAgain
		}
		sleep(ctx, pause)
	}
}

// once watches until the watch ends.
func (w *watches) once(ctx context.Context, key types.NamespacedName, this *watching) error {
	err := this.conn.Follow(ctx, assemblages, key, func() {
		w.setOpen(key, this, true)
		w.wake(key) // also of what happened before
	})
	if err == nil {
		w.wake(key) // in case the cluster has gone
	}
	return err
}

func (w *watches) setOpen(key types.NamespacedName, this *watching, open bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.running[key] == this {
		this.open = open
	}
}

func (w *watches) wake(key types.NamespacedName) { w.queue.Add(reconcile.Request{NamespacedName: key}) }

// sleep waits for a time, or until the context ends.
func sleep(ctx context.Context, pause time.Duration) {
	ctx, cancel := context.WithTimeout(ctx, pause)
	defer cancel()
	<-ctx.Done()
}
