package act

import (
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	fleetv1 "github.com/spillway-dev/spillway/api/fleet/v1alpha1"
	"github.com/spillway-dev/spillway/internal/cli/change"
	"github.com/spillway-dev/spillway/internal/describe"
	"github.com/spillway-dev/spillway/internal/fleet/hub/model"
	"github.com/spillway-dev/spillway/internal/shell"
)

// Module is a module as a person names it.
type Module struct{ describe.Ref }

// Key returns the namespace and name.
func (m Module) Key() types.NamespacedName {
	return types.NamespacedName{Namespace: m.Namespace, Name: m.Name}
}

// Command is what to type to do something with the module.
func (m Module) Command(verb string, args ...string) string {
	return "spillway " + verb + " " + shell.Join(append([]string{m.String(), "-n", m.Namespace}, args...)...)
}

// Assemblages is what kubectl calls the assemblages of such modules.
func (m Module) Assemblages() string {
	if m.Kind == model.KindBootstrap {
		return "remoteassemblage"
	}
	return "proxyassemblage"
}

// reference is what an Event about the module is about.
func (m Module) reference(module client.Object) corev1.ObjectReference {
	return change.About(fleetv1.GroupVersion.WithKind(m.Kind), module)
}
