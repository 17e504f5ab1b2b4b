package task

import (
	"fmt"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/spillway-dev/spillway/internal/plans/object"
	"github.com/spillway-dev/spillway/internal/plans/write"
	"github.com/spillway-dev/spillway/internal/vocabulary"
)

// replace deletes an object of which an immutable field would change, so that the next pass
// creates it, if its template permits that.
func (w *work) replace(f *Finding, ref object.Ref, u, live *unstructured.Unstructured, refused string) {
	if action := ReplaceAction(u, live); action != "" {
		f.Fatal = fmt.Sprintf("%s: an immutable field would change (%s); %s", ref, refused, action)
		return
	}
	f.Writes = append(f.Writes, write.Write{Act: write.Delete, Ref: ref, UID: live.GetUID()})
}

// ReplaceAction is what a user must do to have an object replaced of which an immutable field
// would change; empty if its template permits that. To lose data takes a permission that says so;
// a Job that has ended is replaced without one, because what it did stays done.
func ReplaceAction(rendered, live *unstructured.Unstructured) string {
	annotations := rendered.GetAnnotations()
	if end, _ := jobEnd(live); end != "" && vocabulary.OnImmutable.Get(annotations) != "fail" {
		return ""
	}
	recreates := vocabulary.OnImmutable.Get(annotations) == "recreate"
	losesData := vocabulary.LoseDataOnRecreate.Get(annotations) == "true"
	switch isHolder := HoldsData(rendered) || HoldsData(live); {
	case isHolder && (!recreates || !losesData):
		return fmt.Sprintf("to replace it and lose its data, annotate it in its template with %s=recreate and %s=true",
			vocabulary.OnImmutable.Native, vocabulary.LoseDataOnRecreate.Native)
	case !recreates:
		return fmt.Sprintf("to replace the object, annotate it in its template with %s=recreate", vocabulary.OnImmutable.Native)
	default:
		return ""
	}
}

// HoldsData reports whether data is lost when an object is deleted, even if it is created again:
// that of a volume, the objects in a Namespace or of a kind, and values that were generated.
func HoldsData(u *unstructured.Unstructured) bool {
	switch ref := object.RefOf(u); {
	case isKept(ref), ref.GroupKind() == object.InstanceKind:
		return true
	case ref.GroupKind() == object.StatefulSetKind:
		whenDeleted, _, _ := unstructured.NestedString(u.Object, "spec", "persistentVolumeClaimRetentionPolicy", "whenDeleted")
		return whenDeleted == "Delete"
	default:
		return ref.GroupKind() == object.SecretKind && vocabulary.GenerateOnce.Get(u.GetAnnotations()) != ""
	}
}
