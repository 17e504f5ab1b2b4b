package simulate

import (
	"cmp"
	"context"
	"slices"

	apimeta "k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/spillway-dev/spillway/internal/simulate/store"
)

// fieldOwner is whoever applies the manifests.
const fieldOwner = "user"

// apply applies objects as a user does who owns them alone.
func (s *simulation) apply(ctx context.Context, objects []*unstructured.Unstructured) error {
	for _, obj := range definitionsFirst(objects) {
		if err := s.applyOne(ctx, obj.DeepCopy()); err != nil {
			return &Refusal{Object: obj, Err: err}
		}
	}
	return nil
}

// definitionsFirst puts CustomResourceDefinitions before what may be of their kinds.
func definitionsFirst(objects []*unstructured.Unstructured) []*unstructured.Unstructured {
	isDefinition := func(u *unstructured.Unstructured) bool { return store.IsDefinition(u.GroupVersionKind().GroupKind()) }
	rest := slices.DeleteFunc(slices.Clone(objects), isDefinition)
	return append(slices.DeleteFunc(slices.Clone(objects), func(u *unstructured.Unstructured) bool { return !isDefinition(u) }), rest...)
}

func (s *simulation) applyOne(ctx context.Context, u *unstructured.Unstructured) error {
	kind := u.GroupVersionKind()
	mapping, err := s.store.RESTMapper().RESTMapping(kind.GroupKind(), kind.Version)
	if err != nil {
		return err //nolint:wrapcheck // it is said as the API server says it
	}
	if mapping.Scope.Name() == apimeta.RESTScopeNameNamespace {
		u.SetNamespace(cmp.Or(u.GetNamespace(), s.options.Namespace))
	}
	if s.options.Installed == nil {
		bare(u)
	}
	return s.store.Apply(ctx, client.ApplyConfigurationFromUnstructured(u), client.FieldOwner(fieldOwner), client.ForceOwnership)
}

// bare takes away what only an API server writes. In a manifest it comes from an object
// that somebody has got from a cluster; here it would be that of another object.
func bare(u *unstructured.Unstructured) {
	for _, field := range []string{"uid", "resourceVersion", "generation", "creationTimestamp", "deletionTimestamp", "managedFields", "selfLink"} {
		unstructured.RemoveNestedField(u.Object, "metadata", field)
	}
	unstructured.RemoveNestedField(u.Object, "status")
}
