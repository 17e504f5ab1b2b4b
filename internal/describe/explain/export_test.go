package explain

import "github.com/spillway-dev/spillway/internal/describe"

// CommandsAbout are commands about what a tenant has named.
func CommandsAbout(ref describe.Ref) []string {
	a := &asker{}
	inside := a.inside(ref.Name, describe.Ref{Kind: describe.KindSecret, Namespace: ref.Namespace, Name: ref.Name})
	return []string{
		a.kubectl("get", ref, "-o", ref.Name), a.spillway("explain", ref, ref.Name), "kubectl get x" + namespaceFlag(ref),
		inside.First, inside.kubectl("get", ref),
	}
}
