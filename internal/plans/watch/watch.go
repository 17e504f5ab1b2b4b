// Package watch wakes an Instance up when an object changes that its last decision
// depended on.
//
// # Invariants
//
//   - A kind is watched before the first object of it is read, so no change after that
//     read is missed.
//   - Watches only say when to read. What they deliver is metadata, and is not decided
//     upon.
//   - What an Instance did not read in its last complete pass does not wake it up.
package watch

import (
	"context"
	"fmt"
	"maps"
	"sync"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	apimeta "k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
	"sigs.k8s.io/controller-runtime/pkg/source"

	"github.com/spillway-dev/spillway/internal/kube"
	"github.com/spillway-dev/spillway/internal/plans/object"
	"github.com/spillway-dev/spillway/internal/vocabulary"
)

// syncTimeout is how long a watch may take to start.
const syncTimeout = 20 * time.Second

// Watches knows which Instances have read which objects. A kind is watched, by the
// metadata of its objects alone, from when the first of them is read.
type Watches struct {
	// marked and all are caches of metadata: of objects with the label of what plans
	// apply, and of all objects.
	marked, all cache.Cache
	live        client.Reader
	namespaces  []string

	// starting guards controller and started.
	starting   sync.Mutex
	controller controller.Controller
	started    map[watchedKind]bool

	mu sync.Mutex
	// readers are the Instances that have read an object; reads are the objects that an
	// Instance has read.
	readers map[key]map[types.NamespacedName]bool
	reads   map[types.NamespacedName]*reads
}

type watchedKind struct {
	schema.GroupVersionKind

	marked bool
}

// key names an object in whatever version of its group.
type key struct {
	kind schema.GroupKind
	types.NamespacedName
}

// reads are the objects that an Instance has read in its last pass, and in the present
// one.
type reads struct{ before, now map[key]bool }

// New makes watches for a manager, in these namespaces, all if there are none.
func New(mgr ctrl.Manager, namespaces []string) (*Watches, error) {
	w := &Watches{
		live: mgr.GetAPIReader(), namespaces: namespaces, started: map[watchedKind]bool{},
		readers: map[key]map[types.NamespacedName]bool{}, reads: map[types.NamespacedName]*reads{},
	}
	var err error
	if w.marked, err = newMetadataCache(mgr, namespaces, labels.SelectorFromSet(labels.Set{vocabulary.Heritage: vocabulary.HeritageOf})); err != nil {
		return nil, err
	}
	w.all, err = newMetadataCache(mgr, namespaces, labels.Everything())
	return w, err
}

func newMetadataCache(mgr ctrl.Manager, namespaces []string, selector labels.Selector) (cache.Cache, error) {
	options := cache.Options{
		HTTPClient: mgr.GetHTTPClient(), Scheme: mgr.GetScheme(), Mapper: mgr.GetRESTMapper(),
		DefaultLabelSelector: selector, DefaultTransform: kube.Identify,
	}
	if len(namespaces) > 0 {
		options.DefaultNamespaces = map[string]cache.Config{}
		for _, namespace := range namespaces {
			options.DefaultNamespaces[namespace] = cache.Config{}
		}
	}
	c, err := cache.New(mgr.GetConfig(), options)
	if err != nil {
		return nil, fmt.Errorf("make a cache of metadata: %w", err)
	}
	if err := mgr.Add(c); err != nil {
		return nil, fmt.Errorf("run a cache of metadata: %w", err)
	}
	return c, nil
}

// Wake makes watches wake up the requests of the controller that build makes. The
// controller may run before this returns; until then no watch starts.
func (w *Watches) Wake(build func() (controller.Controller, error)) (err error) {
	w.starting.Lock()
	defer w.starting.Unlock()
	w.controller, err = build()
	return err
}

// Begin begins a pass of an Instance.
func (w *Watches) Begin(instance types.NamespacedName) {
	w.mu.Lock()
	defer w.mu.Unlock()
	r := w.reads[instance]
	if r == nil {
		r = &reads{}
		w.reads[instance] = r
	}
	if r.before == nil {
		r.before = map[key]bool{}
	}
	maps.Copy(r.before, r.now) // of a pass that did not end
	r.now = map[key]bool{}
}

