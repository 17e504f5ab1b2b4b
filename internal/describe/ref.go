package describe

import (
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
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

// ConfigNamed is the object that the config ring names to users of a namespace: "Secret
// vault/db: password", or "Secret db@9676b5e". It is nil if none is named.
func ConfigNamed(text, namespace string) *Ref {
	if i := strings.IndexAny(text, ":@"); i >= 0 {
		text = text[:i]
	}
	kind, name, ok := strings.Cut(text, " ")
	if !ok {
		return nil
	}
	if elsewhere, there, ok := strings.Cut(name, "/"); ok {
		namespace, name = elsewhere, there
	}
	return &Ref{Kind: kind, Namespace: namespace, Name: name}
}

// String is how kubectl names it: "rolloutgroup/ingester".
func (r Ref) String() string { return strings.ToLower(r.Kind) + "/" + r.Name }
