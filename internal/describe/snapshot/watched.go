package snapshot

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"reflect"
	"strings"
	"sync"
	"sync/atomic"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	apimeta "k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/rest"
	toolscache "k8s.io/client-go/tools/cache"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/apiutil"

	"github.com/spillway-dev/spillway/internal/config/content"
	"github.com/spillway-dev/spillway/internal/kube"
)

// Watched is a client that reads a kind once, and from then on keeps up with it by a
// watch: however often it is read, the API server is not asked again. What it holds
// is what the caller may list, in a namespace or in all; of ConfigMaps and Secrets it
// holds digests, as the manager's cache does.
type Watched struct {
	client.Client

	cache     cache.Cache
	namespace string
	changed   chan struct{}
	hashed    content.HashCache
	// isCut is true from when a watch could not be made until the API server answers again.
	isCut *atomic.Bool
	// wide is of all namespaces, for what must be read there though one namespace is watched.
	wide func() (*Watched, error)

	mu    sync.Mutex
	kinds map[form]*watchedKind
	lists map[kindIn]listedAt
}

// form is a kind in one of the forms that a client has for it.
type form struct {
	schema.GroupVersionKind

	of string
}

// watchedKind is a kind: whether it is watched, or why it may not be.
type watchedKind struct {
	mu   sync.Mutex
	done bool
	err  error
	// changes counts what has happened to its objects since all of them were listed.
	changes atomic.Int64

	// previewed is closed once the first page was asked for; page is nil if it was refused.
	previewed chan struct{}
	preview   sync.Once
	page      client.ObjectList
}

// Watch is one of a namespace, of all if it is empty. It keeps up until the context
// ends.
func Watch(ctx context.Context, at *rest.Config, live client.Client, namespace string) (*Watched, error) {
	m, err := newWatched(ctx, at, live, namespace, make(chan struct{}, 1))
	if err != nil {
		return nil, err
	}
	m.wide = sync.OnceValues(func() (*Watched, error) { return newWatched(ctx, at, live, "", m.changed) })
	return m, nil
}

func newWatched(ctx context.Context, at *rest.Config, live client.Client, namespace string, changed chan struct{}) (*Watched, error) {
	isCut := &atomic.Bool{}
	options := cache.Options{
		Scheme: live.Scheme(), Mapper: live.RESTMapper(), DefaultTransform: stripped,
		ByObject: map[client.Object]cache.ByObject{
			&corev1.Secret{}: {Field: fields.OneTermNotEqualSelector("type", helmType)},
		},
		// Errors are retried; readers get what was read last.
		DefaultWatchErrorHandler: func(context.Context, *toolscache.Reflector, error) {
			isCut.Store(true)
			touch(changed)
		},
	}
	if namespace != "" {
		options.DefaultNamespaces = map[string]cache.Config{namespace: {}}
	}
	watched, err := cache.New(at, options)
	if err != nil {
		return nil, fmt.Errorf("prepare to watch the cluster: %w", err)
	}
	m := &Watched{
		Client: live, cache: watched, namespace: namespace, changed: changed, isCut: isCut, kinds: map[form]*watchedKind{}, lists: map[kindIn]listedAt{},
	}
	go func() { _ = watched.Start(ctx) }() // it fails only if it is started twice
	if !watched.WaitForCacheSync(ctx) {    // with no kind in it yet, it must be started
		return nil, fmt.Errorf("prepare to watch the cluster: %w", ctx.Err())
	}
	return m, nil
}

// Changed says that something may have changed since the last look.
func (m *Watched) Changed() <-chan struct{} { return m.changed }

// Reaches is an error if the API server does not answer. It is asked only once a watch could
// not be made: what is read until then may be old.
func (m *Watched) Reaches(ctx context.Context) error {
	if !m.isCut.Load() {
		return nil
	}
	one := kube.MetadataList(corev1.SchemeGroupVersion.WithKind("ConfigMapList"))
	err := m.Client.List(ctx, one, client.InNamespace(m.namespace), client.Limit(1))
	if err == nil || isAnswer(err) {
		m.isCut.Store(false)
		return nil
	}
	return fmt.Errorf("reach the API server: %w", err)
}

