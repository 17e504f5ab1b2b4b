package workload

import (
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// ArgoVersion is that of the kind Rollout of Argo, of which only the fields are known that are read. So it is never
// written as a whole, but patched.
var ArgoVersion = schema.GroupVersion{Group: "argoproj.io", Version: "v1alpha1"}

// Rollout is a Rollout of Argo. One with a workloadRef has no template of its own.
type Rollout struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata"`

	Spec struct {
		// Paused is true if a user has paused it.
		Paused   bool                   `json:"paused,omitempty"`
		Template corev1.PodTemplateSpec `json:"template"`
	} `json:"spec"`
}

// RolloutList is a list of them.
type RolloutList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata"`

	Items []Rollout `json:"items"`
}

// DeepCopyObject returns a copy.
func (r *Rollout) DeepCopyObject() runtime.Object {
	c := *r
	c.ObjectMeta = *r.DeepCopy()
	c.Spec.Template = *r.Spec.Template.DeepCopy()
	return &c
}

// DeepCopyObject returns a copy.
func (l *RolloutList) DeepCopyObject() runtime.Object {
	c := RolloutList{TypeMeta: l.TypeMeta, ListMeta: *l.DeepCopy()}
	for i := range l.Items {
		if item, ok := l.Items[i].DeepCopyObject().(*Rollout); ok {
			c.Items = append(c.Items, *item)
		}
	}
	return &c
}

// AddRollouts adds the kind to a scheme.
func AddRollouts(s *runtime.Scheme) {
	s.AddKnownTypes(ArgoVersion, &Rollout{}, &RolloutList{})
	metav1.AddToGroupVersion(s, ArgoVersion)
}
