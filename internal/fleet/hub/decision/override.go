package decision

import (
	"slices"
	"strings"

	"github.com/spillway-dev/spillway/internal/fleet/hub/model"
)

// A revision may be something else on each cluster, by the overrides that match its labels. A
// cluster is at the target if what it is assigned is what the target is on it, whichever revision
// that names: nothing is written to it then. If its labels match other overrides than it has, it
// is updated like one at another revision, in the budget of its stage.

// current is the revision that a cluster is at, as far as the target is concerned.
func (d *decision) current(m *member) string {
	r := m.record
	if !d.varies || !m.belongs { // of others the labels are not known, or do not matter
		return r.Revision
	}
	has, target := d.o.Revision(r.Revision), d.o.Revision(d.target)
	if has == nil || target == nil {
		return r.Revision
	}
	switch wants := target.Variants.For(m.Labels); {
	case isSame(has, r.Overrides, target, wants):
		return d.target
	case r.Revision == d.target:
		return d.target + " with " + namesOf(r.Overrides) + " instead of " + namesOf(wants)
	default:
		return r.Revision
	}
}

func namesOf(overrides []string) string {
	switch len(overrides) {
	case 0:
		return "no override"
	case 1:
		return "override " + overrides[0]
	default:
		return "overrides " + strings.Join(overrides, ", ")
	}
}

// isSame reports whether one revision with some overrides is the same as another with others. While it
// is not known what the tag of the other resolves to, it is taken for what the one has found.
func isSame(a *model.Revision, with []string, b *model.Revision, and []string) bool {
	switch {
	case a.Name == b.Name && slices.Equal(with, and):
		return true
	case !a.Variants.Varies() && !b.Variants.Varies(): // the name says what it is
		return a.Name == b.Name
	case a.Variants.Content(with) == b.Variants.Content(and):
		return true
	default:
		return b.Resolved == "" && a.Written.Content(with) == b.Written.Content(and)
	}
}

// isUntouched is true of a cluster at the target on which that is the same as what reached all
// clusters. It shows nothing, and what becomes of it is not the fault of the target. Of what is
// new to the cluster, the success or the failure counts, whichever revision brought it.
func (d *decision) isUntouched(m *member) bool {
	if !d.varies || !m.belongs || m.leaf.Current != d.target || !d.isNews() || m.move != nil {
		return false
	}
	good, target := d.o.Revision(d.good), d.o.Revision(d.target)
	return good != nil && target != nil && isSame(good, good.Variants.For(m.Labels), target, target.Variants.For(m.Labels))
}

// overridesOf are those of a revision that match the labels of a cluster.
func (d *decision) overridesOf(revision string, m *member) []string {
	if r := d.o.Revision(revision); r != nil && d.varies {
		return r.Variants.For(m.Labels)
	}
	return nil
}

// inherited is what the tag of the target resolves to, empty if that is not known: the same as that of
// a revision which is the same on a cluster. Otherwise clusters at one revision would differ.
func (d *decision) inherited(r *model.Revision) string {
	if !d.varies || r.Name != d.target {
		return ""
	}
	for _, m := range d.members {
		if m.leaf.Current != d.target || !m.isAssigned() || m.move != nil {
			continue
		}
		if has := d.o.Revision(m.record.Revision); has != nil && has.Name != d.target && has.Resolved != "" {
			return has.Resolved
		}
	}
	return ""
}

// revision is the one that a cluster was assigned, or is being assigned.
func (m *member) revision() string {
	switch {
	case m.move != nil:
		return m.move.Revision
	case m.isAssigned():
		return m.record.Revision
	default:
		return ""
	}
}
