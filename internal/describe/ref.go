package describe

import (
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/spillway-dev/spillway/internal/config/content"
)

// RefTo names an object that was read.
func RefTo(kind string, obj client.Object) Ref {
	return Ref{Kind: kind, Namespace: obj.GetNamespace(), Name: obj.GetName()}
}

// TimeOf returns the time of a field of the API, nil if it is not set.
func TimeOf(t *metav1.MicroTime) *time.Time {
	if t == nil {
		return nil
	}
	return &t.Time
}

// TimeOrNil returns nil for the zero time.
func TimeOrNil(t time.Time) *time.Time {
	if t.IsZero() {
		return nil
	}
	return &t
}

// Ref names an object, or a unit that is none, such as a zone or a step, as the tree
// shows it.
type Ref struct {
	// Kind is as in a manifest: "RolloutGroup". Of what is no object it is the word
	// for it: "Cluster", "Zone", "Phase", "Step".
	Kind string `json:"kind"`
	// APIVersion is that of the kind where its name alone does not say which it is: of
	// what is neither Kubernetes', Flux' nor Spillway's own.
	APIVersion string `json:"apiVersion,omitempty"`
	// Namespace is empty for what has none, and for what belongs to the unit above it.
	Namespace string `json:"namespace,omitempty"`
	Name      string `json:"name"`
	// Cluster is the name of the cluster of a fleet in which it is, empty for the one
	// that was asked.
	Cluster string `json:"cluster,omitempty"`
}

// RefOf refers to a ConfigMap or Secret.
func RefOf(o content.Object) *Ref {
	return &Ref{Kind: string(o.Kind), Namespace: o.Namespace, Name: o.Name}
}

// String is how kubectl names it: "rolloutgroup/ingester".
func (r Ref) String() string { return strings.ToLower(r.Kind) + "/" + r.Name }
