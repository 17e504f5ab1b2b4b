package record

import (
	"maps"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	"sigs.k8s.io/controller-runtime/pkg/client"

	workloads "github.com/spillway-dev/spillway/internal/config/workload"
	"github.com/spillway-dev/spillway/internal/vocabulary"
)

// workload sees what Kubernetes does with a workload automatically: it rolls it where more
// of its template has changed than its config hash, and is done with that. What moves
// in a group is recorded Pod by Pod.
func (r *Recorder) workload(at time.Duration, before, after client.Object) {
	p := ProgressOf(after)
	if p.Kind == workloads.StatefulSet && vocabulary.GroupOf(after.GetLabels(), after.GetAnnotations()) != "" {
		return
	}
	of := Key{p.Kind, after.GetNamespace(), after.GetName()}
	if !equality.Semantic.DeepEqual(unhashed(workloads.TemplateOf(before)), unhashed(workloads.TemplateOf(after))) {
		r.changed[of] = true
	}
	if r.changed[of] && p.mustUpdate > 0 {
		delete(r.changed, of)
		r.rolling[of] = true
		r.kubernetes(at, of, "is rolled by Kubernetes")
	}
	if r.rolling[of] && p.IsWhole() {
		delete(r.rolling, of)
		r.kubernetes(at, of, "is rolled out")
	}
}

func (r *Recorder) kubernetes(at time.Duration, of Key, does string) {
	r.step(Step{At: Offset(at), Ring: Kubernetes, Namespace: of.Namespace, Object: Reference(of.Kind, of.Name), Does: does})
}

// unhashed is a template without its config hash and its pins, of whose change the config ring
// tells.
func unhashed(template *corev1.PodTemplateSpec) *corev1.PodTemplateSpec {
	if vocabulary.ConfigHash.Get(template.Annotations) == "" {
		return template
	}
	bare := *template
	bare.Annotations = maps.Clone(template.Annotations)
	for _, key := range append(vocabulary.ConfigHash.Names(), vocabulary.Pins.Native) {
		delete(bare.Annotations, key)
	}
	return &bare
}
