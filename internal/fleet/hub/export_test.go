package hub

import (
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/handler"
)

// ToModules is what wakes Modules when a ProxyAssemblage has changed.
func ToModules(modulesOf client.Reader) handler.EventHandler { return modules().toModules(modulesOf) }
