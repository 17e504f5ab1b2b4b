package apiserver

import (
	"fmt"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/managedfields"
	"k8s.io/client-go/applyconfigurations"
	"sigs.k8s.io/structured-merge-diff/v6/typed"

	fleet "github.com/spillway-dev/spillway/api/fleet/v1alpha1"
	"github.com/spillway-dev/spillway/internal/kube"
)

// converterOf says how what is applied to objects of a kind is merged: by the schema of
// Kubernetes; as a map of maps, with lists as a whole, where there is none; and
// assemblages, in which several modules write, by the names of their syncs.
func converterOf(gvk schema.GroupVersionKind) managedfields.TypeConverter {
	switch {
	case kube.Served().Recognizes(gvk):
		return applyconfigurations.NewTypeConverter(kube.Served())
	case gvk.Group == fleet.GroupVersion.Group:
		return bySyncs{managedfields.NewDeducedTypeConverter()}
	default:
		return managedfields.NewDeducedTypeConverter()
	}
}

// bySyncs merges lists called syncs by name.
type bySyncs struct{ managedfields.TypeConverter }

// ObjectToTyped implements [managedfields.TypeConverter].
func (bySyncs) ObjectToTyped(obj runtime.Object, opts ...typed.ValidationOptions) (*typed.TypedValue, error) {
	var value *typed.TypedValue
	var err error
	if u, ok := obj.(*unstructured.Unstructured); ok {
		value, err = syncsType.FromUnstructured(u.Object, opts...)
	} else {
		value, err = syncsType.FromStructured(obj, opts...)
	}
	if err != nil {
		return nil, fmt.Errorf("read what is to be merged: %w", err)
	}
	return value, nil
}

var syncsType = func() typed.ParseableType {
	parser, err := typed.NewParser(`types:
- name: atomic
  scalar: untyped
  list: {elementType: {namedType: atomic}, elementRelationship: atomic}
  map: {elementType: {namedType: atomic}, elementRelationship: atomic}
- name: any
  scalar: untyped
  list: {elementType: {namedType: atomic}, elementRelationship: atomic}
  map: {elementType: {namedType: any}, elementRelationship: separable}
- name: sync
  map:
    fields: [{name: name, type: {scalar: string}}]
    elementType: {namedType: any}
- name: syncs
  list: {elementType: {namedType: sync}, elementRelationship: associative, keys: [name]}
- name: assemblage
  map:
    fields: [{name: syncs, type: {namedType: syncs}}]
    elementType: {namedType: any}
- name: spec
  map:
    fields:
    - {name: syncs, type: {namedType: syncs}}
    - {name: assemblage, type: {namedType: assemblage}}
    elementType: {namedType: any}
- name: object
  map:
    fields: [{name: spec, type: {namedType: spec}}]
    elementType: {namedType: any}
`)
	if err != nil {
		panic(err) // it is a constant
	}
	return parser.Type("object")
}()
