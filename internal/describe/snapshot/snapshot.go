package snapshot

import (
	"context"
	"fmt"
	"reflect"
	"slices"
	"strings"
	"sync"
	"sync/atomic"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	apimeta "k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/apiutil"

	"github.com/spillway-dev/spillway/internal/config/content"
	"github.com/spillway-dev/spillway/internal/fleet/hub"
)

const (
	// Singly is how many objects of a kind are asked for one by one, before all of them
	// are listed together.
	Singly = 20
	// PageSize is how many objects a page of a list has at most.
	PageSize = 1000
	// helmPrefix begins the names of the Secrets in which Helm keeps whole releases:
	// large ones, and no config of anybody's. They are not listed.
	helmPrefix, helmType = "sh.helm.release.v1.", "helm.sh/release.v1"
)

// Snapshot is a reader that asks for each list once, and for a list instead of more than
// a few objects of a kind; so what it costs depends on the kinds, not on the objects.
// It may be used concurrently. What it lists is shared, and must not be changed.
type Snapshot struct {
	Live   client.Reader
	Scheme *runtime.Scheme
	// namespace is the one that everything is in; empty if all are looked at, so that a
	// list of one namespace is part of the list of all.
	namespace string

	mu    sync.Mutex
	kinds map[kindIn]*kindSeen
}

// kindIn is a kind in a namespace, in all if that is empty, in one of the forms that a
// client has for it.
type kindIn struct {
	schema.GroupVersionKind

	form, namespace string
}

// kindSeen is what was seen of it.
type kindSeen struct {
	// asked is how many objects were asked for by name.
	asked int

	load sync.Once
	// listed is true from when a caller has begun to list them.
	listed atomic.Bool
	err    error
	list   client.ObjectList
	// objects are those of the list by namespace, and named by name in it.
	objects map[string][]client.Object
	named   map[client.ObjectKey]client.Object
}

// Get implements [client.Reader]. The object is the caller's own, unless that is not needed.
func (s *Snapshot) Get(ctx context.Context, key client.ObjectKey, obj client.Object, opts ...client.GetOption) error {
	list := s.listFor(obj)
	if list == nil || isHelms(key, obj) {
		return s.Live.Get(ctx, key, obj, opts...) //nolint:wrapcheck // stands in for the reader
	}
	seen, err := s.seen(list, key.Namespace)
	if err != nil {
		return err
	}
	if s.isFew(seen) || seen.loaded(ctx, s.Live, list, s.scope(key.Namespace)) != nil { // perhaps only lists are forbidden
		return s.Live.Get(ctx, key, obj, opts...) //nolint:wrapcheck // stands in for the reader
	}
	found, ok := seen.named[key]
	if !ok {
		return apierrors.NewNotFound(schema.GroupResource{Resource: strings.ToLower(reflect.TypeOf(obj).Elem().Name())}, key.Name) //nolint:wrapcheck // as a client answers
	}
	if isShared := (&client.GetOptions{}).ApplyOptions(opts).UnsafeDisableDeepCopy; isShared == nil || !*isShared {
		found, _ = found.DeepCopyObject().(client.Object)
	}
	reflect.ValueOf(obj).Elem().Set(reflect.ValueOf(found).Elem())
	return nil
}

// Values implements [content.Reduced]. What it reads is kept as long as the snapshot.
func (s *Snapshot) Values() client.Reader {
	if reduced, ok := s.Live.(content.Reduced); ok {
		return New(reduced.Values(), s.Scheme, s.namespace)
	}
	return s
}

// Hashed implements [content.Reduced].
func (s *Snapshot) Hashed() *content.HashCache {
	if reduced, ok := s.Live.(content.Reduced); ok {
		return reduced.Hashed()
	}
	return nil
}

// listFor is an empty list of the kind of an object, nil if there is none.
func (s *Snapshot) listFor(obj client.Object) client.ObjectList {
	switch obj.(type) {
	case *unstructured.Unstructured, *metav1.PartialObjectMetadata:
		return nil
	}
	gvk, err := apiutil.GVKForObject(obj, s.Scheme)
	if err != nil {
		return nil
	}
	made, err := s.Scheme.New(gvk.GroupVersion().WithKind(gvk.Kind + "List"))
	if err != nil {
		return nil
	}
	list, _ := made.(client.ObjectList)
	return list
}

// isFew is true as long as one object more is better asked for by its name.
func (s *Snapshot) isFew(seen *kindSeen) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	seen.asked++
	return seen.asked <= Singly && !seen.listed.Load()
}

