package kube

import (
	"slices"
	"strconv"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// WrittenAt is when a client wrote one of some fields of an object last, to the second: when the object
// was created, if that is not known.
func WrittenAt(obj metav1.Object, fields ...string) time.Time {
	at := obj.GetCreationTimestamp().Time
	entries := obj.GetManagedFields()
	for i := range entries {
		if e := &entries[i]; e.Time != nil && e.Time.After(at) && mentions(e.FieldsV1, fields) {
			at = e.Time.Time
		}
	}
	return at
}

// mentions is true also of the only entry that [Attribution] keeps, which has no fields.
func mentions(written *metav1.FieldsV1, fields []string) bool {
	return written == nil || slices.ContainsFunc(fields, func(name string) bool {
		return strings.Contains(written.GetRawString(), strconv.Quote("f:"+name))
	})
}

// Attribution is what a cache keeps of who has written an object, so that [WrittenAt] says the same.
func Attribution(obj metav1.Object, fields ...string) []metav1.ManagedFieldsEntry {
	at := WrittenAt(obj, fields...)
	if at.Equal(obj.GetCreationTimestamp().Time) {
		return nil
	}
	return []metav1.ManagedFieldsEntry{{Time: &metav1.Time{Time: at}}}
}
