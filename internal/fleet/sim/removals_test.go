package sim

import (
	"fmt"
	"slices"

	"k8s.io/apimachinery/pkg/util/intstr"

	"github.com/spillway-dev/spillway/api/fleet/v1alpha1"
	"github.com/spillway-dev/spillway/internal/fleet/hub/model"
)

// grant notes how many removals the user has approved.
func (o *oracle) grant(approval string) {
	n := 0
	_, _ = fmt.Sscanf(approval, "%d-", &n)
	o.grants[approval] = n
}

// loses is true of a cluster that is not selected and has the module, or still what ran.
func loses(v *model.Observed, c *model.Cluster) bool {
	r := recordOf(v, c.Name)

	return r != nil && (r.Assigned || r.Leaving) && !c.Deleting && !selects(&v.Module.Spec, c)
}

// isOver is true of a view in which more clusters lose the module than may without an
// approval.
func (o *oracle) isOver(v *model.Observed) bool {
	limit, lose, have := v.Module.Spec.Rollout.MaxRemoved, 0, 0
	if limit == nil {
		limit = new(intstr.FromString("10%"))
	}

	for i := range v.Clusters {
		c := &v.Clusters[i]
		r := recordOf(v, c.Name)
		lose += one(loses(v, c))
		have += one(r != nil && r.Assigned || loses(v, c) || isPending(v, c.Name, r))
	}

	return lose > removalsOf(limit, have)
}

func removalsOf(limit *intstr.IntOrString, n int) int {
	if limit.StrVal == "0%" {
		return 0
	}

	return limitOf(limit, n)
}

// permitted counts the removals that a status permits, as it is written.
func (o *oracle) permitted(r *request) {
	for _, old := range o.world.module.status.Moves {
		kept := slices.ContainsFunc(r.status.Moves, func(m v1alpha1.Move) bool { return old.Cluster == m.Cluster && m.Remove })
		if !old.Remove || kept || !o.removals[old.Cluster] {
			continue
		}
		// It comes to nothing, and must not be made any more.
		delete(o.removals, old.Cluster)

		switch by := o.charged[old.Cluster]; by {
		case "":
		case unapproved:
			o.recent = max(0, o.recent-1)
		default:
			o.grants[by]++
		}
		delete(o.charged, old.Cluster)
	}

	if !r.permits {
		return
	}

	for _, m := range r.status.Moves {
		known := slices.ContainsFunc(o.world.module.status.Moves, func(old v1alpha1.Move) bool {
			return old.Cluster == m.Cluster && old.Remove && (old.At.Equal(&m.At) || !o.world.assemblages[m.Cluster].assigned)
		})
		if !m.Remove || known || o.removals[m.Cluster] || o.isVoid(&m) {
			continue
		}
		o.world.count("removals")
		o.removals[m.Cluster] = true
		o.checkRecent(r, m.Cluster)

		if !r.over {
			continue
		}
		o.grants[r.approval]--
		o.charged[m.Cluster] = r.approval

		if o.grants[r.approval] < 0 {
			o.complainf("%s loses the module, more do than may, and approval %q is not for it", m.Cluster, r.approval)
		}
	}
}

// isVoid is true of a removal that can take nothing away: the assignment that it names is
// gone, which an old view does not show.
func (o *oracle) isVoid(m *v1alpha1.Move) bool {
	a := o.world.assemblages[m.Cluster]

	return !a.assigned || m.AssignedAt != nil && !a.at.Equal(m.AssignedAt.Time)
}

// checkRemoval: a removal is of a cluster that is not selected, and the last stage goes
// first.
func (o *oracle) checkRemoval(v *model.Observed, m *v1alpha1.Move) {
	i := slices.IndexFunc(v.Clusters, func(c model.Cluster) bool { return c.Name == m.Cluster })

	switch {
	case i < 0 || !loses(v, &v.Clusters[i]):
		o.complainf("%s loses the module, and is selected or has nothing", m.Cluster)

		return
	case v.Module.Spec.Suspend:
		o.complainf("%s loses the module though it is suspended", m.Cluster)
	case v.Module.Spec.Strategy == v1alpha1.Replace || m.Repair: // what is unready waits for no other
		return
	}

	for j := range v.Clusters {
		other := &v.Clusters[j]
		r := recordOf(v, other.Name)
		if loses(v, other) && (r.Leaving || isWell(v, other, r)) && o.stageNumber(other) > o.stageNumber(&v.Clusters[i]) {
			o.complainf("%s loses the module before %s of a later stage", m.Cluster, other.Name)
		}
	}
}

// isWell is true of a cluster that runs what it is assigned, and is to run nothing else.
func isWell(v *model.Observed, c *model.Cluster, r *model.Record) bool {
	return c.Ready && !c.Unreachable && r.HasSucceeded() && !isPending(v, c.Name, r)
}

// stageNumber is the place of a cluster's stage, after all others if it has none.
func (o *oracle) stageNumber(c *model.Cluster) int {
	stages, name := o.world.module.spec.Rollout.Stages, o.stageOf(c)
	if i := slices.IndexFunc(stages, func(s v1alpha1.Stage) bool { return s.Name == name }); i >= 0 {
		return i
	}

	return len(stages)
}

// tookAway checks the moment in which a cluster loses the module: that was permitted, and
// what is down in its stage, itself included, is within the budget. One that was down
// counts with other removals only.
func (o *oracle) tookAway(m *manager, c *cluster, up bool) {
	w := o.world
	if !o.removals[c.Name] {
		o.complainf("%s loses the module, and no status has permitted it", c.Name)
	}
	delete(o.removals, c.Name)
	delete(o.charged, c.Name)
	delete(o.disrupted, c.Name)

	if w.module.spec.Strategy == v1alpha1.Replace {
		return
	}
	stage, down, all := o.stageOf(&c.Cluster), []string{c.Name}, 0
	isDown := func(other *cluster) bool {
		leaves := w.assemblages[other.Name].leaving && !w.isSelected(&other.Cluster) // one that is selected again is new
		return leaves || up && o.disrupted[other.Name] && !o.isWaived(other.Name)
	}
	o.withinTotal(m, c, isDown)

	for i := range w.clusters {
		other := &w.clusters[i]
		if other.Name == c.Name || o.stageOf(&other.Cluster) != stage {
			continue
		}
		all++

		if isDown(other) {
			down = append(down, other.Name)
		}
	}

	if limit := o.budget(stage, all+1) + o.tolerated(down); len(down) > limit {
		o.complainf("stage %q: %s are down or lose the module, %d may, the last by %s", stage, namesOf(down), limit, m.name)
	}
}