// Follow wakes the Instance up when an object changes; marked objects carry the label
// of what plans apply. It returns once the kind is watched.
func (w *Watches) Follow(ctx context.Context, instance types.NamespacedName, ref object.Ref, marked bool) error {
	w.note(instance, key{ref.GroupKind(), types.NamespacedName{Namespace: ref.Namespace, Name: ref.Name}})
	return w.watch(ctx, watchedKind{ref.GroupVersionKind, marked})
}

func (w *Watches) note(instance types.NamespacedName, o key) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if r := w.reads[instance]; r != nil {
		r.now[o] = true
	}
	if w.readers[o] == nil {
		w.readers[o] = map[types.NamespacedName]bool{}
	}
	w.readers[o][instance] = true
}

func (w *Watches) watch(ctx context.Context, kind watchedKind) error {
	w.starting.Lock()
	defer w.starting.Unlock()
	if w.started[kind] {
		return nil
	}
	switch err := w.mayWatch(ctx, kind); {
	case apierrors.IsNotFound(err) || apimeta.IsNoMatchError(err):
		return nil
	case err != nil:
		return fmt.Errorf("watch %s, for which permission to get, list, watch, create, patch and delete is needed: %w", kind.Kind, err)
	}
	metadata := w.all
	if kind.marked {
		metadata = w.marked
	}
	m := &metav1.PartialObjectMetadata{}
	m.SetGroupVersionKind(kind.GroupVersionKind)
	watched := source.Kind(metadata, client.Object(m), handler.EnqueueRequestsFromMapFunc(w.toReaders(kind.GroupKind())))
	if err := w.controller.Watch(watched); err != nil {
		return fmt.Errorf("watch %s: %w", kind.Kind, err)
	}
	ctx, cancel := context.WithTimeout(ctx, syncTimeout)
	defer cancel()
	if err := watched.WaitForSync(ctx); err != nil {
		return fmt.Errorf("watch %s: %w", kind.Kind, err)
	}
	w.started[kind] = true
	return nil
}

// mayWatch lists, because a watch that is forbidden is retried without an error.
func (w *Watches) mayWatch(ctx context.Context, kind watchedKind) error {
	list := &metav1.PartialObjectMetadataList{}
	list.SetGroupVersionKind(kind.GroupVersion().WithKind(kind.Kind + "List"))
	namespaces := w.namespaces
	if len(namespaces) == 0 {
		namespaces = []string{metav1.NamespaceAll}
	}
	for _, namespace := range namespaces {
		if err := w.live.List(ctx, list, client.Limit(1), client.InNamespace(namespace)); err != nil {
			return err //nolint:wrapcheck // the caller says what it is about
		}
	}
	return nil
}

func (w *Watches) toReaders(kind schema.GroupKind) handler.MapFunc {
	return func(_ context.Context, obj client.Object) []reconcile.Request {
		w.mu.Lock()
		defer w.mu.Unlock()
		var requests []reconcile.Request
		for instance := range w.readers[key{kind, client.ObjectKeyFromObject(obj)}] {
			requests = append(requests, reconcile.Request{NamespacedName: instance})
		}
		return requests
	}
}

// End ends a pass: objects that the Instance has not read in it no longer wake it up.
func (w *Watches) End(instance types.NamespacedName) {
	w.mu.Lock()
	defer w.mu.Unlock()
	r := w.reads[instance]
	if r == nil {
		return
	}
	for o := range r.before {
		if !r.now[o] {
			w.unfollow(instance, o)
		}
	}
	r.before = nil
}

// Forget forgets an Instance that no longer exists.
func (w *Watches) Forget(instance types.NamespacedName) {
	w.mu.Lock()
	defer w.mu.Unlock()
	r := w.reads[instance]
	if r == nil {
		return
	}
	for _, set := range []map[key]bool{r.before, r.now} {
		for o := range set {
			w.unfollow(instance, o)
		}
	}
	delete(w.reads, instance)
}

func (w *Watches) unfollow(instance types.NamespacedName, o key) {
	delete(w.readers[o], instance)
	if len(w.readers[o]) == 0 {
		delete(w.readers, o)
	}
}
