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

// title is what entitles an Instance to write an object that exists.
type title int

// The titles.
const (
	// foreign objects belong to another owner or none.
	foreign title = iota
	// adoptable ones may become the Instance's.
	adoptable
	// own ones are.
	own
)

// title returns the Instance's title to an object. Every write to an object that exists asks for
// it. inTemplate says that the template permits the Instance to adopt the object.
func (s *Snapshot) title(live *unstructured.Unstructured, inTemplate bool) title {
	onObject := vocabulary.Adopt.Get(live.GetAnnotations())
	switch {
	case s.IsOwned(live):
		return own
	case metav1.GetControllerOfNoCopy(live) != nil:
		return foreign
	case onObject == "true", onObject == s.self(), inTemplate && onObject == "" && !s.otherInstance(live):
		return adoptable
	default:
		return foreign
	}
}

// self is how objects name the Instance that they belong to.
func (s *Snapshot) self() string { return s.Instance.Namespace + "/" + s.Instance.Name }

// adopts reports whether an object belongs to the Instance, or may be adopted by it. The
// permission on an object ends with the adoption: what is applied then names the Instance
// that has adopted the object, and what is applied later nothing.
func (w *work) adopts(f *Finding, ref object.Ref, u, live *unstructured.Unstructured, inTemplate bool) bool {
	switch w.o.title(live, inTemplate) {
	case own:
		return true
	case adoptable:
		annotations := u.GetAnnotations()
		annotations[vocabulary.Adopt.Native] = w.o.self()
		u.SetAnnotations(annotations)
		return true
	default:
		f.Blocked = w.blocked(ref, live)
		return false
	}
}

// blocked is what a user must do about an object that belongs to another owner or none.
func (w *work) blocked(ref object.Ref, live *unstructured.Unstructured) *rollout.Block {
	action := "to adopt it, annotate it with " + vocabulary.Adopt.Native + "=true"
	if metav1.GetControllerOfNoCopy(live) != nil {
		action = "rename one of the two, or delete it"
	}
	return &rollout.Block{Reason: reasons.Foreign, Message: fmt.Sprintf("%s exists and %s; %s", ref, w.o.whose(live), action)}
}

// whose says to whom an object belongs that is not the Instance's.
func (s *Snapshot) whose(live *unstructured.Unstructured) string {
	if controller := metav1.GetControllerOfNoCopy(live); controller != nil {
		return "belongs to " + controller.Kind + " " + controller.Name
	}
	return "does not belong to Instance " + s.Instance.Name
}

// otherInstance is true of an object that another Instance has applied.
func (s *Snapshot) otherInstance(live *unstructured.Unstructured) bool {
	_, applied := live.GetAnnotations()[vocabulary.Instance.Native]
	return (applied || live.GetLabels()[vocabulary.Heritage] == vocabulary.HeritageOf) && !s.IsOwned(live)
}
