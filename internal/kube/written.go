package kube

import (
	"slices"
	"strconv"
	"strings"
	"time"
	"unique"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// WrittenAt is when a client wrote one of some fields of an object last, to the second: when the object
// was created, if that is not known.
func WrittenAt(obj metav1.Object, fields ...string) time.Time {
	at, _ := LastWrite(obj, fields...)
	return at
}

// LastWrite is [WrittenAt], and which field manager wrote then: empty if that is not known, or if several wrote in
// the same second. A status, which may have fields of the same names, does not count.
func LastWrite(obj metav1.Object, fields ...string) (at time.Time, by string) {
	at = obj.GetCreationTimestamp().Time
	isFirst, entries := true, obj.GetManagedFields()
	for i := range entries {
		e := &entries[i]
		if e.Time == nil || e.Subresource != "" || e.Time.Time.Before(at) || !mentions(e.FieldsV1, fields) {
			continue
		}
		switch {
		case isFirst, e.Time.After(at):
			at, by = e.Time.Time, e.Manager
		case by != e.Manager:
			by = ""
		}
		isFirst = false
	}
	return at, by
}

// mentions is true also of the only entry that [Attribution] keeps, which has no fields.
func mentions(written *metav1.FieldsV1, fields []string) bool {
	return written == nil || slices.ContainsFunc(fields, func(name string) bool {
		return strings.Contains(written.GetRawString(), strconv.Quote("f:"+name))
	})
}

// Attribution is what a cache keeps of who has written an object since it was created, so that [WrittenAt] says the same:
// there are many objects, and most are never written again.
func Attribution(obj metav1.Object, fields ...string) []metav1.ManagedFieldsEntry {
	if WrittenAt(obj, fields...).Equal(obj.GetCreationTimestamp().Time) {
		return nil
	}
	return FullAttribution(obj, fields...)
}

// FullAttribution is [Attribution] also of who has created the object, so that [LastWrite] says the same.
func FullAttribution(obj metav1.Object, fields ...string) []metav1.ManagedFieldsEntry {
	at, by := LastWrite(obj, fields...)
	return []metav1.ManagedFieldsEntry{{Time: &metav1.Time{Time: at}, Manager: unique.Make(by).Value()}} // there are few
}
