package standing

import (
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// The names of the rings, as the manager's flag has them.
const (
	Config = "config"
	Zones  = "zones"
	Plans  = "plans"
	Fleet  = "fleet"
)

func microMoment(t *metav1.MicroTime) *time.Time {
	if t == nil {
		return nil
	}
	return &t.Time
}

// configNamed is the object that the ring names: "Secret vault/db: password".
func configNamed(text, namespace string) *Ref {
	object, _, _ := strings.Cut(text, ":")
	kind, name, ok := strings.Cut(object, " ")
	if !ok {
		return nil
	}
	if elsewhere, there, ok := strings.Cut(name, "/"); ok {
		namespace, name = elsewhere, there
	}
	return &Ref{Kind: kind, Namespace: namespace, Name: name}
}
