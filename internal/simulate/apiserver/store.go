package apiserver

import (
	"errors"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	apimeta "k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/apiutil"
)

// Store implements [client.Client] and [client.FieldIndexer]. Make one with [New].
type Store struct {
	scheme *runtime.Scheme
	mapper mapper
	now    func() time.Time
	// OnChange receives each write that has changed something; before is nil of
	// what was created, after of what is gone. It must not write.
	OnChange func(before, after client.Object)
	// Admit is asked before an object is changed, as webhooks are, and refuses that by an
	// error. It may read and write. Nil admits everything.
	Admit func(before, after client.Object) error
	// Installed knows the kinds of a cluster. If it is nil there is none, and every kind
	// is taken to be installed that anybody asks for.
	Installed apimeta.RESTMapper
	// DropsMaxUnavailable is true of an API server that takes rollingUpdate.maxUnavailable
	// away from StatefulSets, as those before Kubernetes 1.37 do.
	DropsMaxUnavailable bool

	mu      sync.Mutex
	version int64
	kinds   map[schema.GroupKind]*kind
	fields  fieldManagers
}

// kind are the objects of one kind.
type kind struct {
	gvk     schema.GroupVersionKind
	objects map[types.NamespacedName]client.Object
	indices map[string]*index
}

// Clone is a store with the same objects, with a clock of its own. No one receives
// its changes yet.
func (s *Store) Clone(now func() time.Time) *Store {
	s.mu.Lock()
	defer s.mu.Unlock()
	c := &Store{
		scheme: s.scheme, Installed: s.Installed, DropsMaxUnavailable: s.DropsMaxUnavailable, now: now, OnChange: func(_, _ client.Object) {},
		version: s.version, kinds: make(map[schema.GroupKind]*kind, len(s.kinds)), fields: s.fields,
	}
	c.mapper = mapper{s.mapper.DefaultRESTMapper, c}
	for name, k := range s.kinds {
		cloned := &kind{gvk: k.gvk, objects: maps.Clone(k.objects), indices: make(map[string]*index, len(k.indices))}
		for field, i := range k.indices {
			cloned.indices[field] = i.clone()
		}
		c.kinds[name] = cloned
	}
	return c
}

// RESTMapper implements [client.Client].
func (s *Store) RESTMapper() apimeta.RESTMapper { return s.mapper }

// GroupVersionKindFor implements [client.Client].
func (s *Store) GroupVersionKindFor(obj runtime.Object) (schema.GroupVersionKind, error) {
	return apiutil.GVKForObject(obj, s.scheme)
}

// IsObjectNamespaced implements [client.Client].
func (s *Store) IsObjectNamespaced(obj runtime.Object) (bool, error) {
	return apiutil.IsObjectNamespaced(obj, s.scheme, s.mapper)
}

// Version is how many writes there have been.
func (s *Store) Version() int64 {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.version
}

// Len is how many objects there are.
func (s *Store) Len() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	n := 0
	for _, k := range s.kinds {
		n += len(k.objects)
	}
	return n
}

// kindOf returns the kind of an object, or of the objects of a list.
func (s *Store) kindOf(obj runtime.Object) (*kind, error) {
	gvk, err := apiutil.GVKForObject(obj, s.scheme)
	if err != nil {
		return nil, fmt.Errorf("kind of %T: %w", obj, err)
	}
	gvk.Kind = strings.TrimSuffix(gvk.Kind, "List")
	return s.of(gvk), nil
}

// of returns the objects of a kind.
func (s *Store) of(gvk schema.GroupVersionKind) *kind {
	k := s.kinds[gvk.GroupKind()]
	if k == nil {
		k = &kind{gvk: gvk, objects: map[types.NamespacedName]client.Object{}, indices: map[string]*index{}}
		s.kinds[gvk.GroupKind()] = k
	}
	return k
}

// get returns an object, which must not be changed.
func (k *kind) get(key types.NamespacedName) (client.Object, error) {
	obj, ok := k.objects[key]
	if !ok {
		return nil, apierrors.NewNotFound(k.resource(), key.Name)
	}
	return obj, nil
}

// resource names a kind in an error.
func (k *kind) resource() schema.GroupResource {
	return schema.GroupResource{Group: k.gvk.Group, Resource: strings.ToLower(k.gvk.Kind) + "s"}
}

