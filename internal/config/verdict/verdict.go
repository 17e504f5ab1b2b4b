// Package verdict reads and makes the records of what has failed: a ConfigRollout for each ConfigMap
// or Secret with a content of which some workload has failed.
//
// # Why
//
// That a content has failed is a fact about the content. On the workload that has failed it would be
// lost by an undo, a replace, or when the workload is deleted, and the next workload would be rolled
// with the same content. The record has no owner, so that it also outlives its object: one that is
// created again with the same content has not become better.
package verdict

import (
	"cmp"
	"crypto/sha256"
	"encoding/hex"
	"slices"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/spillway-dev/spillway/api/spillway/v1alpha1"
	"github.com/spillway-dev/spillway/internal/config/content"
	"github.com/spillway-dev/spillway/internal/config/workload"
	"github.com/spillway-dev/spillway/internal/message"
	"github.com/spillway-dev/spillway/internal/ring"
)

// Kind is the kind of the records.
const Kind = "ConfigRollout"

// Verdict is that a workload has failed with a content.
type Verdict struct {
	On workload.Name
	workload.Failed
}

// mostName is how long the name of an object may be.
const mostName = 253

// ofNamespace is the name of the record of what waits for no object.
const ofNamespace = "workloads"

// Name is the name of the record of an object: "secret-db".
func Name(o content.Object) string {
	if o.Kind == "" {
		return ofNamespace
	}
	name := strings.ToLower(string(o.Kind)) + "-" + o.Name
	if len(name) <= mostName {
		return name
	}
	sum := sha256.Sum256([]byte(o.Name))
	suffix := "-" + hex.EncodeToString(sum[:8])
	return strings.TrimRight(name[:mostName-len(suffix)], "-.") + suffix
}

// Object is the object that a record is about; false if its name is not that of the record.
func Object(r *v1alpha1.ConfigRollout) (content.Object, bool) {
	o := content.Object{Kind: content.Kind(r.Object.Kind), Namespace: r.Namespace, Name: r.Object.Name}
	return o, r.Name == Name(o)
}

// Read is what a record says.
func Read(r *v1alpha1.ConfigRollout) []Verdict {
	o, ok := Object(r)
	if !ok {
		return nil
	}
	var all []Verdict
	for i := range r.Failures {
		f := &r.Failures[i]
		for _, w := range f.Workloads {
			all = append(all, Verdict{workload.Name{Kind: w.Kind, Namespace: w.Namespace, Name: w.Name}, workload.Failed{
				Kind: o.Kind, Namespace: o.Namespace, Name: o.Name, Digest: f.Digest, At: w.At.UTC(),
				Cause: message.Cut(f.Cause, message.ValueLength), Hash: w.Hash, // it may be shown in other namespaces
			}})
		}
	}
	return all[:min(len(all), most)]
}

// Failures are those of a record, none if there is no record.
func Failures(r *v1alpha1.ConfigRollout) []v1alpha1.ConfigFailure {
	if r == nil {
		return nil
	}
	return r.Failures
}

// A record has at most so many workloads that have failed with the present content, and so many that
// have failed with earlier ones.
const (
	mostPresent = 480
	mostEarlier = 20
	most        = mostPresent + mostEarlier
)

// Record is the record of an object with what has failed. The present content is the one with a digest.
func Record(o content.Object, digest string, all []Verdict) *v1alpha1.ConfigRollout {
	earlier := func(v Verdict) bool { return v.Digest != digest }
	present, before := slices.DeleteFunc(slices.Clone(all), earlier), slices.DeleteFunc(slices.Clone(all), func(v Verdict) bool { return !earlier(v) })
	// What others have shared with the namespace must not displace what failed in it.
	isShared := func(v Verdict) bool { return v.On.Namespace != o.Namespace }
	slices.SortFunc(present, func(a, b Verdict) int { return cmp.Or(ring.FalseFirst(isShared(a), isShared(b)), Compare(a, b)) })
	slices.SortFunc(before, func(a, b Verdict) int { return cmp.Or(ring.FalseFirst(isShared(a), isShared(b)), Compare(b, a)) })
	present, before = present[:min(len(present), mostPresent)], before[:min(len(before), mostEarlier)]
	r := &v1alpha1.ConfigRollout{Object: v1alpha1.ConfigRolloutObject{Kind: string(o.Kind), Name: o.Name}, Failed: int32(len(present))} //nolint:gosec // at most mostPresent
	r.Namespace, r.Name = o.Namespace, Name(o)
	for _, verdicts := range [][]Verdict{present, before} {
		slices.SortFunc(verdicts, Compare)
		for i := range verdicts {
			add(r, &verdicts[i])
		}
	}
	return r
}

// Compare orders by when they failed.
func Compare(a, b Verdict) int {
	return cmp.Or(a.At.Compare(b.At), strings.Compare(a.On.Namespace, b.On.Namespace), strings.Compare(a.On.Kind, b.On.Kind),
		strings.Compare(a.On.Name, b.On.Name), strings.Compare(a.Digest, b.Digest), a.Object().Compare(b.Object()))
}

// add adds a verdict to those with the same content and cause.
func add(r *v1alpha1.ConfigRollout, v *Verdict) {
	i := slices.IndexFunc(r.Failures, func(f v1alpha1.ConfigFailure) bool { return f.Digest == v.Digest && f.Cause == v.Cause })
	if i < 0 {
		i, r.Failures = len(r.Failures), append(r.Failures, v1alpha1.ConfigFailure{Digest: v.Digest, Cause: v.Cause})
	}
	f := &r.Failures[i]
	f.Workloads = append(f.Workloads, v1alpha1.FailedWorkload{
		Kind: v.On.Kind, Namespace: v.On.Namespace, Name: v.On.Name, At: metav1.NewMicroTime(v.At), Hash: v.Hash,
	})
}