// stripped is an object without what is not used, and without values that must not be kept.
func stripped(obj any) (any, error) {
	o, ok := obj.(client.Object)
	if !ok {
		return obj, nil
	}
	if !isAttributed(o) {
		o.SetManagedFields(nil)
	}
	if annotations := o.GetAnnotations(); annotations[corev1.LastAppliedConfigAnnotation] != "" {
		delete(annotations, corev1.LastAppliedConfigAnnotation) // of a Secret it is all of it
		o.SetAnnotations(annotations)
	}
	digest(o)
	return obj, nil
}

// digest is [content.Digest], and keeps the labels and marks by which annotations of Reloader choose objects: a
// mark is "true", and no value.
func digest(o client.Object) {
	if content.IsDigested(o) {
		return
	}
	labels, marks := o.GetLabels(), map[string]string{}
	for name, value := range o.GetAnnotations() {
		if value == "true" {
			marks[name] = value
		}
	}
	content.Digest(o)
	if !content.IsDigested(o) {
		return
	}
	maps.Copy(marks, o.GetAnnotations())
	o.SetLabels(labels)
	o.SetAnnotations(marks)
}

// Values implements [content.Reduced].
func (m *Watched) Values() client.Reader { return values{m} }

// Hashed implements [content.Reduced].
func (m *Watched) Hashed() *content.HashCache { return &m.hashed }

// values asks the API server, and has readers read again if it does not answer.
type values struct{ *Watched }

// Get implements [client.Reader].
func (v values) Get(ctx context.Context, key client.ObjectKey, obj client.Object, opts ...client.GetOption) error {
	return v.heard(v.Client.Get(ctx, key, obj, opts...))
}

// List implements [client.Reader].
func (v values) List(ctx context.Context, list client.ObjectList, opts ...client.ListOption) error {
	return v.heard(v.Client.List(ctx, list, opts...))
}

func (v values) heard(err error) error {
	if err != nil && !isAnswer(err) {
		v.Touch()
	}
	return err
}

// Get implements [client.Reader].
func (m *Watched) Get(ctx context.Context, key client.ObjectKey, obj client.Object, opts ...client.GetOption) error {
	return m.get(ctx, m.keptOf(ctx, key, obj), key, obj, opts...)
}

// List implements [client.Reader]. It gives all there is, whatever the page. What it lists is
// shared, and must not be changed.
func (m *Watched) List(ctx context.Context, list client.ObjectList, opts ...client.ListOption) error {
	wanted := (&client.ListOptions{}).ApplyOptions(opts)
	of, kind, err := m.keptList(ctx, list, wanted)
	switch {
	case err != nil:
		return err
	case kind == nil:
		return m.Client.List(ctx, list, opts...) //nolint:wrapcheck // stands in for the client
	}
	all := []client.ListOption{client.InNamespace(wanted.Namespace), client.UnsafeDisableDeepCopy}
	if wanted.LabelSelector != nil {
		all = append(all, client.MatchingLabelsSelector{Selector: wanted.LabelSelector})
	}
	err = of.cache.List(ctx, list, all...)
	list.SetContinue("") // the cache says there that it has no pages
	return err           //nolint:wrapcheck // stands in for the client
}

// holds is true of the namespace that is watched.
func (m *Watched) holds(namespace string) bool { return m.namespace == "" || m.namespace == namespace }

// isUntyped is true of the forms that say themselves what kind they are of.
func isUntyped(obj client.Object) bool {
	switch obj.(type) {
	case *unstructured.Unstructured, *metav1.PartialObjectMetadata:
		return true
	}
	return false
}

// itemOf is an empty object of the kind of a list, in the same form; nil if there is none.
func (m *Watched) itemOf(list client.ObjectList) client.Object {
	gvk, err := apiutil.GVKForObject(list, m.Scheme())
	if err != nil || len(gvk.Kind) <= len("List") {
		return nil
	}
	gvk.Kind = strings.TrimSuffix(gvk.Kind, "List")
	switch list.(type) {
	case *unstructured.UnstructuredList:
		u := &unstructured.Unstructured{}
		u.SetGroupVersionKind(gvk)
		return u
	case *metav1.PartialObjectMetadataList:
		p := kube.Metadata(gvk)
		return p
	}
	made, err := m.Scheme().New(gvk)
	if err != nil {
		return nil
	}
	obj, _ := made.(client.Object)
	return obj
}

// Begin begins to keep up with kinds, all at the same time, and does not wait: each takes a
// moment, and readers ask for one after another. Who reads one receives the error if it is forbidden.
func (m *Watched) Begin(ctx context.Context, kinds ...client.Object) {
	for _, kind := range kinds {
		go func() { _, _ = m.keep(ctx, kind, nil) }()
	}
}