// loaded lists the kind, page by page, the first time that it is called.
func (k *kindSeen) loaded(ctx context.Context, live client.Reader, page client.ObjectList, namespace string) error {
	k.load.Do(func() {
		k.listed.Store(true)
		k.objects, k.named = map[string][]client.Object{}, map[client.ObjectKey]client.Object{}
		for more := ""; k.list == nil || more != ""; more = k.list.GetContinue() {
			page := emptyLike(page)
			opts := []client.ListOption{client.InNamespace(namespace), client.Limit(PageSize), client.Continue(more), notHelms(page)}
			if k.err = live.List(ctx, page, opts...); k.err != nil {
				return
			}
			k.list = page
			if k.err = apimeta.EachListItem(page, k.add); k.err != nil {
				return
			}
		}
	})
	return k.err
}

// List implements [client.Reader].
func (s *Snapshot) List(ctx context.Context, list client.ObjectList, opts ...client.ListOption) error {
	wanted := (&client.ListOptions{}).ApplyOptions(opts)
	if wanted.FieldSelector != nil || wanted.Raw != nil {
		return s.Live.List(ctx, list, opts...) //nolint:wrapcheck // stands in for the reader
	}
	seen, err := s.seen(list, wanted.Namespace)
	if err != nil {
		return err
	}
	if err := seen.loaded(ctx, s.Live, emptyLike(list), s.scope(wanted.Namespace)); err != nil {
		return err
	}
	var matching []runtime.Object
	for _, obj := range seen.objects[wanted.Namespace] {
		if wanted.LabelSelector == nil || wanted.LabelSelector.Matches(labels.Set(obj.GetLabels())) {
			matching = append(matching, obj)
		}
	}
	list.SetResourceVersion(seen.list.GetResourceVersion())
	if err := apimeta.SetList(list, matching); err != nil {
		return fmt.Errorf("hand on a list: %w", err)
	}
	return nil
}

// seen is what was read of a kind in a namespace.
func (s *Snapshot) seen(list client.ObjectList, namespace string) (*kindSeen, error) {
	gvk, err := apiutil.GVKForObject(list, s.Scheme)
	if err != nil {
		return nil, fmt.Errorf("list %T: %w", list, err)
	}
	key := kindIn{gvk, reflect.TypeOf(list).String(), s.scope(namespace)}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.kinds[key] == nil {
		s.kinds[key] = &kindSeen{}
	}
	return s.kinds[key], nil
}

// scope is the namespace to list for one that is asked for.
func (s *Snapshot) scope(namespace string) string {
	if s.namespace == "" {
		return ""
	}
	return namespace
}

func (k *kindSeen) add(item runtime.Object) error {
	obj, ok := item.(client.Object)
	if !ok {
		return fmt.Errorf("%T is in a list, and no object", item)
	}
	if len(obj.GetManagedFields()) > 0 && !isAttributed(obj) {
		obj.SetManagedFields(nil) // most of an object, and not used
	}
	if obj.GetNamespace() != "" {
		k.objects[obj.GetNamespace()] = append(k.objects[obj.GetNamespace()], obj)
	}
	k.objects[""] = append(k.objects[""], obj)
	k.named[client.ObjectKeyFromObject(obj)] = obj
	return nil
}

// isAttributed is true of the kinds of which is said who has written them.
func isAttributed(obj client.Object) bool {
	return slices.ContainsFunc(hub.Attributed(), func(kind client.Object) bool { return reflect.TypeOf(kind) == reflect.TypeOf(obj) })
}

// emptyLike is an empty list of the same kind and form.
func emptyLike(list client.ObjectList) client.ObjectList {
	fresh, ok := reflect.TypeAssert[client.ObjectList](reflect.New(reflect.TypeOf(list).Elem()))
	if !ok {
		return list
	}
	fresh.GetObjectKind().SetGroupVersionKind(list.GetObjectKind().GroupVersionKind())
	return fresh
}

// New returns an empty snapshot of a namespace, or of all if none is named.
func New(live client.Reader, scheme *runtime.Scheme, namespace string) *Snapshot {
	return &Snapshot{Live: live, Scheme: scheme, namespace: namespace, kinds: map[kindIn]*kindSeen{}}
}

// notHelms leaves out what Helm keeps, which may be a great deal.
func notHelms(list client.ObjectList) client.ListOption {
	if _, ok := list.(*corev1.SecretList); !ok {
		return client.MatchingLabels{}
	}
	return client.MatchingFieldsSelector{Selector: fields.OneTermNotEqualSelector("type", helmType)}
}

func isHelms(key client.ObjectKey, obj client.Object) bool {
	_, isSecret := obj.(*corev1.Secret)
	return isSecret && strings.HasPrefix(key.Name, helmPrefix)
}
