package kube

import (
	"errors"
	"fmt"

	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/kubernetes/scheme"

	fleet "github.com/spillway-dev/spillway/api/fleet/v1alpha1"
	"github.com/spillway-dev/spillway/api/kudo/v1beta1"
	"github.com/spillway-dev/spillway/api/spillway/v1alpha1"
)

// NewScheme knows the kinds of Kubernetes, and those of Spillway.
func NewScheme() (*runtime.Scheme, error) {
	s := runtime.NewScheme()
	if err := errors.Join(scheme.AddToScheme(s), v1alpha1.AddToScheme(s), v1beta1.AddToScheme(s), fleet.AddToScheme(s)); err != nil {
		return nil, fmt.Errorf("make the kinds known: %w", err)
	}
	return s, nil
}
