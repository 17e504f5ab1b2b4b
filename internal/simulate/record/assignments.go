package record

import (
	"cmp"
	"time"

	"sigs.k8s.io/controller-runtime/pkg/client"

	fleetv1 "github.com/spillway-dev/spillway/api/fleet/v1alpha1"
)

// assignment is a module that a cluster is to have, and at which version.
type assignment struct{ module, version string }

// assemblage sees what a cluster is assigned.
func (r *Recorder) assemblage(at time.Duration, kind string, before, after client.Object) {
	was := map[string]string{}
	for _, a := range versionsOf(before) {
		was[a.module] = a.version
	}
	for _, a := range versionsOf(after) {
		if was[a.module] == a.version {
			continue
		}
		r.step(Step{
			At: at, Ring: RingFleet, Namespace: after.GetNamespace(), Object: Reference(kind, a.module), Unit: after.GetName(),
			Does: "is assigned", From: was[a.module], To: a.version,
		})
	}
}

func versionsOf(obj client.Object) []assignment {
	var all []assignment
	switch a := obj.(type) {
	case *fleetv1.ProxyAssemblage:
		for i := range a.Spec.Assemblage.Syncs {
			s := &a.Spec.Assemblage.Syncs[i]
			all = append(all, assignment{s.Name, version(s.Source, s.Revision)})
		}
	case *fleetv1.RemoteAssemblage:
		for i := range a.Spec.Syncs {
			s := &a.Spec.Syncs[i]
			all = append(all, assignment{s.Name, version(s.Source, s.Revision)})
		}
	}
	return all
}

// version is how people call what a source has.
func version(s *fleetv1.Source, revision string) string {
	if s == nil || s.Git == nil {
		return revision
	}
	return cmp.Or(s.Git.Version.Tag, short(s.Git.Version.Revision), revision)
}
