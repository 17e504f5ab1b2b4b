package barrier

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"sync"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	toolscache "k8s.io/client-go/tools/cache"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/apiutil"

	"github.com/spillway-dev/spillway/internal/ring"
)

// observedCache sees which handlers there are.
type observedCache struct {
	cache.Cache

	under   *Manager
	options cache.Options
}

func (m *Manager) observe(seen cache.Cache, o cache.Options) cache.Cache {
	return observedCache{Cache: seen, under: m, options: o}
}

// GetInformer implements [cache.Cache].
func (c observedCache) GetInformer(ctx context.Context, obj client.Object, opts ...cache.InformerGetOption) (cache.Informer, error) {
	informer, err := c.Cache.GetInformer(ctx, obj, opts...)
	if err != nil {
		return nil, err //nolint:wrapcheck // it stands in for the cache
	}
	kind, err := apiutil.GVKForObject(obj, c.options.Scheme)
	return observedInformer{informer, c, kind}, err //nolint:wrapcheck // as above
}

type observedInformer struct {
	cache.Informer

	of   observedCache
	kind schema.GroupVersionKind
}

// AddEventHandler implements [cache.Informer].
func (i observedInformer) AddEventHandler(h toolscache.ResourceEventHandler) (toolscache.ResourceEventHandlerRegistration, error) {
	return i.AddEventHandlerWithOptions(h, toolscache.HandlerOptions{})
}

// AddEventHandlerWithResyncPeriod implements [cache.Informer].
func (i observedInformer) AddEventHandlerWithResyncPeriod(h toolscache.ResourceEventHandler, every time.Duration) (toolscache.ResourceEventHandlerRegistration, error) {
	return i.AddEventHandlerWithOptions(h, toolscache.HandlerOptions{ResyncPeriod: &every})
}

// AddEventHandlerWithOptions implements [cache.Informer].
func (i observedInformer) AddEventHandlerWithOptions(h toolscache.ResourceEventHandler, o toolscache.HandlerOptions) (toolscache.ResourceEventHandlerRegistration, error) {
	v := &view{ResourceEventHandler: h, informer: i.Informer, kind: i.kind, lists: listsOf(i.of.options, i.kind), versions: map[types.UID]string{}}
	var err error
	v.registration, err = i.Informer.AddEventHandlerWithOptions(v, o)
	m := i.of.under
	m.mu.Lock()
	defer m.mu.Unlock()
	m.views = append(m.views, v)
	return v.registration, err //nolint:wrapcheck // it stands in for the informer
}

// RemoveEventHandler implements [cache.Informer].
func (i observedInformer) RemoveEventHandler(r toolscache.ResourceEventHandlerRegistration) error {
	m := i.of.under
	m.mu.Lock()
	m.views = slices.DeleteFunc(slices.Clone(m.views), func(v *view) bool { return v.registration == r })
	m.mu.Unlock()
	return i.Informer.RemoveEventHandler(r) //nolint:wrapcheck // it stands in for the informer
}

// listsOf are the options of lists that show what an informer of a kind does.
func listsOf(o cache.Options, kind schema.GroupVersionKind) (lists []client.ListOptions) {
	namespaces, by := o.DefaultNamespaces, cache.ByObject{Label: o.DefaultLabelSelector, Field: o.DefaultFieldSelector}
	for obj, own := range o.ByObject {
		if of, err := apiutil.GVKForObject(obj, o.Scheme); err == nil && of == kind {
			by.Label, by.Field = cmp.Or(own.Label, by.Label), cmp.Or(own.Field, by.Field)
			if own.Namespaces != nil {
				namespaces = own.Namespaces
			}
		}
	}
	if len(namespaces) == 0 {
		namespaces = map[string]cache.Config{metav1.NamespaceAll: {}}
	}
	for namespace, c := range namespaces {
		lists = append(lists, client.ListOptions{
			Namespace: namespace, LabelSelector: cmp.Or(c.LabelSelector, by.Label), FieldSelector: cmp.Or(c.FieldSelector, by.Field),
		})
	}
	return lists
}

// view is what an event handler was called for.
type view struct {
	toolscache.ResourceEventHandler

	informer     cache.Informer
	kind         schema.GroupVersionKind
	lists        []client.ListOptions
	registration toolscache.ResourceEventHandlerRegistration

	mu sync.Mutex
	// versions are those of the objects that exist, as far as the handler knows.
	versions map[types.UID]string
	events   int
}

// OnAdd implements [toolscache.ResourceEventHandler].
func (v *view) OnAdd(obj any, initial bool) {
	v.ResourceEventHandler.OnAdd(obj, initial)
	v.note(nil, obj)
}

// OnUpdate implements [toolscache.ResourceEventHandler].
func (v *view) OnUpdate(before, after any) {
	v.ResourceEventHandler.OnUpdate(before, after)
	v.note(before, after)
}

// OnDelete implements [toolscache.ResourceEventHandler].
func (v *view) OnDelete(obj any) {
	v.ResourceEventHandler.OnDelete(obj)
	if last, ok := obj.(toolscache.DeletedFinalStateUnknown); ok {
		obj = last.Obj
	}
	v.note(obj, nil)
}

// note notes that an object has become another one, or none.
func (v *view) note(before, after any) {
	v.mu.Lock()
	defer v.mu.Unlock()
	v.events++
	if o, ok := before.(metav1.Object); ok {
		delete(v.versions, o.GetUID())
	}
	if o, ok := after.(metav1.Object); ok {
		v.versions[o.GetUID()] = o.GetResourceVersion()
	}
}

func (v *view) handled() int {
	v.mu.Lock()
	defer v.mu.Unlock()
	return v.events
}

// level is nil if the handler was called for all that exists, and for all that does no more.
func (v *view) level(ctx context.Context, live client.Client) error {
	if v.informer.IsStopped() {
		return nil // it has no handlers any more
	}
	exist := map[types.UID]bool{}
	asOf := ""
	for i := range v.lists {
		list := &metav1.PartialObjectMetadataList{}
		list.SetGroupVersionKind(v.kind.GroupVersion().WithKind(v.kind.Kind + "List"))
		if err := live.List(ctx, list, &v.lists[i]); err != nil {
			return fmt.Errorf("list every %s: %w", v.kind.Kind, err)
		}
		for j := range list.Items {
			exist[list.Items[j].UID] = true
			if err := v.shows(&list.Items[j]); err != nil {
				return err
			}
		}
		if asOf == "" {
			asOf = list.ResourceVersion
		}
	}
	v.mu.Lock()
	defer v.mu.Unlock()
	for uid, version := range v.versions {
		if !exist[uid] && !ring.Older(asOf, version) {
			return fmt.Errorf("a %s, version %s, no longer exists, and is still observed", v.kind.Kind, version)
		}
	}
	return nil
}

func (v *view) shows(o *metav1.PartialObjectMetadata) error {
	v.mu.Lock()
	defer v.mu.Unlock()
	if seen, ok := v.versions[o.UID]; !ok || ring.Older(seen, o.ResourceVersion) {
		return fmt.Errorf("%s %s is not observed: version %s, and observed as %q", v.kind.Kind, o.Name, o.ResourceVersion, seen)
	}
	return nil
}
