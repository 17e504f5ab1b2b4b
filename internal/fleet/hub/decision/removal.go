package decision

import (
	"k8s.io/apimachinery/pkg/labels"

	"github.com/spillway-dev/spillway/api/fleet/v1alpha1"
	"github.com/spillway-dev/spillway/internal/fleet/hub/model"
)

// removals are for clusters that are there, on nobody's way out, and not selected
// any more. One that merely is not ready, or is not known at present, keeps what
// it has.
func (d *decision) removals() []Write {
	var writes []Write
	for i := range d.o.Clusters {
		c := &d.o.Clusters[i]
		r := d.record(c.Name)
		if r == nil || !r.Assigned || c.Deleting || d.isSelected(c) {
			continue
		}
		writes = append(writes, d.removal(c, r)...)
	}
	return writes
}

func (d *decision) isSelected(c *model.Cluster) bool {
	return d.selector != nil && d.selector.Matches(labels.Set(c.Labels))
}

// removal takes a sync away. Where what runs is to stay, that has to have come to
// the Kustomization before: nothing else keeps Flux from deleting it.
func (d *decision) removal(c *model.Cluster, r *model.Record) []Write {
	switch {
	case d.isPutOff(r.Cluster) || d.o.Foreign[r.Cluster]:
		return nil
	case r.DeletionPolicy != d.o.Module.DeletionPolicy():
		return []Write{{Act: Correct, Cluster: c, Record: r, Revision: r.Revision, AssignedAt: r.AssignedAt}}
	case d.o.Module.DeletionPolicy() == v1alpha1.Orphan && !r.Noticed:
		return nil
	default:
		return []Write{{Act: Unassign, Cluster: c, Record: r}}
	}
}

// dissolve takes away everything that was assigned, also from clusters that are
// not known any more, and lets the module go once nothing can come back.
func (d *decision) deletionWrites() []Write {
	if !d.o.Module.Finalized {
		return nil
	}
	clusters := make(map[string]*model.Cluster, len(d.o.Clusters))
	for i := range d.o.Clusters {
		clusters[d.o.Clusters[i].Name] = &d.o.Clusters[i]
	}
	var writes []Write
	left := 0
	for i := range d.o.Records {
		r := &d.o.Records[i]
		if r.Assigned && !d.o.Foreign[r.Cluster] {
			left++
			writes = append(writes, d.removal(clusters[r.Cluster], r)...)
		}
	}
	if left == 0 && len(d.intents.Kept()) == 0 {
		return []Write{{Act: RemoveFinalizer}}
	}
	return writes[:min(len(writes), maxWrites)]
}
