package watch

import (
	"context"
	"fmt"
	"maps"
	"sync"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
	"sigs.k8s.io/controller-runtime/pkg/source"

	"github.com/spillway-dev/spillway/internal/kube"
)

// syncTimeout is how long a watch may take to start.
const syncTimeout = 20 * time.Second

// Options are the choices of a ring.
type Options struct {
	// Namespaces are those that are watched, all if empty.
	Namespaces []string
	// Marked selects the objects that are followed as marked ones, so that of their kinds
	// no others are watched. Nil if there are none.
	Marked labels.Selector
	// Verbs are what the manager needs to be permitted, as errors name them.
	Verbs string
}

// Object names an object.
type Object struct {
	schema.GroupVersionKind
	types.NamespacedName
}

// Watches know which readers have read which objects. A reader is what the controller
// has requests for. They are safe for concurrent use.
type Watches struct {
	// marked and all are caches of metadata.
	marked, all cache.Cache
	live        client.Reader
	namespaces  []string
	verbs       string

	// starting guards controller and started.
	starting   sync.Mutex
	controller controller.Controller
	started    map[watchedKind]bool

	mu sync.Mutex
	// readers are those that have read an object; reads are the objects that a reader has
	// read.
	readers map[key]map[types.NamespacedName]bool
	reads   map[types.NamespacedName]*reads
	// identities are others than the manager, as which kinds are watched.
	identities map[types.NamespacedName]*identity
	make       func(as Identity, o cache.Options) (cache.Cache, error)
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

// reads are the objects that were read in the last pass, and in the present one; and the
// identities as which.
type reads struct {
	before, now     map[key]bool
	wereAs, readsAs map[types.NamespacedName]bool
	// refused are kinds that must not be watched, as was found in the present pass.
	refused map[refusedKind]error
}

// refusedKind is a kind that the manager must not watch, or the identity of a reader.
type refusedKind struct {
	watchedKind

	identity bool
}

// New returns watches that run with a manager.
func New(mgr ctrl.Manager, o Options) (*Watches, error) {
	w := &Watches{
		live: mgr.GetAPIReader(), namespaces: o.Namespaces, verbs: o.Verbs, started: map[watchedKind]bool{},
		readers: map[key]map[types.NamespacedName]bool{}, reads: map[types.NamespacedName]*reads{}, identities: map[types.NamespacedName]*identity{},
	}
	w.make = func(as Identity, options cache.Options) (cache.Cache, error) {
		if options.DefaultLabelSelector == nil {
			options.DefaultLabelSelector = o.Marked
		}
		options.DefaultNamespaces, options.DefaultTransform = kube.InNamespaces([]string{as.Namespace}), kube.Identify
		return kube.NewCacheAs(mgr, as.Config, options)
	}
	if err := mgr.Add(manager.RunnableFunc(w.stopIdentities)); err != nil {
		return nil, fmt.Errorf("stop watches: %w", err)
	}
	if len(w.namespaces) == 0 {
		w.namespaces = []string{metav1.NamespaceAll}
	}
	var err error
	if o.Marked != nil {
		if w.marked, err = newMetadataCache(mgr, o.Namespaces, o.Marked); err != nil {
			return nil, err
		}
	}
	w.all, err = newMetadataCache(mgr, o.Namespaces, labels.Everything())
	return w, err
}

func newMetadataCache(mgr ctrl.Manager, namespaces []string, selector labels.Selector) (cache.Cache, error) {
	c, err := kube.NewCache(mgr, cache.Options{
		DefaultNamespaces: kube.InNamespaces(namespaces), DefaultLabelSelector: selector, DefaultTransform: kube.Identify,
	})
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

// Forget forgets a reader that no longer exists.
func (w *Watches) Forget(reader types.NamespacedName) {
	w.Begin(reader)
	w.End(reader)
}

// Begin begins a pass of a reader.
func (w *Watches) Begin(reader types.NamespacedName) {
	w.mu.Lock()
	defer w.mu.Unlock()
	r := w.reads[reader]
	if r == nil {
		r = &reads{}
		w.reads[reader] = r
	}
	if r.before == nil {
		r.before = map[key]bool{}
	}
	if r.wereAs == nil {
		r.wereAs = map[types.NamespacedName]bool{}
	}
	maps.Copy(r.before, r.now) // of a pass that did not end
	maps.Copy(r.wereAs, r.readsAs)
	r.now, r.readsAs, r.refused = map[key]bool{}, map[types.NamespacedName]bool{}, map[refusedKind]error{}
}

// Follow wakes the reader up when an object changes. It returns once the kind is
// watched. If it is not, the error says why: the API server does not know the kind, does
// not permit it, or does not answer.
func (w *Watches) Follow(ctx context.Context, reader types.NamespacedName, o Object, marked bool) error {
	w.note(reader, key{o.GroupKind(), o.NamespacedName})
	kind := watchedKind{o.GroupVersionKind, marked}
	if err := w.refusalOf(reader, refusedKind{kind, false}); err != nil {
		return err
	}
	err := w.watch(ctx, kind)
	if apierrors.IsForbidden(err) {
		w.refuse(reader, refusedKind{kind, false}, err)
	}
	return err
}

// refusalOf returns why a kind must not be watched, if that was found in this pass.
func (w *Watches) refusalOf(reader types.NamespacedName, kind refusedKind) error {
	w.mu.Lock()
	defer w.mu.Unlock()
	if r := w.reads[reader]; r != nil {
		return r.refused[kind]
	}
	return nil
}

func (w *Watches) refuse(reader types.NamespacedName, kind refusedKind, why error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if r := w.reads[reader]; r != nil {
		r.refused[kind] = why
	}
}

// Shows is true if the last that the watch of a followed object has said of it is this
// version. A watch of another identity shows none.
func (w *Watches) Shows(ctx context.Context, o Object, marked bool, uid types.UID, resourceVersion string) bool {
	metadata := w.all
	if marked {
		metadata = w.marked
	}
	if !w.isStarted(watchedKind{o.GroupVersionKind, marked}) {
		return false // to ask for it would start it
	}
	m := &metav1.PartialObjectMetadata{}
	m.SetGroupVersionKind(o.GroupVersionKind)
	return metadata.Get(ctx, o.NamespacedName, m) == nil && m.UID == uid && m.ResourceVersion == resourceVersion
}

func (w *Watches) isStarted(kind watchedKind) bool {
	w.starting.Lock()
	defer w.starting.Unlock()
	return w.started[kind]
}

func (w *Watches) note(reader types.NamespacedName, o key) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if r := w.reads[reader]; r != nil {
		r.now[o] = true
	}
	if w.readers[o] == nil {
		w.readers[o] = map[types.NamespacedName]bool{}
	}
	w.readers[o][reader] = true
}

func (w *Watches) watch(ctx context.Context, kind watchedKind) error {
	w.starting.Lock()
	defer w.starting.Unlock()
	if w.started[kind] {
		return nil
	}
	if err := w.mayWatch(ctx, kind); err != nil {
		return fmt.Errorf("watch %s, for which permission to %s is needed: %w", kind.Kind, w.verbs, err)
	}
	metadata := w.all
	if kind.marked {
		metadata = w.marked
	}
	if err := w.start(ctx, w.controller, metadata, kind); err != nil {
		return err
	}
	w.started[kind] = true
	return nil
}

// start starts to watch a kind, and returns once all that exists is known.
func (w *Watches) start(ctx context.Context, c controller.Controller, metadata cache.Cache, kind watchedKind) error {
	m := &metav1.PartialObjectMetadata{}
	m.SetGroupVersionKind(kind.GroupVersionKind)
	watched := source.Kind(metadata, client.Object(m), handler.EnqueueRequestsFromMapFunc(w.toReaders(kind.GroupKind())))
	if err := c.Watch(watched); err != nil {
		return fmt.Errorf("watch %s: %w", kind.Kind, err)
	}
	ctx, cancel := context.WithTimeout(ctx, syncTimeout)
	defer cancel()
	if err := watched.WaitForSync(ctx); err != nil {
		return fmt.Errorf("watch %s: %w", kind.Kind, err)
	}
	return nil
}

// mayWatch lists, because a watch that is forbidden is retried without an error.
func (w *Watches) mayWatch(ctx context.Context, kind watchedKind) error {
	list := &metav1.PartialObjectMetadataList{}
	list.SetGroupVersionKind(kind.GroupVersion().WithKind(kind.Kind + "List"))
	for _, namespace := range w.namespaces {
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
		for reader := range w.readers[key{kind, client.ObjectKeyFromObject(obj)}] {
			requests = append(requests, reconcile.Request{NamespacedName: reader})
		}
		return requests
	}
}

// End ends a pass: objects that the reader has not read in it no longer wake it up.
func (w *Watches) End(reader types.NamespacedName) {
	w.mu.Lock()
	defer w.mu.Unlock()
	r := w.reads[reader]
	if r == nil {
		return
	}
	for o := range r.before {
		if !r.now[o] {
			w.unfollow(reader, o)
		}
	}
	for as := range r.wereAs {
		if !r.readsAs[as] {
			w.leave(reader, as)
		}
	}
	r.before, r.wereAs = nil, nil
	if len(r.now) == 0 && len(r.readsAs) == 0 {
		delete(w.reads, reader)
	}
}

func (w *Watches) unfollow(reader types.NamespacedName, o key) {
	delete(w.readers[o], reader)
	if len(w.readers[o]) == 0 {
		delete(w.readers, o)
	}
}
