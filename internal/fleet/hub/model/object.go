package model

import (
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/spillway-dev/spillway/api/fleet/v1alpha1"
)

// The kinds of modules.
const (
	KindModule    = "Module"
	KindBootstrap = "BootstrapModule"
)

// Parts are the spec and the status of a module of either kind.
func Parts(obj client.Object) (*v1alpha1.ModuleSpec, *v1alpha1.ModuleStatus) {
	switch o := obj.(type) {
	case *v1alpha1.Module:
		return &o.Spec, &o.Status
	case *v1alpha1.BootstrapModule:
		return &o.Spec, &o.Status
	default:
		return &v1alpha1.ModuleSpec{}, &v1alpha1.ModuleStatus{}
	}
}

// KindOf is the kind of a module.
func KindOf(obj client.Object) string {
	if _, ok := obj.(*v1alpha1.BootstrapModule); ok {
		return KindBootstrap
	}
	return KindModule
}

// New is an empty module of a kind.
func New(moduleKind string) client.Object {
	if moduleKind == KindBootstrap {
		return &v1alpha1.BootstrapModule{}
	}
	return &v1alpha1.Module{}
}

// NewAssemblage is an empty assemblage as modules of a kind write them.
func NewAssemblage(moduleKind string) client.Object {
	if moduleKind == KindBootstrap {
		return &v1alpha1.RemoteAssemblage{}
	}
	return &v1alpha1.ProxyAssemblage{}
}
