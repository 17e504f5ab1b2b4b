package model

import (
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/spillway-dev/spillway/api/fleet/v1alpha1"
	"github.com/spillway-dev/spillway/internal/fleet/fluxspec"
)

// Tidy is a sync without empty objects, which say nothing. Where an object loses all that its owner had in
// it, and the owner applies it empty, the API server makes null of it, and refuses that.
func Tidy(s v1alpha1.Sync) v1alpha1.Sync {
	s = *s.DeepCopy()
	if source := s.Source; source != nil {
		switch {
		case source.Git != nil:
			source.Git.Spec = tidied(source.Git.Spec)
		case source.OCI != nil:
			source.OCI.Spec = tidied(source.OCI.Spec)
		case source.Helm != nil:
			source.Helm.Spec = tidied(source.Helm.Spec)
		case source.Bucket != nil:
			source.Bucket.Spec = tidied(source.Bucket.Spec)
		}
	}
	if s.Package == nil {
		return s
	}
	if k := s.Package.Kustomize; k != nil {
		if k.Spec = tidied(k.Spec); k.Spec == nil && k.Path == "" && len(k.Substitute) == 0 {
			s.Package.Kustomize = nil
		}
	}
	if h := s.Package.Helm; h != nil { // which says that it is a chart, also where it has nothing
		if h.Values, h.Chart, h.Spec = tidied(h.Values), tidied(h.Chart), tidied(h.Spec); *h == (v1alpha1.Helm{}) {
			h.Path = "."
		}
	}
	if *s.Package == (v1alpha1.Package{}) {
		s.Package = nil
	}
	return s
}

func tidied(raw *runtime.RawExtension) *runtime.RawExtension {
	if fluxspec.IsEmpty(raw) {
		return nil
	}
	fields := decoded(raw)
	if !dropEmpty(fields) {
		return raw
	}
	if len(fields) == 0 {
		return nil
	}
	return encoded(fields)
}

// dropEmpty removes the objects that are empty, and is true if there was one. Lists stay as they are: each is
// replaced as a whole.
func dropEmpty(fields map[string]any) (found bool) {
	for key, value := range fields {
		if inner, isObject := value.(map[string]any); isObject {
			found = dropEmpty(inner) || found
			if len(inner) == 0 {
				delete(fields, key)
				found = true
			}
		}
	}
	return found || len(fields) == 0
}