// keep begins to keep up with a kind, the first time that it is asked for. Like is a
// list of the kind in the form of the object; nil if that has a type.
func (m *Watched) keep(ctx context.Context, obj client.Object, like client.ObjectList) (*watchedKind, error) {
	gvk, err := apiutil.GVKForObject(obj, m.Scheme())
	if err != nil {
		return nil, fmt.Errorf("watch %T: %w", obj, err)
	}
	kind := m.kind(gvk, obj)
	kind.mu.Lock()
	defer kind.mu.Unlock()
	if kind.done {
		return kind, kind.err
	}
	kind.err = m.begin(ctx, kind, gvk, obj, like)
	kind.done = kind.err == nil || isAnswer(kind.err)
	return kind, kind.err
}

// kind is what is known of a kind in the form of an object.
func (m *Watched) kind(gvk schema.GroupVersionKind, obj client.Object) *watchedKind {
	m.mu.Lock()
	defer m.mu.Unlock()
	key := form{gvk, fmt.Sprintf("%T", obj)}
	if m.kinds[key] == nil {
		m.kinds[key] = &watchedKind{previewed: make(chan struct{})}
	}
	return m.kinds[key]
}

// Preview sets a list to the first page of its kind, which is known long before all of it is listed.
// It is false of kinds and namespaces that have none, and of what may not be listed.
func (m *Watched) Preview(ctx context.Context, list client.ObjectList, namespace string) bool {
	obj := m.itemOf(list)
	if obj == nil || firstPage(obj) == 1 || namespace != m.namespace {
		return false
	}
	gvk, err := apiutil.GVKForObject(obj, m.Scheme())
	if err != nil {
		return false
	}
	m.Begin(ctx, obj)
	kind := m.kind(gvk, obj)
	select {
	case <-ctx.Done():
		return false
	case <-kind.previewed:
	}
	page := reflect.ValueOf(kind.page)
	if kind.page == nil || page.Type() != reflect.TypeOf(list) {
		return false
	}
	reflect.ValueOf(list).Elem().Set(page.Elem())
	return true
}

// firstPage is how many objects of a kind are read to know whether it may be listed: of workloads
// as many as a large terminal shows.
func firstPage(obj client.Object) int64 {
	switch obj.(type) {
	case *appsv1.Deployment, *appsv1.StatefulSet, *appsv1.DaemonSet:
		return 100
	}
	return 1
}

// isAnswer is true of an error that the same question would get again.
func isAnswer(err error) bool {
	return apierrors.IsForbidden(err) || apierrors.IsUnauthorized(err) || apierrors.IsNotFound(err) || apimeta.IsNoMatchError(err)
}

// begin asks whether the kind may be listed, since a watch would try for ever; and then
// waits until all of it is listed.
func (m *Watched) begin(ctx context.Context, kind *watchedKind, gvk schema.GroupVersionKind, obj client.Object, like client.ObjectList) error {
	page := newList(m.Scheme(), gvk)
	if like != nil {
		page = emptyLike(like)
	}
	if page == nil {
		return errors.New(gvk.Kind + " has no list")
	}
	err := m.Client.List(ctx, page, client.InNamespace(m.namespace), client.Limit(firstPage(obj)))
	kind.preview.Do(func() {
		if err == nil {
			kind.page = page
		}
		close(kind.previewed)
	})
	if err != nil {
		return err //nolint:wrapcheck // stands in for the client
	}
	informer, err := m.cache.GetInformer(ctx, obj)
	if err != nil {
		return fmt.Errorf("watch %s: %w", gvk.Kind, err)
	}
	changed := func() {
		kind.changes.Add(1)
		m.Touch()
	}
	_, err = informer.AddEventHandler(toolscache.ResourceEventHandlerDetailedFuncs{
		AddFunc: func(_ any, isInitial bool) {
			if !isInitial { // readers wait for those of the first list
				changed()
			}
		},
		UpdateFunc: func(_, _ any) { changed() },
		DeleteFunc: func(any) { changed() },
	})
	if err != nil {
		return fmt.Errorf("watch %s: %w", gvk.Kind, err)
	}
	return nil
}

// Touch reports a change, so that readers read again.
func (m *Watched) Touch() { touch(m.changed) }

func touch(changed chan<- struct{}) {
	select {
	case changed <- struct{}{}:
	default: // a change is reported already
	}
}
