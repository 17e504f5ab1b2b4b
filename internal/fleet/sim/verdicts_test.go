package sim

import (
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/util/intstr"

	"github.com/spillway-dev/spillway/api/fleet/v1alpha1"
	"github.com/spillway-dev/spillway/internal/fleet/hub/decision"
	"github.com/spillway-dev/spillway/internal/fleet/hub/model"
	"github.com/spillway-dev/spillway/internal/fleet/outcome"
	"github.com/spillway-dev/spillway/rollout"
)

// begins forgets what a hub that was lost had permitted. What is down is as far down as before.
func (o *oracle) begins() {
	clear(o.told)
	clear(o.retried) // a new hub finds the copy of a verdict that was retried before
	o.recent, o.lately = 0, time.Time{}
	o.grants, o.removals, o.charged = map[string]int{}, map[string]bool{}, map[string]string{}
}

// checkVerdict checks that nothing is given up for nothing: a cluster that answers has failed with it or is
// late, and it was not so before; or a gate was refused, or clusters tell that it was given up before.
func (o *oracle) checkVerdict(v *model.Observed, p *decision.Plan) {
	given := p.Status.RolledBack
	if given == "" || given == v.Module.Status.RolledBack {
		return
	}
	gate := slices.ContainsFunc(v.Gates, func(g model.Gate) bool { return g.Revision == given && g.Verdict == rollout.Refused })
	told := slices.ContainsFunc(v.Records, func(r model.Record) bool {
		return r.Found != nil && r.Found.GivenUp != nil && r.Found.GivenUp.Revision == given
	})

	if told && isRetried(&v.Module.Status, given) {
		o.complainf("%s is given up because clusters tell so, and was retried", given)
	}

	if gate || told || slices.ContainsFunc(v.Records, func(r model.Record) bool { return r.Revision == given && r.Assigned && o.testifies(v, &r) }) {
		return
	}
	o.complainf("%s is given up for nothing: %s", given, p.At().Message())
}

// isRetried is true of a revision that is rolled out once more.
func isRetried(s *v1alpha1.ModuleStatus, revision string) bool {
	return s.Retried != nil && s.Retried.Revision == revision
}

// checkRetry checks that a verdict about what the user wants ends by a retry of that very verdict, once, and not
// while a cluster has what was given up and could return.
func (o *oracle) checkRetry(r *request) {
	w := o.world
	was, is := &w.module.status, r.status
	if was.RolledBack == "" || was.RolledBack != w.asked() || is.RolledBack != "" {
		return
	}
	w.count("retried")

	verdict := was.RolledBack + was.GivenUp.At.String()
	gate := slices.ContainsFunc(w.gates, func(g model.Gate) bool { return g.Name == was.GivenUp.Gate && g.Verdict == rollout.Passed })
	if o.retried[verdict] || !gate && !w.module.retry.Ends(was) {
		o.complainf("%s is tried once more, and no user retries that", was.RolledBack)
	}
	o.retried[verdict] = true
}

// testifies is true of a cluster that is evidence against what it is assigned. One that is unknown is, if it
// was reported to have failed.
func (o *oracle) testifies(v *model.Observed, r *model.Record) bool {
	at := slices.IndexFunc(v.Clusters, func(c model.Cluster) bool { return c.Name == r.Cluster })

	switch {
	case r.Unready && !r.Proven || r.Reported && r.Reason == outcome.ReasonSuspended:
		return false
	case r.Reported && r.State == v1alpha1.StateFailed:
		return at < 0 || v.Clusters[at].Ready && !v.Clusters[at].Unreachable
	case at < 0 || !v.Clusters[at].Ready || v.Clusters[at].Unreachable:
		return false
	default:
		late := !v.Now.Before(r.AssignedAt.Add(time.Duration(*v.Module.Spec.Rollout.ProgressDeadlineSeconds) * time.Second))

		return late && (!r.HasSucceeded() || r.Drifted || r.Stale)
	}
}

// checkSent checks of a move that was not permitted before that it sends nothing that was given up, and nothing
// to a cluster from which nothing would come.
func (o *oracle) checkSent(v *model.Observed, m *v1alpha1.Move) {
	r := recordOf(v, m.Cluster)
	if m.Revision == v.Module.Status.RolledBack && m.Revision != v.Module.Status.CurrentRevision {
		o.complainf("%s is to get %s, which was given up", m.Cluster, m.Revision)
	}
	staged := v.Module.Spec.Strategy != v1alpha1.Replace && m.Revision != v.Module.Status.CurrentRevision && v.Module.Status.CurrentRevision != ""

	if staged && r != nil && r.Assigned && r.Revision == v.Module.Status.CurrentRevision && r.Reported && r.Reason == outcome.ReasonSuspended && !isPending(v, m.Cluster, r) {
		o.complainf("%s is to get %s, and is suspended", m.Cluster, m.Revision)
	}
}

// unapproved in place of an approval is that a removal needed none.
const unapproved = "none"

// checkRecent checks that no more clusters lose the module without an approval within an hour of one another than
// may.
func (o *oracle) checkRecent(r *request, cluster string) {
	w := o.world
	if s := r.status.Removal; r.over || s != nil && s.Approved != "" {
		return
	}

	if !w.now.Before(o.lately.Add(time.Hour)) {
		o.recent = 0
	}
	o.recent, o.lately, o.charged[cluster] = o.recent+1, w.now, unapproved
	limit := w.module.spec.Rollout.MaxRemoved

	if limit == nil {
		limit = new(intstr.FromString("10%"))
	}

	if most := removalsOf(limit, w.names); o.recent > most {
		o.complainf("%d clusters have lost the module lately, %d may without an approval", o.recent, most)
	}
}

// checkReturn checks that no verdict touches a cluster twice.
func (o *oracle) checkReturn(c *cluster, a assemblage, revision string) {
	s := &o.world.module.status
	if !a.assigned || s.RolledBack == "" || revision != s.CurrentRevision || s.GivenUp == nil {
		return
	}
	if at, returned := o.returned[string(c.UID)]; returned && at.Equal(s.GivenUp.At.Time) {
		o.complainf("%s is touched twice by one verdict", c.Name)
	}
	o.returned[string(c.UID)] = s.GivenUp.At.Time
}

// checkFound checks the moment in which a cluster is assigned something: what an earlier hub has assigned there
// was taken over before; and no cluster that has answered ever since this hub began tells that it was given up.
func (o *oracle) checkFound(c *cluster, revision string) {
	w := o.world
	if c.former != nil && !c.blinked {
		o.complainf("%s is assigned %s over what it had, which was not taken over", c.Name, revision)
	}
	if w.module.status.CurrentRevision != "" {
		return
	}

	if isRetried(&w.module.status, revision) {
		return
	}

	if o.told[revision] {
		o.complainf("%s is assigned %s, of which a cluster has told that it was given up", c.Name, revision)
	}

	for i := range w.clusters {
		other := &w.clusters[i]
		if f := other.former; f != nil && !other.blinked && w.isSelected(&other.Cluster) && !other.deselected && f.givenUp != nil && f.givenUp.Revision == revision {
			o.complainf("%s is assigned %s, which %s tells was given up", c.Name, revision, other.Name)
		}
	}
}
