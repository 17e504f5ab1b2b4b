package kube

import (
	"reflect"
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/tools/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// Interest is what a ring wants the cache to hold of one kind. Rings may share
// a kind; the cache then holds what either of them wants.
type Interest struct {
	// Object is of the kind, and empty.
	Object client.Object
	// Sees is true for the objects that the ring needs whole; of others, only what
	// identifies them is kept. Nil sees all.
	Sees func(client.Object) bool
	// Reduce takes away of an object that is kept what the ring does not need, in
	// place. A kind that one ring reduces belongs to that ring alone. Optional.
	Reduce func(client.Object)
	// Attributed is true if Reduce decides what is kept of who has written the object; otherwise
	// nothing is.
	Attributed bool
}

// Transform is the transform of the cache for a kind in which these rings have
// an interest.
func Transform(interests []Interest) cache.TransformFunc {
	attributed := slices.ContainsFunc(interests, func(i Interest) bool { return i.Attributed })
	return func(obj any) (any, error) {
		o, ok := obj.(client.Object)
		if !ok {
			return obj, nil // a tombstone
		}
		if !attributed {
			o.SetManagedFields(nil)
		}
		seen := false
		for _, i := range interests {
			seen = seen || i.Sees == nil || i.Sees(o)
			if i.Reduce != nil {
				i.Reduce(o)
			}
		}
		if !seen {
			return identity(o), nil
		}
		return o, nil
	}
}

// identity is a new object of the same kind with what identifies o, and nothing else.
func identity(o client.Object) client.Object {
	id, ok := reflect.TypeAssert[client.Object](reflect.New(reflect.TypeOf(o).Elem()))
	if !ok {
		return o
	}
	id.GetObjectKind().SetGroupVersionKind(o.GetObjectKind().GroupVersionKind())
	id.SetNamespace(o.GetNamespace())
	id.SetName(o.GetName())
	id.SetUID(o.GetUID())
	id.SetResourceVersion(o.GetResourceVersion())
	id.SetGeneration(o.GetGeneration())
	id.SetCreationTimestamp(o.GetCreationTimestamp())
	id.SetDeletionTimestamp(o.GetDeletionTimestamp())
	return id
}

// Identify is a transform for caches of metadata that keeps what identifies an object
// and its version, and nothing else.
func Identify(obj any) (any, error) {
	m, ok := obj.(*metav1.PartialObjectMetadata)
	if !ok {
		return obj, nil // a tombstone
	}
	return &metav1.PartialObjectMetadata{TypeMeta: m.TypeMeta, ObjectMeta: metav1.ObjectMeta{
		Namespace: m.Namespace, Name: m.Name, UID: m.UID, ResourceVersion: m.ResourceVersion,
	}}, nil
}
