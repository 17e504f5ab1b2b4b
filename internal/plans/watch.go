package plans

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"sync"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/predicate"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
	"sigs.k8s.io/controller-runtime/pkg/source"

	"github.com/spillway-dev/spillway/internal/kube"
	"github.com/spillway-dev/spillway/internal/vocabulary"
)

// watchTimeout is how long a watch may take to begin.
const watchTimeout = 20 * time.Second

// instanceMatters leaves out updates of the status, which nobody but the ring
// writes; who writes one that is not the newest learns that by a conflict.
func instanceMatters() predicate.Predicate {
	return predicate.Funcs{UpdateFunc: func(e event.UpdateEvent) bool {
		a, b := e.ObjectOld, e.ObjectNew
		return a.GetResourceVersion() == b.GetResourceVersion() || a.GetUID() != b.GetUID() || a.GetGeneration() != b.GetGeneration() ||
			!maps.Equal(a.GetAnnotations(), b.GetAnnotations()) || !slices.Equal(a.GetFinalizers(), b.GetFinalizers())
	}}
}

// watches wake Instances up when an object changes that they have looked at. A
// kind is watched, by the metadata of its objects alone, from the moment on at
// which the first of them is looked at.
type watches struct {
	controller controller.Controller
	// marked and all are caches of metadata: of what carries the label of what plans
	// apply, and of everything.
	marked, all cache.Cache
	live        client.Reader
	namespaces  []string

	// starting guards controller and started.
	starting sync.Mutex
	started  map[watchedKind]bool

	mu      sync.Mutex
	seekers map[object]map[types.NamespacedName]bool
	sought  map[types.NamespacedName]*sought
}

type watchedKind struct {
	schema.GroupVersionKind

	marked bool
}

// object is what a watch tells of: an object, whatever the version of its group.
type object struct {
	kind schema.GroupKind
	types.NamespacedName
}

// sought are the objects that an Instance has looked at in its last pass, and in
// the one that is under way.
type sought struct{ before, now map[object]bool }

func newWatches(mgr ctrl.Manager, o Options) (*watches, error) {
	w := &watches{
		live: mgr.GetAPIReader(), namespaces: o.Namespaces, started: map[watchedKind]bool{},
		seekers: map[object]map[types.NamespacedName]bool{}, sought: map[types.NamespacedName]*sought{},
	}
	var err error
	if w.marked, err = newMetadataCache(mgr, o, labels.SelectorFromSet(labels.Set{vocabulary.Heritage: vocabulary.HeritageOf})); err != nil {
		return nil, err
	}
	w.all, err = newMetadataCache(mgr, o, labels.Everything())
	return w, err
}

func newMetadataCache(mgr ctrl.Manager, o Options, selector labels.Selector) (cache.Cache, error) {
	options := cache.Options{
		HTTPClient: mgr.GetHTTPClient(), Scheme: mgr.GetScheme(), Mapper: mgr.GetRESTMapper(),
		DefaultLabelSelector: selector, DefaultTransform: kube.Identify,
	}
	if len(o.Namespaces) > 0 {
		options.DefaultNamespaces = map[string]cache.Config{}
		for _, namespace := range o.Namespaces {
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

func (w *watches) begin(instance types.NamespacedName) {
	w.mu.Lock()
	defer w.mu.Unlock()
	s := w.sought[instance]
	if s == nil {
		s = &sought{}
		w.sought[instance] = s
	}
	if s.before == nil {
		s.before = map[object]bool{}
	}
	maps.Copy(s.before, s.now) // of a pass that was not ended
	s.now = map[object]bool{}
}

func (w *watches) follow(ctx context.Context, instance types.NamespacedName, ref Ref, marked bool) error {
	w.note(instance, object{ref.GroupKind(), types.NamespacedName{Namespace: ref.Namespace, Name: ref.Name}})
	return w.watch(ctx, watchedKind{ref.GroupVersionKind, marked})
}

func (w *watches) note(instance types.NamespacedName, o object) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if s := w.sought[instance]; s != nil {
		s.now[o] = true
	}
	if w.seekers[o] == nil {
		w.seekers[o] = map[types.NamespacedName]bool{}
	}
	w.seekers[o][instance] = true
}

func (w *watches) end(instance types.NamespacedName) {
	w.mu.Lock()
	defer w.mu.Unlock()
	s := w.sought[instance]
	if s == nil {
		return
	}
	for o := range s.before {
		if !s.now[o] {
			w.unfollow(instance, o)
		}
	}
	s.before = nil
}

func (w *watches) unfollow(instance types.NamespacedName, o object) {
	delete(w.seekers[o], instance)
	if len(w.seekers[o]) == 0 {
		delete(w.seekers, o)
	}
}

func (w *watches) forget(instance types.NamespacedName) {
	w.mu.Lock()
	defer w.mu.Unlock()
	s := w.sought[instance]
	if s == nil {
		return
	}
	for _, set := range []map[object]bool{s.before, s.now} {
		for o := range set {
			w.unfollow(instance, o)
		}
	}
	delete(w.sought, instance)
}

// watch begins to watch a kind, and returns once it is watched: an object that is
// read from then on does not go without notice.
func (w *watches) watch(ctx context.Context, kind watchedKind) error {
	w.starting.Lock()
	defer w.starting.Unlock()
	if w.started[kind] {
		return nil
	}
	if err := w.mayWatch(ctx, kind); err != nil {
		return notFoundOrNil(err, "watch "+kind.Kind+", for which permission to get, list, watch, create, patch and delete is needed")
	}
	metadata := w.all
	if kind.marked {
		metadata = w.marked
	}
	m := &metav1.PartialObjectMetadata{}
	m.SetGroupVersionKind(kind.GroupVersionKind)
	watched := source.Kind(metadata, client.Object(m), handler.EnqueueRequestsFromMapFunc(w.toSeekers(kind.GroupKind())))
	if err := w.controller.Watch(watched); err != nil {
		return fmt.Errorf("watch %s: %w", kind.Kind, err)
	}
	ctx, cancel := context.WithTimeout(ctx, watchTimeout)
	defer cancel()
	if err := watched.WaitForSync(ctx); err != nil {
		return fmt.Errorf("watch %s: %w", kind.Kind, err)
	}
	w.started[kind] = true
	return nil
}

// mayWatch asks for the permission in the only way that tells: by a list.
func (w *watches) mayWatch(ctx context.Context, kind watchedKind) error {
	list := &metav1.PartialObjectMetadataList{}
	list.SetGroupVersionKind(kind.GroupVersion().WithKind(kind.Kind + "List"))
	for _, namespace := range w.within() {
		if err := w.live.List(ctx, list, client.Limit(1), client.InNamespace(namespace)); err != nil {
			return err //nolint:wrapcheck // the caller says what it is about
		}
	}
	return nil
}

// within are the namespaces to look at; the empty one is all of them.
func (w *watches) within() []string {
	if len(w.namespaces) == 0 {
		return []string{metav1.NamespaceAll}
	}
	return w.namespaces
}

func (w *watches) toSeekers(kind schema.GroupKind) handler.MapFunc {
	return func(_ context.Context, obj client.Object) []reconcile.Request {
		w.mu.Lock()
		defer w.mu.Unlock()
		var requests []reconcile.Request
		for instance := range w.seekers[object{kind, client.ObjectKeyFromObject(obj)}] {
			requests = append(requests, reconcile.Request{NamespacedName: instance})
		}
		return requests
	}
}
