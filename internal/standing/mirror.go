package standing

import (
	"context"
	"errors"
	"fmt"
	"sync"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/rest"
	toolscache "k8s.io/client-go/tools/cache"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/apiutil"
)

// Mirror is a client that reads a kind once, and from then on keeps up with it by a
// watch: however often somebody looks, the API server is not asked again. What it holds
// is what the caller may list, in a namespace or in all.
type Mirror struct {
	client.Client

	cache     cache.Cache
	namespace string
	changed   chan struct{}

	mu    sync.Mutex
	kinds map[schema.GroupVersionKind]*mirrored
}

// mirrored is a kind, and why it cannot be mirrored if it cannot.
type mirrored struct {
	once sync.Once
	err  error
}

// NewMirror is one of a namespace, of all if it is empty. It keeps up until the context
// ends.
func NewMirror(ctx context.Context, config *rest.Config, live client.Client, namespace string) (*Mirror, error) {
	options := cache.Options{
		Scheme: live.Scheme(), Mapper: live.RESTMapper(), DefaultTransform: stripped,
		ByObject: map[client.Object]cache.ByObject{
			&corev1.Secret{}: {Field: fields.OneTermNotEqualSelector("type", helmType)},
		},
		// What goes wrong is tried again; whoever looks on sees what was there last.
		DefaultWatchErrorHandler: func(context.Context, *toolscache.Reflector, error) {},
	}
	if namespace != "" {
		options.DefaultNamespaces = map[string]cache.Config{namespace: {}}
	}
	mirror, err := cache.New(config, options)
	if err != nil {
		return nil, fmt.Errorf("prepare to watch the cluster: %w", err)
	}
	m := &Mirror{
		Client: live, cache: mirror, namespace: namespace, changed: make(chan struct{}, 1), kinds: map[schema.GroupVersionKind]*mirrored{},
	}
	go func() { _ = mirror.Start(ctx) }() // it fails only if it is started twice
	if !mirror.WaitForCacheSync(ctx) {    // with no kind in it yet, it has to be started
		return nil, fmt.Errorf("prepare to watch the cluster: %w", ctx.Err())
	}
	return m, nil
}

// Changed says that something may have changed since the last look.
func (m *Mirror) Changed() <-chan struct{} { return m.changed }

// Touch says that somebody has to look again though nothing has changed.
func (m *Mirror) Touch() {
	select {
	case m.changed <- struct{}{}:
	default: // somebody is to look already
	}
}

// stripped is an object without what nobody asks for.
func stripped(obj any) (any, error) {
	if o, ok := obj.(client.Object); ok && !isAttributed(o) {
		o.SetManagedFields(nil)
	}
	return obj, nil
}

// Get implements [client.Reader].
func (m *Mirror) Get(ctx context.Context, key client.ObjectKey, obj client.Object, opts ...client.GetOption) error {
	if !m.holds(obj, key.Namespace) || isHelms(key, obj) {
		return m.Client.Get(ctx, key, obj, opts...) //nolint:wrapcheck // stands in for the client
	}
	if m.mirror(ctx, obj) != nil {
		return m.Client.Get(ctx, key, obj, opts...) //nolint:wrapcheck // perhaps only lists are forbidden
	}
	return m.cache.Get(ctx, key, obj) //nolint:wrapcheck // stands in for the client
}

// List implements [client.Reader]. It gives all there is, whatever the page.
func (m *Mirror) List(ctx context.Context, list client.ObjectList, opts ...client.ListOption) error {
	wanted := (&client.ListOptions{}).ApplyOptions(opts)
	_, secrets := list.(*corev1.SecretList)
	obj := m.itemOf(list)
	if obj == nil || !m.holds(obj, wanted.Namespace) || wanted.FieldSelector != nil && !wanted.FieldSelector.Empty() && !secrets {
		return m.Client.List(ctx, list, opts...) //nolint:wrapcheck // stands in for the client
	}
	if err := m.mirror(ctx, obj); err != nil {
		return err
	}
	all := []client.ListOption{client.InNamespace(wanted.Namespace)}
	if wanted.LabelSelector != nil {
		all = append(all, client.MatchingLabelsSelector{Selector: wanted.LabelSelector})
	}
	err := m.cache.List(ctx, list, all...)
	list.SetContinue("") // the cache says there that it has no pages
	return err           //nolint:wrapcheck // stands in for the client
}

// holds is true of what is in the namespace that is mirrored, in a form that is.
func (m *Mirror) holds(obj client.Object, namespace string) bool {
	switch obj.(type) {
	case *unstructured.Unstructured, *metav1.PartialObjectMetadata:
		return false
	}
	return m.namespace == "" || m.namespace == namespace
}

// itemOf is an empty object of the kind of a list, nil if there is none.
func (m *Mirror) itemOf(list client.ObjectList) client.Object {
	gvk, err := apiutil.GVKForObject(list, m.Scheme())
	if err != nil || len(gvk.Kind) <= len("List") {
		return nil
	}
	made, err := m.Scheme().New(gvk.GroupVersion().WithKind(gvk.Kind[:len(gvk.Kind)-len("List")]))
	if err != nil {
		return nil
	}
	obj, _ := made.(client.Object)
	return obj
}

// mirror begins to keep up with a kind, the first time that it is asked for.
func (m *Mirror) mirror(ctx context.Context, obj client.Object) error {
	gvk, err := apiutil.GVKForObject(obj, m.Scheme())
	if err != nil {
		return fmt.Errorf("mirror %T: %w", obj, err)
	}
	m.mu.Lock()
	if m.kinds[gvk] == nil {
		m.kinds[gvk] = &mirrored{}
	}
	kind := m.kinds[gvk]
	m.mu.Unlock()
	kind.once.Do(func() { kind.err = m.begin(ctx, gvk, obj) })
	return kind.err
}

// begin asks whether the kind may be listed, since a watch would try for ever; and then
// waits until all of it is there.
func (m *Mirror) begin(ctx context.Context, gvk schema.GroupVersionKind, obj client.Object) error {
	list, err := m.Scheme().New(gvk.GroupVersion().WithKind(gvk.Kind + "List"))
	if err != nil {
		return fmt.Errorf("mirror %s: %w", gvk.Kind, err)
	}
	probe, ok := list.(client.ObjectList)
	if !ok {
		return errors.New(gvk.Kind + " has no list")
	}
	if err := m.Client.List(ctx, probe, client.InNamespace(m.namespace), client.Limit(1)); err != nil {
		return err //nolint:wrapcheck // stands in for the client
	}
	informer, err := m.cache.GetInformer(ctx, obj)
	if err != nil {
		return fmt.Errorf("watch %s: %w", gvk.Kind, err)
	}
	_, err = informer.AddEventHandler(toolscache.ResourceEventHandlerFuncs{
		AddFunc: func(any) { m.Touch() }, UpdateFunc: func(_, _ any) { m.Touch() }, DeleteFunc: func(any) { m.Touch() },
	})
	if err != nil {
		return fmt.Errorf("watch %s: %w", gvk.Kind, err)
	}
	return nil
}
