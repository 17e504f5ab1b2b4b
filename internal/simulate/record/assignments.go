package record

import (
	"cmp"
	"time"

	"sigs.k8s.io/controller-runtime/pkg/client"

	fleetv1 "github.com/spillway-dev/spillway/api/fleet/v1alpha1"
)

// assignment is a module that a cluster is to have, and at which version.
type assignment struct{ module, version string }

// assemblage sees what a cluster is assigned, and what it loses.
func (r *Recorder) assemblage(at time.Duration, kind string, before, after client.Object) {
	step := func(a assignment, does, from string) {
		r.step(Step{
			At: Offset(at), Ring: RingFleet, Namespace: after.GetNamespace(), Object: Reference(kind, a.module), Unit: after.GetName(),
			Does: does, From: from, To: a.version,
		})
	}
	if after == nil { // it goes with its cluster
		return
	}
	was, is := map[string]string{}, map[string]bool{}
	for _, a := range versionsOf(before) {
		was[a.module] = a.version
	}
	for _, a := range versionsOf(after) {
		is[a.module] = true
		if was[a.module] != a.version {
			step(a, "is assigned", was[a.module])
		}
	}
	for _, a := range versionsOf(before) {
		if !is[a.module] {
			step(a, "loses", "")
		}
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
	switch {
	case s != nil && s.Helm != nil:
		return s.Helm.Version
	case s != nil && s.Bucket != nil:
		return cmp.Or(s.Bucket.Prefix, revision)
	case s == nil || s.Git == nil:
		return revision
	}
	return cmp.Or(s.Git.Version.Tag, s.Git.Version.Branch, s.Git.Version.SemVer, short(s.Git.Version.Revision), revision)
}
