package fleet

import (
	"strings"

	"k8s.io/apimachinery/pkg/types"

	"github.com/spillway-dev/spillway/internal/cli/command"
	"github.com/spillway-dev/spillway/internal/fleet/hub/model"
)

// Module is a module as a person names it.
type Module struct {
	Kind, Namespace, Name string
}

// moduleNamed returns the module if the argument is of one of the kinds.
func moduleNamed(arg string) (Module, bool) {
	ref, ok := command.NamedAs(arg, model.KindModule, model.KindBootstrap)
	return Module{Kind: ref.Kind, Name: ref.Name}, ok
}

// Key returns the namespace and name.
func (m Module) Key() types.NamespacedName {
	return types.NamespacedName{Namespace: m.Namespace, Name: m.Name}
}

// command is what to type to do something with the module.
func (m Module) command(verb string, args ...string) string {
	return strings.Join(append([]string{"spillway", verb, m.String(), "-n", m.Namespace}, args...), " ")
}

// String is how kubectl names it.
func (m Module) String() string { return strings.ToLower(m.Kind) + "/" + m.Name }

// assemblages is what kubectl calls the assemblages of such modules.
func (m Module) assemblages() string {
	if m.Kind == model.KindBootstrap {
		return "remoteassemblage"
	}
	return "proxyassemblage"
}
