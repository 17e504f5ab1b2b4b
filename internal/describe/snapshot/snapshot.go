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
	// listed are those that were listed, by the type of their objects.
	listed map[typeIn]*kindSeen
}

// keeper is a reader that keeps what was listed from one snapshot to the next, while it is the same.
type keeper interface {
	kept(ctx context.Context, of kindIn, list client.ObjectList) *kindSeen
}

// typeIn is the type of an object, and where it is.
type typeIn struct {
	of        reflect.Type
	namespace string
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
	asked atomic.Int32

	load sync.Once
	// listed is true from when a caller has begun to list them, failed if that was not possible.
	listed, failed atomic.Bool
	err            error
	list           client.ObjectList
	// objects are those of the list by namespace, and named by name in it.
	objects map[string][]client.Object
	named   map[client.ObjectKey]client.Object
}

// Get implements [client.Reader]. The object is the caller's own, unless that is not needed.
func (s *Snapshot) Get(ctx context.Context, key client.ObjectKey, obj client.Object, opts ...client.GetOption) error {
	seen := s.listedFor(ctx, key, obj)
	if seen == nil {
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

// listedFor is the list in which an object is found, nil if it is to be asked for by its name.
func (s *Snapshot) listedFor(ctx context.Context, key client.ObjectKey, obj client.Object) *kindSeen {
	if isHelms(key, obj) {
		return nil
	}
	of := typeIn{reflect.TypeOf(obj), s.scope(key.Namespace)}
	s.mu.Lock()
	seen := s.listed[of]
	s.mu.Unlock()
	if seen != nil {
		return seen
	}
	list := s.listFor(obj)
	if list == nil {
		return nil
	}
	seen, err := s.seen(ctx, list, key.Namespace)
	if err != nil || seen.isFew() || seen.loaded(ctx, s.Live, list, of.namespace) != nil { // perhaps only lists are forbidden
		return nil
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.listed[of] = seen
	return seen
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
	gvk, err := apiutil.GVKForObject(obj, s.Scheme)
	if err != nil || isUntyped(obj) {
		return nil
	}
	return newList(s.Scheme, gvk)
}

// newList is an empty list of a kind, nil if there is none.
func newList(scheme *runtime.Scheme, of schema.GroupVersionKind) client.ObjectList {
	made, err := scheme.New(of.GroupVersion().WithKind(of.Kind + "List"))
	if err != nil {
		return nil
	}
	list, _ := made.(client.ObjectList)
	return list
}

// isFew is true as long as one object more is better asked for by its name.
func (k *kindSeen) isFew() bool { return k.asked.Add(1) <= Singly && !k.listed.Load() }

// loaded lists the kind, page by page, the first time that it is called.
func (k *kindSeen) loaded(ctx context.Context, live client.Reader, page client.ObjectList, namespace string) error {
	k.load.Do(func() {
		k.listed.Store(true)
		defer func() { k.failed.Store(k.err != nil) }()
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

// List implements [client.Reader]. The list is the caller's own, unless that is not needed; what its
// objects point to is shared.
func (s *Snapshot) List(ctx context.Context, list client.ObjectList, opts ...client.ListOption) error {
	wanted := (&client.ListOptions{}).ApplyOptions(opts)
	if wanted.FieldSelector != nil || wanted.Raw != nil {
		return s.Live.List(ctx, list, opts...) //nolint:wrapcheck // stands in for the reader
	}
	seen, err := s.seen(ctx, list, wanted.Namespace)
	if err != nil {
		return err
	}
	if err := seen.loaded(ctx, s.Live, emptyLike(list), s.scope(wanted.Namespace)); err != nil {
		return err
	}
	list.SetResourceVersion(seen.list.GetResourceVersion())
	isShared := wanted.UnsafeDisableDeepCopy != nil && *wanted.UnsafeDisableDeepCopy
	if wanted.LabelSelector == nil && seen.handOn(list, wanted.Namespace, isShared) {
		return nil
	}
	var matching []runtime.Object
	for _, obj := range seen.objects[wanted.Namespace] {
		if wanted.LabelSelector == nil || wanted.LabelSelector.Matches(labels.Set(obj.GetLabels())) {
			matching = append(matching, obj)
		}
	}
	if err := apimeta.SetList(list, matching); err != nil {
		return fmt.Errorf("hand on a list: %w", err)
	}
	return nil
}

// handOn hands on all objects together, which takes a tenth of the time, and none if the list itself
// may be shared; false if they are not all there is, or were listed in several pages.
func (k *kindSeen) handOn(list client.ObjectList, namespace string, isShared bool) bool {
	const items = "Items"
	from, to := reflect.ValueOf(k.list).Elem().FieldByName(items), reflect.ValueOf(list).Elem().FieldByName(items)
	if !from.IsValid() || !to.IsValid() || from.Type() != to.Type() || from.Len() != len(k.objects[namespace]) || from.Len() != len(k.objects[""]) {
		return false
	}
	if !isShared {
		from = reflect.AppendSlice(reflect.MakeSlice(from.Type(), 0, from.Len()), from)
	}
	to.Set(from.Slice3(0, from.Len(), from.Len()))
	return true
}

// seen is what was read of a kind in a namespace.
func (s *Snapshot) seen(ctx context.Context, list client.ObjectList, namespace string) (*kindSeen, error) {
	gvk, err := apiutil.GVKForObject(list, s.Scheme)
	if err != nil {
		return nil, fmt.Errorf("list %T: %w", list, err)
	}
	key := kindIn{gvk, reflect.TypeOf(list).String(), s.scope(namespace)}
	s.mu.Lock()
	seen := s.kinds[key]
	s.mu.Unlock()
	if seen != nil {
		return seen, nil
	}
	if keeps, ok := s.Live.(keeper); ok {
		seen = keeps.kept(ctx, key, list)
	} else {
		seen = &kindSeen{}
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if other := s.kinds[key]; other != nil { // two callers have asked for it
		return other, nil
	}
	s.kinds[key] = seen
	return seen, nil
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
	return &Snapshot{Live: live, Scheme: scheme, namespace: namespace, kinds: map[kindIn]*kindSeen{}, listed: map[typeIn]*kindSeen{}}
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
