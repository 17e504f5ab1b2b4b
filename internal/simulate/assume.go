package simulate

import (
	"context"
	"fmt"
	"strings"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/spillway-dev/spillway/internal/config/content"
)

// Assumption is config that is taken to exist, though no manifest has it.
type Assumption struct {
	// Object is secret/NAME or configmap/NAME.
	Object    string `json:"object"`
	Namespace string `json:"namespace"`
	// Why says who may make it, or that it was asked for.
	Why string `json:"why"`
	// Keys are those that it is taken to have.
	Keys []string `json:"keys,omitempty"`
}

// Assume returns the assumption that an object exists.
func Assume(of content.Object, keys []string, why string) Assumption {
	return Assumption{Object: strings.ToLower(string(of.Kind)) + "/" + of.Name, Namespace: of.Namespace, Why: why, Keys: keys}
}

// assume creates what is taken to exist, and does not yet.
func (s *simulation) assume(ctx context.Context) error {
	for _, a := range s.options.Assumed {
		obj := a.object()
		if s.Store.Object(obj, client.ObjectKeyFromObject(obj)) != nil {
			continue
		}
		if err := s.Store.Create(ctx, obj); err != nil {
			return fmt.Errorf("assume %s: %w", a.Object, err)
		}
		s.assumed = append(s.assumed, a)
	}
	return nil
}

// object is what is taken to exist.
func (a *Assumption) object() client.Object {
	kind, name, _ := strings.Cut(a.Object, "/")
	meta := metav1.ObjectMeta{Namespace: a.Namespace, Name: name}
	if kind == "configmap" {
		cm := &corev1.ConfigMap{ObjectMeta: meta, Data: map[string]string{}}
		for _, key := range a.Keys {
			cm.Data[key] = "assumed"
		}
		return cm
	}
	secret := &corev1.Secret{ObjectMeta: meta, Data: map[string][]byte{}}
	for _, key := range a.Keys {
		secret.Data[key] = []byte("assumed")
	}
	return secret
}
