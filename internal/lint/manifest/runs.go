package manifest

import (
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
)

// Run is something that runs Pods.
type Run struct {
	O      *Object
	labels labels.Set
}

// Selected are the runs that a selector finds; none if it cannot be understood.
func (m *Manifests) Selected(namespace string, selector *metav1.LabelSelector) []Run {
	s, err := metav1.LabelSelectorAsSelector(selector)
	if err != nil {
		return nil
	}
	return slices.DeleteFunc(m.Runs(namespace), func(w Run) bool { return !s.Matches(w.labels) })
}

// Runs are those in a namespace.
func (m *Manifests) Runs(namespace string) []Run {
	var found []Run
	for _, o := range m.Objects {
		template, _ := o.Pods()
		if template == nil || o.Namespace() != namespace {
			continue
		}
		found = append(found, Run{o, template.Labels})
	}
	return found
}
