package manifest

import (
	"regexp"
	"slices"

	kustomizev1 "github.com/fluxcd/kustomize-controller/api/v1"

	"github.com/spillway-dev/spillway/api/kudo/v1beta1"
)

// running are fields by which kinds that are not known here say how many Pods they run,
// what is in them, or which chart or repository has them.
var running = regexp.MustCompile(`^(replicas|replicaCount|instances|nodeSets|containers|chart|repoURL)$`)

// MayRunPods is true if something among the manifests may bring Pods to a namespace
// that the manifests do not show: an operator's resource, a release, an Instance.
func (m *Manifests) MayRunPods(namespace string) bool {
	return slices.ContainsFunc(m.Objects, func(o *Object) bool {
		if !m.isOperated(o) {
			return false
		}
		return !o.placed || o.Namespace() == namespace || slices.Contains(namespacesIn(o.Object.Object["spec"], nil), namespace)
	})
}

func (m *Manifests) isOperated(o *Object) bool {
	switch o.Typed.(type) {
	case *v1beta1.Instance, *kustomizev1.Kustomization:
		return true
	default:
		return !m.Scheme.Recognizes(o.Object.GroupVersionKind()) && hasField(o.Object.Object["spec"], running)
	}
}

// hasField is true of a value with a field of such a name, however deep.
func hasField(value any, name *regexp.Regexp) bool {
	switch v := value.(type) {
	case []any:
		return slices.ContainsFunc(v, func(item any) bool { return hasField(item, name) })
	case map[string]any:
		for key, inner := range v {
			if name.MatchString(key) || hasField(inner, name) {
				return true
			}
		}
	}
	return false
}
