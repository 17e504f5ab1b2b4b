package kube

import (
	"errors"
	"fmt"
	"sync"

	helmv2 "github.com/fluxcd/helm-controller/api/v2"
	kustomizev1 "github.com/fluxcd/kustomize-controller/api/v1"
	sourcev1 "github.com/fluxcd/source-controller/api/v1"
	"k8s.io/apimachinery/pkg/runtime"
	utilruntime "k8s.io/apimachinery/pkg/util/runtime"
	"k8s.io/client-go/kubernetes/scheme"

	fleet "github.com/spillway-dev/spillway/api/fleet/v1alpha1"
	"github.com/spillway-dev/spillway/api/kudo/v1beta1"
	"github.com/spillway-dev/spillway/api/spillway/v1alpha1"
	zonesv1 "github.com/spillway-dev/spillway/api/zones/v1"
)

// Served returns the kinds that Kubernetes itself serves. client-go's [scheme.Scheme] has those besides that any
// library adds to it, as Helm's does with CustomResourceDefinitions.
var Served = sync.OnceValue(func() *runtime.Scheme {
	s := runtime.NewScheme()
	utilruntime.Must(scheme.AddToScheme(s))
	return s
})

// NewScheme knows the kinds of Kubernetes, those of Spillway, and those of Flux that
// the fleet is made of.
func NewScheme() (*runtime.Scheme, error) {
	s := runtime.NewScheme()
	err := errors.Join(
		scheme.AddToScheme(s), v1alpha1.AddToScheme(s), v1beta1.AddToScheme(s), zonesv1.AddToScheme(s), fleet.AddToScheme(s),
		kustomizev1.AddToScheme(s), helmv2.AddToScheme(s), sourcev1.AddToScheme(s),
	)
	if err != nil {
		return nil, fmt.Errorf("make the kinds known: %w", err)
	}
	return s, nil
}
