package apiserver

import (
	"context"
	"fmt"
	"slices"
	"strconv"
	"strings"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	apimeta "k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/selection"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// Get implements [client.Reader].
func (s *Store) Get(_ context.Context, key client.ObjectKey, obj client.Object, _ ...client.GetOption) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	k, err := s.kindOf(obj)
	if err != nil {
		return err
	}
	found, err := k.get(key)
	if err != nil {
		return err
	}
	return s.fill(found, obj)
}

// List implements [client.Reader]. With [client.UnsafeDisableDeepCopy] the items
// share what they hold with the store.
func (s *Store) List(_ context.Context, list client.ObjectList, opts ...client.ListOption) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	k, err := s.kindOf(list)
	if err != nil {
		return err
	}
	o := (&client.ListOptions{}).ApplyOptions(opts)
	found, err := k.find(o)
	if err != nil {
		return err
	}
	items := make([]runtime.Object, 0, len(found))
	shared := o.UnsafeDisableDeepCopy != nil && *o.UnsafeDisableDeepCopy
	for _, obj := range found {
		item, err := s.item(k, obj, list, shared)
		if err != nil {
			return err
		}
		items = append(items, item)
	}
	list.SetResourceVersion(strconv.FormatInt(s.version, 10))
	return apimeta.SetList(list, items)
}

// item is an object as a list has it.
func (s *Store) item(k *kind, obj client.Object, list client.ObjectList, shared bool) (runtime.Object, error) {
	var into client.Object
	switch list.(type) {
	case *unstructured.UnstructuredList:
		into = &unstructured.Unstructured{}
	case *metav1.PartialObjectMetadataList:
		into = &metav1.PartialObjectMetadata{}
	default:
		if shared {
			return obj, nil
		}
		return obj.DeepCopyObject(), nil
	}
	into.GetObjectKind().SetGroupVersionKind(k.gvk)
	return into, s.fill(obj, into)
}

// asked are the fields that an API server can be asked by without an index: those of all
// kinds, and those of Pods that are asked for.
var asked = map[string]func(client.Object) string{
	metav1.ObjectNameField: client.Object.GetName,
	"metadata.namespace":   client.Object.GetNamespace,
	"spec.nodeName": func(obj client.Object) string {
		if pod, ok := obj.(*corev1.Pod); ok {
			return pod.Spec.NodeName
		}
		return ""
	},
}

type labelSet map[string]string

// Has implements [k8s.io/apimachinery/pkg/labels.Labels].
func (l labelSet) Has(label string) bool { _, ok := l[label]; return ok }

// Get implements [k8s.io/apimachinery/pkg/labels.Labels].
func (l labelSet) Get(label string) string { return l[label] }

// Lookup implements [k8s.io/apimachinery/pkg/labels.Labels].
func (l labelSet) Lookup(label string) (string, bool) { v, ok := l[label]; return v, ok }

// Objects are all objects of the kind of obj in a namespace, or in all if it is
// empty, by name. They are those of the store, and must not be changed.
func (s *Store) Objects(obj client.Object, namespace string) []client.Object {
	s.mu.Lock()
	defer s.mu.Unlock()
	k, err := s.kindOf(obj)
	if err != nil {
		return nil
	}
	return k.sorted(namespace)
}

// Indexed are the objects of the kind of obj that an index has by a value. They are
// those of the store, and must not be changed.
func (s *Store) Indexed(obj client.Object, field, value string) []client.Object {
	s.mu.Lock()
	defer s.mu.Unlock()
	k, err := s.kindOf(obj)
	if err != nil || k.indices[field] == nil {
		return nil
	}
	return k.indices[field].find("", value)
}

// find returns the objects that a list asks for, in the order of their names.
func (k *kind) find(o *client.ListOptions) ([]client.Object, error) {
	found, err := k.candidates(o)
	if err != nil || o.LabelSelector == nil || o.LabelSelector.Empty() {
		return found, err
	}
	return slices.DeleteFunc(found, func(obj client.Object) bool { return !o.LabelSelector.Matches(labelsOf(obj)) }), nil
}

// candidates are the objects that a field selector picks.
func (k *kind) candidates(o *client.ListOptions) ([]client.Object, error) {
	if o.FieldSelector == nil || o.FieldSelector.Empty() {
		return k.sorted(o.Namespace), nil
	}
	found, indexed := []client.Object(nil), false
	requirements := o.FieldSelector.Requirements()
	for _, r := range requirements {
		i := k.indices[r.Field]
		switch {
		case k.isAsked(r.Field):
		case i == nil || indexed || r.Operator == selection.NotEquals:
			return nil, apierrors.NewBadRequest(fmt.Sprintf("no index of %s by %s", k.gvk.Kind, o.FieldSelector))
		default:
			found, indexed = i.find(o.Namespace, r.Value), true
		}
	}
	if !indexed {
		found = k.sorted(o.Namespace)
	}
	return slices.DeleteFunc(found, func(obj client.Object) bool {
		return slices.ContainsFunc(requirements, func(r fields.Requirement) bool { return k.isAsked(r.Field) && !meets(obj, r) })
	}), nil
}

func (k *kind) isAsked(field string) bool {
	return asked[field] != nil && (strings.HasPrefix(field, "metadata.") || k.gvk.Kind == "Pod")
}

func meets(obj client.Object, r fields.Requirement) bool {
	return (asked[r.Field](obj) == r.Value) == (r.Operator != selection.NotEquals)
}

func labelsOf(obj client.Object) labelSet { return obj.GetLabels() }

// All are all objects. They are those of the store, and must not be changed.
func (s *Store) All() []client.Object {
	s.mu.Lock()
	defer s.mu.Unlock()
	var all []client.Object
	for _, k := range s.kinds {
		all = append(all, k.sorted("")...)
	}
	slices.SortStableFunc(all, func(a, b client.Object) int {
		return strings.Compare(a.GetObjectKind().GroupVersionKind().String(), b.GetObjectKind().GroupVersionKind().String())
	})
	return all
}

// Object is the object of the kind of obj with a key; nil if there is none. It is
// that of the store, and must not be changed.
func (s *Store) Object(obj client.Object, key client.ObjectKey) client.Object {
	s.mu.Lock()
	defer s.mu.Unlock()
	k, err := s.kindOf(obj)
	if err != nil {
		return nil
	}
	return k.objects[key]
}
