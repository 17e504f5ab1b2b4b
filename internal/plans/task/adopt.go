package task

import (
	"fmt"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/spillway-dev/spillway/internal/plans/object"
	"github.com/spillway-dev/spillway/internal/reasons"
	"github.com/spillway-dev/spillway/internal/vocabulary"
	"github.com/spillway-dev/spillway/rollout"
)

// takePermission removes the permission to adopt an object from what is to be applied, so
// that no other Instance finds it there, and returns whether there was one.
func takePermission(u *unstructured.Unstructured) bool {
	annotations := u.GetAnnotations()
	permitted := vocabulary.Adopt.Get(annotations) == "true"
	for _, name := range vocabulary.Adopt.Names() {
		delete(annotations, name)
	}
	u.SetAnnotations(annotations)
	return permitted
}

// adopts is true if an object belongs to the Instance, or may be adopted by it. The
// permission on an object ends with the adoption: what is applied then names the Instance
// that has adopted the object, and what is applied later nothing.
func (w *work) adopts(f *Finding, ref object.Ref, u, live *unstructured.Unstructured, inTemplate bool) bool {
	if w.o.isOwned(live) {
		return true
	}
	self := w.o.Instance.Namespace + "/" + w.o.Instance.Name
	onObject := vocabulary.Adopt.Get(live.GetAnnotations())
	controller, other := metav1.GetControllerOfNoCopy(live), w.o.otherInstance(live)
	switch {
	case controller != nil:
		f.Blocked = &rollout.Block{Reason: reasons.Foreign, Message: fmt.Sprintf("%s exists and belongs to %s %s; rename one of the two, or delete it",
			ref, controller.Kind, controller.Name)}
		return false
	case onObject == "true", onObject == self, inTemplate && onObject == "" && !other:
		annotations := u.GetAnnotations()
		annotations[vocabulary.Adopt.Native] = self
		u.SetAnnotations(annotations)
		return true
	default:
		f.Blocked = w.foreign(ref)
		return false
	}
}

// foreign is what a user must do about an object that belongs to another owner or none.
func (w *work) foreign(ref object.Ref) *rollout.Block {
	return &rollout.Block{Reason: reasons.Foreign, Message: fmt.Sprintf(
		"%s exists and does not belong to Instance %s; to adopt it, annotate it with %s=true",
		ref, w.o.Instance.Name, vocabulary.Adopt.Native)}
}

// otherInstance is true of an object that another Instance has applied.
func (s *Snapshot) otherInstance(live *unstructured.Unstructured) bool {
	_, applied := live.GetAnnotations()[vocabulary.Instance.Native]
	return (applied || live.GetLabels()[vocabulary.Heritage] == vocabulary.HeritageOf) && !s.isOwned(live)
}
