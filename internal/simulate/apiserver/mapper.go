package apiserver

import (
	"strings"

	apimeta "k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/spillway-dev/spillway/internal/kube"
	"github.com/spillway-dev/spillway/internal/plans/object"
	"github.com/spillway-dev/spillway/internal/source"
)

// mapper knows the kinds of a scheme, and looks for others among the
// CustomResourceDefinitions in a store, and in a cluster.
type mapper struct {
	*apimeta.DefaultRESTMapper

	store *Store
}

// newMapper knows the kinds of a scheme, and which of them are in no namespace. Versions
// that clients of Kubernetes know and API servers no longer serve are not among them.
func newMapper(kinds *runtime.Scheme) *apimeta.DefaultRESTMapper {
	known := apimeta.NewDefaultRESTMapper(kinds.PrioritizedVersionsAllGroups())
	for gvk := range kinds.AllKnownTypes() {
		if _, isRetired := object.Successor(gvk); !isRetired {
			known.Add(gvk, scopeOf(source.IsNamespaced(gvk.GroupKind())))
		}
	}
	return known
}

// RESTMapping implements [apimeta.RESTMapper]. Of a kind that the scheme does not know, a
// CustomResourceDefinition says whether it is in a namespace, or the cluster. Without a
// cluster a kind exists as soon as it is asked for.
func (m mapper) RESTMapping(gk schema.GroupKind, versions ...string) (*apimeta.RESTMapping, error) {
	for _, version := range versions {
		if _, isRetired := object.Successor(gk.WithVersion(version)); isRetired {
			return nil, &apimeta.NoKindMatchError{GroupKind: gk, SearchedVersions: versions}
		}
	}
	known, err := m.DefaultRESTMapper.RESTMapping(gk, versions...)
	if err == nil || kube.Served().IsGroupRegistered(gk.Group) {
		return known, err
	}
	scope, defined := m.store.defined(gk)
	switch {
	case defined:
	case m.store.Installed != nil:
		return m.store.Installed.RESTMapping(gk, versions...)
	default:
		scope = scopeOf(source.IsNamespaced(gk))
	}
	gvk := gk.WithVersion(append(versions, "v1")[0])
	plural, _ := apimeta.UnsafeGuessKindToResource(gvk)
	return &apimeta.RESTMapping{Resource: plural, GroupVersionKind: gvk, Scope: scope}, nil
}

// RESTMappings implements [apimeta.RESTMapper]: of a kind that the scheme does not know
// there is one.
func (m mapper) RESTMappings(gk schema.GroupKind, versions ...string) ([]*apimeta.RESTMapping, error) {
	if known, err := m.DefaultRESTMapper.RESTMappings(gk, versions...); err == nil {
		return known, nil
	}
	mapping, err := m.RESTMapping(gk, versions...)
	return []*apimeta.RESTMapping{mapping}, err
}

// IsDefinition is true of CustomResourceDefinitions, which are applied before objects of
// their kinds.
func IsDefinition(gk schema.GroupKind) bool { return gk == definitions }

var definitions = schema.GroupKind{Group: "apiextensions.k8s.io", Kind: "CustomResourceDefinition"}

// defined is what a CustomResourceDefinition says of its kind.
func (s *Store) defined(gk schema.GroupKind) (apimeta.RESTScope, bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	k := s.kinds[definitions]
	if k == nil {
		return nil, false
	}
	for _, obj := range k.objects {
		u, ok := obj.(*unstructured.Unstructured)
		if !ok {
			continue
		}
		group, _, _ := unstructured.NestedString(u.Object, "spec", "group")
		kind, _, _ := unstructured.NestedString(u.Object, "spec", "names", "kind")
		scope, _, _ := unstructured.NestedString(u.Object, "spec", "scope")
		if group == gk.Group && kind == gk.Kind {
			return scopeOf(!strings.EqualFold(scope, "Cluster")), true
		}
	}
	return nil, false
}

func scopeOf(isNamespaced bool) apimeta.RESTScope {
	if isNamespaced {
		return apimeta.RESTScopeNamespace
	}
	return apimeta.RESTScopeRoot
}
