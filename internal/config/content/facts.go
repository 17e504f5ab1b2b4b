package content

import (
	"maps"
	"reflect"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/spillway-dev/spillway/internal/kube"
	"github.com/spillway-dev/spillway/internal/vocabulary"
)

// Facts are what is known of objects without their values.
type Facts map[Object]fact

// FactsOf are the facts of objects that were reduced by [Digest].
func FactsOf(objects ...client.Object) Facts {
	facts := make(Facts, len(objects))
	for _, obj := range objects {
		facts[ObjectOf(obj)] = factOf(obj)
	}
	return facts
}

// ChangedSince names the keys that differ from an earlier observation,
// "ConfigMap app: LOG_LEVEL"; nil if there was none.
func (f Facts) ChangedSince(namespace string, before Facts) []string {
	if before == nil {
		return nil
	}
	var changed []string
	for _, o := range slices.SortedFunc(maps.Keys(f), Object.Compare) {
		changed = append(changed, changedIn(o.From(namespace), before[o], f[o])...)
	}
	return changed
}

func changedIn(object string, before, after fact) []string {
	var keys []string
	for key := range after.digests {
		if before.digests[key] != after.digests[key] {
			keys = append(keys, object+": "+key)
		}
	}
	for key := range before.digests {
		if _, ok := after.digests[key]; !ok {
			keys = append(keys, object+": "+key)
		}
	}
	slices.Sort(keys)
	return keys
}

// Differ is true if two versions of a digested object differ in anything that the
// ring reads.
func Differ(a, b client.Object) bool {
	before, after := factOf(a), factOf(b)
	before.version, after.version = "", ""
	before.written, after.written = time.Time{}, time.Time{}
	before.writer, after.writer = "", ""
	return !reflect.DeepEqual(before, after)
}

// IsSharedWith is true if workloads of another namespace may name a ConfigMap or
// Secret as an extra one.
func IsSharedWith(obj client.Object, namespace string) bool {
	return fact{sharedWith: vocabulary.SharedWith.Get(obj.GetAnnotations())}.isSharedWith(namespace)
}

// fact is what is known of one object without its values.
type fact struct {
	exists bool
	// out is true of an object of another namespace that must not count.
	out bool
	// version is uid and resourceVersion.
	version string
	// created is when it was created, written when it was written last.
	created, written time.Time
	// writer is which field manager wrote it then, empty if that is not known.
	writer string
	// uid is that of the object.
	uid     string
	ignored bool
	// token is true of the token of a ServiceAccount.
	token bool
	release
	// paused is who paused what is rolled for the object, nil if it is not paused.
	paused *Pause
	// sharedWith lists the namespaces that may name the object as an extra one.
	sharedWith string
	// digests has a digest for each key.
	digests map[string]string
}

// isIgnored reports whether changes of an object roll nothing. KUDO takes any value of its annotation for that.
func isIgnored(annotations map[string]string) bool {
	_, _, skipped := vocabulary.SkipHashCalculation.Lookup(annotations)
	return skipped || vocabulary.Ignored.Get(annotations) == "true"
}

// factOf reads a digested object.
func factOf(obj client.Object) fact {
	f := fact{
		exists:     true,
		version:    versionOf(obj),
		created:    obj.GetCreationTimestamp().Time,
		uid:        string(obj.GetUID()),
		ignored:    isIgnored(obj.GetAnnotations()),
		sharedWith: vocabulary.SharedWith.Get(obj.GetAnnotations()),
		release:    releaseOf(obj.GetAnnotations()),
		paused:     pausedBy(obj.GetAnnotations()),
	}
	f.written, f.writer = kube.LastWrite(obj, dataField, binaryField)
	switch o := obj.(type) {
	case *corev1.ConfigMap:
		f.digests = o.Data
	case *corev1.Secret:
		f.token = o.Type == corev1.SecretTypeServiceAccountToken
		f.digests = make(map[string]string, len(o.Data))
		for key, digest := range o.Data {
			f.digests[key] = string(digest)
		}
	}
	return f
}

func versionOf(obj client.Object) string {
	return string(obj.GetUID()) + "/" + obj.GetResourceVersion()
}

// isSharedWith is true if workloads of the namespace may name the object.
func (f fact) isSharedWith(namespace string) bool {
	return vocabulary.IsSharedWith(f.sharedWith, namespace)
}
