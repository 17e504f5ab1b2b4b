package hub

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/spillway-dev/spillway/api/fleet/v1alpha1"
	"github.com/spillway-dev/spillway/internal/fleet/agent"
	"github.com/spillway-dev/spillway/internal/fleet/hub/model"
)

// compare finds out whether a sync is what its revision says, unless that is known of
// this version of the assemblage and of the revision.
func (o *observer) compare(s *snapshot, m *memory, a *assembled, r *model.Record) {
	policy := s.Module.DeletionPolicy()
	known := m.drifts[r.UID]
	if known.version == r.ResourceVersion && known.policy == string(policy) && known.as != "" && known.as == s.versionOf(known.revision) {
		r.Drifted, r.Edited, r.Follows, r.Tagged, r.Revision = known.drifted, known.edited, known.follows, known.tagged, known.revision
		r.Stale = s.isStale(a, r, known.corrected)
		return
	}
	o.adopt(s, a, r)
	revision := s.revisions[r.Revision]
	if revision == nil {
		return // it is unknown what it should be
	}
	assignment, sync, _ := a.sync(s.key.Name)
	wanted := o.kind.assignment(&s.Module, r.Revision, r.Overrides, assignment.AssignedAt, assignment.Unready)
	template := s.templates[r.Revision].With(r.Overrides)
	r.Drifted = !o.kind.says(sync, wanted, template)
	r.Edited = r.Drifted && !o.kind.says(sync, *assignment, template)
	if r.Drifted && o.kind.says(sync, wanted, s.Revision(r.Revision).Written.With(r.Overrides)) {
		follow(r, revision.Status.Resolved)
	}
	corrected := known.correctedBy(a, r)
	m.drifts[r.UID] = drift{
		version: r.ResourceVersion, revision: r.Revision, as: s.versionOf(r.Revision), policy: string(policy),
		drifted: r.Drifted, edited: r.Edited, follows: r.Follows, tagged: r.Tagged, corrected: corrected,
	}
	r.Stale = s.isStale(a, r, corrected)
}

// correctedBy is the generation by which what was not what its revision says was put
// right, of an assemblage that comes after one of which this is known.
func (d *drift) correctedBy(a *assembled, r *model.Record) int64 {
	switch {
	case d.revision != r.Revision:
		return 0
	case d.drifted && !r.Drifted:
		return a.GetGeneration()
	default:
		return d.corrected
	}
}

// isStale is true of a success that is none of what the sync says now: it is of another
// commit than the one that the tag was found to be, or of a generation before the one
// that put the sync right. Who reports no generation is believed.
func (s *snapshot) isStale(a *assembled, r *model.Record, corrected int64) bool {
	if r.Edited || r.Follows || !r.HasSucceeded() {
		return false
	}
	resolved := s.resolved(r.Revision)
	if resolved == "" { // what it turns out to be is written to all: it must be what the cluster runs
		corrected = a.GetGeneration()
	}
	if seen := a.status.ObservedGeneration; seen != 0 && seen < corrected {
		return true
	}
	return r.Resolved != "" && s.isPinned(r.Revision) && agent.Digest(r.Resolved) != agent.Digest(resolved)
}

// isPinned is true of a revision that says a commit where its template names a tag.
func (s *snapshot) isPinned(revision string) bool {
	r := s.Revision(revision)
	return r != nil && r.Pinned
}

// follow compares a sync that follows a tag whose commit or digest is known. One that
// is updating continues; the commit or digest is written to it later.
func follow(r *model.Record, resolved string) {
	r.Tagged = true
	succeeded := r.HasSucceeded()
	r.Drifted = succeeded && agent.Digest(r.Resolved) != agent.Digest(resolved)
	r.Follows = !r.Drifted && (succeeded || r.Reported && r.State == v1alpha1.StateFailed)
}

// versionOf is the version of a revision, empty if there is none.
func (s *snapshot) versionOf(revision string) string {
	if r := s.revisions[revision]; r != nil {
		return string(r.UID) + "/" + r.ResourceVersion
	}
	return ""
}

// resolved is what the tag of a revision turned out to be.
func (s *snapshot) resolved(revision string) string {
	if r := s.revisions[revision]; r != nil {
		return r.Status.Resolved
	}
	return ""
}

// adopt recognizes a sync that says no revision but is what one says: whichever client
// wrote it before, nothing is updated.
func (o *observer) adopt(s *snapshot, a *assembled, r *model.Record) {
	if r.Revision != "" {
		return
	}
	assignment, sync, _ := a.sync(s.key.Name)
	for name, revision := range s.revisions {
		if o.kind.says(sync, *assignment, &revision.Spec.Template) {
			r.Revision = name
			return
		}
	}
}

// assignment is what a module says of a sync besides what its revision does.
func (k *kind) assignment(m *model.Module, revision string, overrides []string, at *metav1.MicroTime, unready bool) v1alpha1.Assignment {
	return v1alpha1.Assignment{
		Name: m.Name, Revision: revision, Overrides: overrides, AssignedAt: at, Unready: unready, DeletionPolicy: m.DeletionPolicy(), GivenUp: m.GivenUp(),
	}
}

// drift is whether a sync was what its revision says, and when that was so.
type drift struct {
	version  string
	revision string
	// as is the version of the revision.
	as      string
	policy  string
	drifted bool
	edited  bool
	follows bool
	tagged  bool
	// corrected is the generation of the assemblage by which it was put right, zero if
	// it was not.
	corrected int64
}
