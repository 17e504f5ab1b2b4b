package snapshots

import (
	"context"
	"encoding/json"
	"fmt"

	appsv1 "k8s.io/api/apps/v1"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	apimeta "k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/spillway-dev/spillway/internal/config/pin"
	"github.com/spillway-dev/spillway/internal/config/pods"
	"github.com/spillway-dev/spillway/internal/health"
	"github.com/spillway-dev/spillway/internal/vocabulary"
)

// Referred are the snapshots of a namespace to which something refers.
func Referred(ctx context.Context, reader client.Reader, namespace string) (map[Key]bool, error) {
	referred := map[Key]bool{}
	for _, list := range referrers() {
		if err := reader.List(ctx, list, client.InNamespace(namespace), client.UnsafeDisableDeepCopy); err != nil {
			return nil, fmt.Errorf("list what may refer to snapshots: %w", err)
		}
		err := apimeta.EachListItem(list, func(obj runtime.Object) error {
			for _, p := range pin.Mentioned(pinsOf(obj)) {
				if p.HasSnapshot() {
					referred[Key{namespace, p}] = true
				}
			}
			return nil
		})
		if err != nil {
			return nil, fmt.Errorf("read what may refer to snapshots: %w", err)
		}
	}
	return referred, nil
}

// referrers are lists of the kinds that refer to snapshots.
func referrers() []client.ObjectList {
	return []client.ObjectList{
		&appsv1.DeploymentList{}, &appsv1.StatefulSetList{}, &appsv1.DaemonSetList{},
		&appsv1.ReplicaSetList{}, &appsv1.ControllerRevisionList{}, &corev1.PodList{}, &batchv1.JobList{},
	}
}

// pinsOf is the annotation with the pins of an object, or of its Pod template. A Pod that is
// over does not start again, nor does a Job.
func pinsOf(obj any) string {
	switch o := obj.(type) {
	case *appsv1.Deployment:
		return vocabulary.Pins.Get(o.Spec.Template.Annotations)
	case *appsv1.StatefulSet:
		return vocabulary.Pins.Get(o.Spec.Template.Annotations)
	case *appsv1.DaemonSet:
		return vocabulary.Pins.Get(o.Spec.Template.Annotations)
	case *appsv1.ReplicaSet:
		return vocabulary.Pins.Get(o.Spec.Template.Annotations)
	case *appsv1.ControllerRevision:
		r := revision{}
		_ = json.Unmarshal(o.Data.Raw, &r) // one of another kind has no Pod template
		return vocabulary.Pins.Get(r.Spec.Template.Metadata.Annotations)
	case *batchv1.Job:
		if health.IsOver(o) {
			return ""
		}
		return vocabulary.Pins.Get(o.Spec.Template.Annotations)
	case *corev1.Pod:
		if pods.IsOver(o) {
			return ""
		}
		return vocabulary.Pins.Get(o.Annotations)
	default:
		return ""
	}
}

// revision is what a ControllerRevision of a StatefulSet or DaemonSet has of a Pod template.
type revision struct {
	Spec struct {
		Template struct {
			Metadata struct {
				Annotations map[string]string `json:"annotations,omitempty"`
			} `json:"metadata"`
		} `json:"template"`
	} `json:"spec"`
}

// reduce keeps of what refers to snapshots what [pinsOf] reads. It is the transform of a cache.
func reduce(obj any) (any, error) {
	o, ok := obj.(client.Object)
	if !ok {
		return obj, nil // a tombstone
	}
	meta := metav1.ObjectMeta{Namespace: o.GetNamespace(), Name: o.GetName(), UID: o.GetUID(), ResourceVersion: o.GetResourceVersion()}
	pins := map[string]string{vocabulary.Pins.Native: pinsOf(obj)}
	if pins[vocabulary.Pins.Native] == "" {
		pins = nil
	}
	switch of := o.(type) {
	case *appsv1.ReplicaSet:
		kept := &appsv1.ReplicaSet{ObjectMeta: meta}
		kept.Spec.Template.Annotations = pins
		return kept, nil
	case *appsv1.ControllerRevision:
		r := revision{}
		r.Spec.Template.Metadata.Annotations = pins
		raw, err := json.Marshal(r)
		if err != nil {
			return nil, fmt.Errorf("encode a revision: %w", err)
		}
		return &appsv1.ControllerRevision{ObjectMeta: meta, Data: runtime.RawExtension{Raw: raw}}, nil
	case *batchv1.Job:
		if pin.IsHeld(of) {
			return of, nil // its Pod template is read to pin it
		}
		kept := &batchv1.Job{ObjectMeta: meta}
		kept.Spec.Template.Annotations = pins
		return kept, nil
	case *corev1.Pod:
		meta.Annotations = pins
		return &corev1.Pod{ObjectMeta: meta, Status: corev1.PodStatus{Phase: of.Status.Phase}}, nil
	default:
		return obj, nil
	}
}