// sorted are the objects of a namespace, or of all if it is empty, in the order of
// their names.
func (k *kind) sorted(namespace string) []client.Object {
	objects := make([]client.Object, 0, len(k.objects))
	for key, obj := range k.objects {
		if namespace == "" || key.Namespace == namespace {
			objects = append(objects, obj)
		}
	}
	slices.SortFunc(objects, byName)
	return objects
}

func byName(a, b client.Object) int {
	if n := strings.Compare(a.GetNamespace(), b.GetNamespace()); n != 0 {
		return n
	}
	return strings.Compare(a.GetName(), b.GetName())
}

// create stores a new object.
func (s *Store) create(k *kind, obj client.Object) (client.Object, error) {
	if err := s.ready(k, obj); err != nil {
		return nil, err
	}
	if obj.GetName() == "" {
		obj.SetName(obj.GetGenerateName() + strconv.FormatInt(s.version+1, 36))
	}
	obj.SetUID(types.UID(fmt.Sprintf("simulated-%d", s.version+1)))
	obj.SetCreationTimestamp(metav1.NewTime(s.now()))
	s.stamp(nil, obj)
	obj.SetDeletionTimestamp(nil)
	if hasStatus(obj) {
		obj.SetGeneration(1)
	}
	s.put(k, nil, obj)
	return obj, nil
}

// ready gives what is to be created its defaults, unless it is refused.
func (s *Store) ready(k *kind, obj client.Object) error {
	s.complete(nil, obj)
	return k.admit(nil, obj)
}

// replace stores a new state of an object, if it differs.
func (s *Store) replace(k *kind, before, after client.Object) (client.Object, error) {
	if err := s.settle(k, before, after); err != nil {
		return nil, err
	}
	if equality.Semantic.DeepEqual(before, after) {
		return before, nil
	}
	if err := s.admit(k, before, after); err != nil {
		return nil, err
	}
	if after.GetDeletionTimestamp() != nil && len(after.GetFinalizers()) == 0 && !isPod(after) {
		s.put(k, before, nil)
		return after, nil
	}
	s.put(k, before, after)
	return after, nil
}

// admit asks whether a write may be made. It gives the lock back meanwhile, for what is
// asked reads and writes; so the object must still be the one of before afterwards.
func (s *Store) admit(k *kind, before, after client.Object) error {
	if s.Admit == nil {
		return nil
	}
	s.mu.Unlock()
	err := s.Admit(before, after)
	s.mu.Lock()
	if err == nil && k.objects[client.ObjectKeyFromObject(before)] != before {
		err = apierrors.NewConflict(k.resource(), before.GetName(), errors.New("it has changed since"))
	}
	return err
}

// put replaces an object by another, or by nothing, and tells of it.
func (s *Store) put(k *kind, before, after client.Object) {
	s.version++
	if before != nil {
		delete(k.objects, client.ObjectKeyFromObject(before))
		for _, i := range k.indices {
			i.remove(before)
		}
	}
	if after != nil {
		after.SetResourceVersion(strconv.FormatInt(s.version, 10))
		k.objects[client.ObjectKeyFromObject(after)] = after
		for _, i := range k.indices {
			i.add(after)
		}
	}
	s.OnChange(before, after)
}

// settle makes of what a write wants the state that an object gets: what only the API
// server may set stays as it was, and changes of the spec are counted; unless it is
// refused.
func (s *Store) settle(k *kind, before, after client.Object) error {
	after.SetUID(before.GetUID())
	after.SetCreationTimestamp(before.GetCreationTimestamp())
	s.stamp(before.GetManagedFields(), after)
	after.SetDeletionTimestamp(before.GetDeletionTimestamp())
	after.SetGeneration(before.GetGeneration())
	after.SetResourceVersion(before.GetResourceVersion())
	s.complete(before, after)
	if !specDiffers(before, after) {
		return nil
	}
	if hasStatus(after) {
		after.SetGeneration(before.GetGeneration() + 1)
	}
	return k.admit(before, after)
}

func isPod(obj client.Object) bool { return reflect.TypeOf(obj) == podType }

// stored is an object as the store keeps it: of the Go type of its kind, if the
// scheme has one.
func (s *Store) stored(k *kind, obj runtime.Object) (client.Object, error) {
	if u, ok := obj.(*unstructured.Unstructured); ok && s.scheme.Recognizes(k.gvk) {
		return s.typed(k, u.Object)
	}
	kept, ok := obj.DeepCopyObject().(client.Object)
	if !ok {
		return nil, fmt.Errorf("%T is no object", obj)
	}
	kept.GetObjectKind().SetGroupVersionKind(k.gvk)
	return kept, nil
}

