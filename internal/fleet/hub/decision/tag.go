package decision

import (
	"maps"
	"slices"
	"strings"

	"github.com/spillway-dev/spillway/api/fleet/v1alpha1"
	"github.com/spillway-dev/spillway/internal/fleet/hub/model"
)

// resolve plans to write down what tags turned out to be, and nothing else: a cluster that is
// assigned such a revision from now on is to get that. It is false if all is known.
func (d *decision) resolve(p *Plan) bool {
	writes := d.unresolved()
	if len(writes) == 0 {
		return false
	}
	p.Writes = slices.DeleteFunc(writes, func(w Write) bool { return d.isPutOff(w.Revision) })
	p.Status = d.status()
	return true
}

// unresolved are for revisions of which a cluster has told for the first time what
// they turned out to be.
func (d *decision) unresolved() []Write {
	var writes []Write
	for i := range d.o.Revisions {
		r := &d.o.Revisions[i]
		if r.Resolved != "" || r.Deleting {
			continue
		}
		resolved := d.inherited(r)
		if i := slices.IndexFunc(d.o.Records, func(record model.Record) bool { return record.Resolves(r.Name) }); i >= 0 && resolved == "" {
			resolved = d.o.Records[i].Resolved
		}
		if resolved != "" {
			writes = append(writes, Write{Act: Resolve, Revision: r.Name, UID: r.UID, Resolved: resolved})
		}
	}
	return writes
}

// pinning is a cluster that runs what it was assigned by a tag, and is being assigned the
// commit or digest, empty if there is none: until it has reported that, no other cluster is
// updated, as it would be reconciled at the same time.
func (d *decision) pinning() string {
	target := d.o.Revision(d.target)
	if target == nil || !target.Pinned {
		return ""
	}
	for _, m := range d.members {
		if !m.isUp() || m.record.Revision != d.target || m.record.Drifted || !d.mayCorrect(m) {
			continue
		}
		if m.record.Follows || !m.record.Tagged && m.record.Resolved == target.Resolved && namesTag(target.Resolved) {
			return m.Name
		}
	}
	return ""
}

// namesTag is true of a commit or digest that was found by a tag. One that was not is what an
// earlier hub had assigned.
func namesTag(resolved string) bool { return strings.Contains(resolved, "@") }

// anyCluster permits to write to every cluster what a tag is: one that runs it has shown
// that it can be fetched.
const anyCluster = "*"

// canaries returns, for each revision, the cluster that gets the commit of its tag before
// all others that follow that tag. There is none while one that got the commit, or was
// assigned it from the outset, is updating; and none is needed any more once one of
// these runs the commit by that name. So a commit that cannot be fetched, because it
// is on no branch, is found out by one cluster.
func (d *decision) canaries() map[string]string {
	if !slices.ContainsFunc(d.o.Records, func(r model.Record) bool { return r.Follows }) {
		return nil
	}
	canaries, updating := map[string]string{}, map[string]bool{}
	for _, m := range d.members {
		if !m.isAssigned() || m.record.Drifted {
			continue
		}
		r := m.record
		switch known := d.o.Revision(r.Revision); {
		case known == nil || known.Resolved == "":
		case r.Follows && canaries[r.Revision] == "" && d.mayCorrect(m) && m.isUp():
			canaries[r.Revision] = m.Name
		case r.Tagged:
		case r.HasSucceeded() && !r.Stale && (r.Resolved != known.Resolved || !namesTag(known.Resolved)):
			canaries[r.Revision] = anyCluster
		case m.Ready && !m.isUnreachable() && r.State != v1alpha1.StateFailed:
			updating[r.Revision] = true
		}
	}
	maps.DeleteFunc(canaries, func(revision, name string) bool { return name != anyCluster && updating[revision] })
	return canaries
}
