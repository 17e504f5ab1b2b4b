package manifest

import (
	"slices"

	appsv1 "k8s.io/api/apps/v1"
	autoscalingv1 "k8s.io/api/autoscaling/v1"
	autoscalingv2 "k8s.io/api/autoscaling/v2"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/utils/ptr"

	zonesv1 "github.com/spillway-dev/spillway/api/zones/v1"
	"github.com/spillway-dev/spillway/internal/vocabulary"
	"github.com/spillway-dev/spillway/internal/zones/scaling"
)

// Unknown is a number of Pods that no manifest says.
const Unknown = -1

// scaler is an object that writes the replicas of another, which it names.
type scaler struct {
	*Object

	Kind, Name string
	// fewest is how few it leaves, or unknown.
	fewest int
}

// Count is how few Pods something runs, or unknown, and by which scaler.
type Count struct {
	Pods int
	By   *scaler
}

// Fewest is how few Pods an object runs as long as everything is healthy: as few as a
// scaler leaves, as many as the one that it follows or mirrors has, or what it says
// itself. Asked are those whose replicas depend on the answer.
func (m *Manifests) Fewest(o *Object, asked ...*Object) Count {
	own, ok := replicasOf(o)
	if !ok || slices.Contains(asked, o) {
		return Count{Pods: Unknown}
	}
	switch other, follows := m.followed(o); {
	case follows && other == nil:
		return Count{Pods: Unknown}
	case follows:
		return m.Fewest(other, append(asked, o)...)
	}
	if s := m.scalerOf(o); s != nil && own > 0 { // what is scaled to zero is left alone
		return Count{s.fewest, s}
	}
	return Count{Pods: own}
}

// scalerOf is what writes the replicas of an object; nil if that is nothing among the
// manifests.
func (m *Manifests) scalerOf(o *Object) *scaler {
	for i := range m.Scalers {
		if s := &m.Scalers[i]; s.Kind == o.Kind() && s.Name == o.Name() && s.Namespace() == o.Namespace() {
			return s
		}
	}
	return nil
}

// scaler is the object as a scaler, if it is one.
func (o *Object) scaler() (s scaler, ok bool) {
	switch t := o.Typed.(type) {
	case *autoscalingv1.HorizontalPodAutoscaler:
		return scaler{o, t.Spec.ScaleTargetRef.Kind, t.Spec.ScaleTargetRef.Name, int(ptr.Deref(t.Spec.MinReplicas, 1))}, true
	case *autoscalingv2.HorizontalPodAutoscaler:
		return scaler{o, t.Spec.ScaleTargetRef.Kind, t.Spec.ScaleTargetRef.Name, int(ptr.Deref(t.Spec.MinReplicas, 1))}, true
	}
	if _, targets, _ := unstructured.NestedMap(o.Object.Object, "spec", "scaleTargetRef"); targets && o.Typed == nil {
		return o.scaledObject(), true
	}
	return scaler{}, false
}

// scaledObject is one of KEDA's, or of another kind that is not known here, of which nothing
// but its target is understood. How few Pods one of KEDA's leaves while it idles, or is
// paused, it says in other places than how few it leaves while it works.
func (o *Object) scaledObject() scaler {
	text := func(path ...string) string {
		value, _, _ := unstructured.NestedString(o.Object.Object, path...)
		return value
	}
	s := scaler{Object: o, Kind: text("spec", "scaleTargetRef", "kind"), Name: text("spec", "scaleTargetRef", "name"), fewest: Unknown}
	if s.Kind == "" {
		s.Kind = "Deployment"
	}
	_, idles, _ := unstructured.NestedFieldNoCopy(o.Object.Object, "spec", "idleReplicaCount")
	_, paused := o.Object.GetAnnotations()["autoscaling.keda.sh/paused-replicas"]
	fewest, _, err := unstructured.NestedInt64(o.Object.Object, "spec", "minReplicaCount")
	if err == nil && !idles && !paused {
		s.fewest = int(fewest)
	}
	return s
}

// replicasOf is how many replicas an object asks for, 1 if it does not say; not ok if
// it is of no kind that has any.
func replicasOf(o *Object) (replicas int, ok bool) {
	switch t := o.Typed.(type) {
	case *appsv1.Deployment:
		return int(ptr.Deref(t.Spec.Replicas, 1)), true
	case *appsv1.StatefulSet:
		return int(ptr.Deref(t.Spec.Replicas, 1)), true
	case *zonesv1.ReplicaTemplate:
		return int(ptr.Deref(t.Spec.Replicas, 1)), true
	default:
		return 0, false
	}
}

// followed is the object whose replicas a StatefulSet has: its leader, or what it
// mirrors. It is nil if it is not among the manifests, or if a number is forced.
func (m *Manifests) followed(o *Object) (other *Object, follows bool) {
	set, ok := o.Typed.(*appsv1.StatefulSet)
	if !ok {
		return nil, false
	}
	s := scaling.SettingsOf(set.Labels, set.Annotations)
	switch {
	case s.Leader == "" && s.Mirror == nil:
		return nil, false
	case s.Force != nil:
		return nil, true
	case s.Leader != "":
		return m.Leader(o), true
	}
	i := slices.IndexFunc(m.Objects, func(other *Object) bool {
		return other.Kind() == s.Mirror.Kind.Kind && other.Name() == s.Mirror.Name && other.Namespace() == o.Namespace()
	})
	if i < 0 {
		return nil, true
	}
	return m.Objects[i], true
}

// Leader is the StatefulSet that an object is to follow, nil if it is not among the
// manifests.
func (m *Manifests) Leader(o *Object) *Object {
	leader, _ := Find[*appsv1.StatefulSet](m, o.Namespace(), vocabulary.DownscaleLeader.Get(o.Object.GetAnnotations()))
	return leader
}
