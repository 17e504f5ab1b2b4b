package manifest

import (
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// named is what a reference between objects finds.
type named interface {
	client.Object
	comparable
}

// Each visits the objects of a type, in their order.
func Each[T named](m *Manifests, visit func(*Object, T)) {
	for _, o := range m.Objects {
		if typed, ok := o.Typed.(T); ok {
			visit(o, typed)
		}
	}
}

// Find is the object of a type by its name, nil if it is not among the manifests.
func Find[T named](m *Manifests, namespace, name string) (*Object, T) {
	for _, o := range m.Objects {
		if typed, ok := o.Typed.(T); ok && o.Namespace() == namespace && o.Name() == name {
			return o, typed
		}
	}
	var none T
	return nil, none
}