// typed is some content as an object of a kind.
func (s *Store) typed(k *kind, content map[string]any) (client.Object, error) {
	if !s.scheme.Recognizes(k.gvk) {
		return &unstructured.Unstructured{Object: content}, nil
	}
	made, err := s.scheme.New(k.gvk)
	if err != nil {
		return nil, fmt.Errorf("make a %s: %w", k.gvk.Kind, err)
	}
	if err := runtime.DefaultUnstructuredConverter.FromUnstructured(content, made); err != nil {
		return nil, apierrors.NewBadRequest(fmt.Sprintf("%s cannot be read: %v", k.gvk.Kind, err))
	}
	obj, ok := made.(client.Object)
	if !ok {
		return nil, fmt.Errorf("%T is no object", made)
	}
	obj.GetObjectKind().SetGroupVersionKind(k.gvk)
	return obj, nil
}

// New makes an empty store of the kinds of a scheme, with a clock.
func New(kinds *runtime.Scheme, now func() time.Time) *Store {
	s := &Store{scheme: kinds, now: now, OnChange: func(_, _ client.Object) {}, kinds: map[schema.GroupKind]*kind{}}
	s.mapper = mapper{newMapper(kinds), s}
	return s
}

// Scheme implements [client.Client].
func (s *Store) Scheme() *runtime.Scheme { return s.scheme }

// fill puts an object of the store into one of the caller's.
func (s *Store) fill(from, into client.Object) error {
	switch to := into.(type) {
	case *unstructured.Unstructured:
		c, err := content(from)
		if err != nil {
			return err
		}
		kind := to.GroupVersionKind()
		to.Object = c
		to.SetGroupVersionKind(kind)
		return nil
	case *metav1.PartialObjectMetadata:
		fillMetadata(from, to)
		return nil
	}
	if reflect.TypeOf(from) == reflect.TypeOf(into) {
		reflect.ValueOf(into).Elem().Set(reflect.ValueOf(from.DeepCopyObject()).Elem())
		return nil
	}
	c, err := content(from)
	if err != nil {
		return err
	}
	return runtime.DefaultUnstructuredConverter.FromUnstructured(c, into)
}

// content is an object as JSON has it.
func content(obj client.Object) (map[string]any, error) {
	if u, ok := obj.(*unstructured.Unstructured); ok {
		return runtime.DeepCopyJSON(u.Object), nil
	}
	c, err := runtime.DefaultUnstructuredConverter.ToUnstructured(obj)
	if err != nil {
		return nil, fmt.Errorf("content of %s: %w", obj.GetName(), err)
	}
	return c, nil
}

func fillMetadata(from client.Object, to *metav1.PartialObjectMetadata) {
	kind := to.GroupVersionKind()
	meta := metav1.ObjectMeta{
		Namespace: from.GetNamespace(), Name: from.GetName(), GenerateName: from.GetGenerateName(), UID: from.GetUID(),
		ResourceVersion: from.GetResourceVersion(), Generation: from.GetGeneration(), CreationTimestamp: from.GetCreationTimestamp(),
		DeletionTimestamp: from.GetDeletionTimestamp(), Labels: from.GetLabels(), Annotations: from.GetAnnotations(),
		OwnerReferences: from.GetOwnerReferences(), Finalizers: from.GetFinalizers(),
	}
	meta.DeepCopyInto(&to.ObjectMeta)
	to.SetGroupVersionKind(kind)
}

// stamp says of what was written since before that it was written now: the library that keeps who has written an
// object takes the time of the machine.
func (s *Store) stamp(before []metav1.ManagedFieldsEntry, after client.Object) {
	entries := after.GetManagedFields()
	for i := range entries {
		same := func(e metav1.ManagedFieldsEntry) bool {
			return e.Manager == entries[i].Manager && e.Operation == entries[i].Operation && e.Subresource == entries[i].Subresource && e.Time.Equal(entries[i].Time)
		}
		if !slices.ContainsFunc(before, same) {
			entries[i].Time = &metav1.Time{Time: s.now()}
		}
	}
	after.SetManagedFields(entries)
}
