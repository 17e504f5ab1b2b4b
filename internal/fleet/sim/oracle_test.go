package sim

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/util/intstr"

	"github.com/spillway-dev/spillway/api/fleet/v1alpha1"
	"github.com/spillway-dev/spillway/internal/fleet/hub/decision"
	"github.com/spillway-dev/spillway/internal/fleet/hub/model"
	"github.com/spillway-dev/spillway/internal/fleet/outcome"
	"github.com/spillway-dev/spillway/rollout"
)

// oracle knows the rules, and nothing of the plan.
type oracle struct {
	world *world
	// disrupted are the clusters that were assigned another revision while they were
	// up, and that have not been up since.
	disrupted map[string]bool
	// retried are the verdicts that a retry has ended.
	retried map[string]bool
	// grants is how many removals each approval of the user is still good for, removals
	// are the clusters of which one was permitted and not made.
	grants   map[string]int
	removals map[string]bool
	// failed is of which assignment a cluster has failed last.
	failed map[string]time.Time
	// charged is the approval for which a removal that was permitted counts, or unapproved.
	charged    map[string]string
	violations []string
	// returned is by which verdict a cluster has returned last.
	returned map[string]time.Time
	// told are revisions of which a cluster that was taken over has told that they were given up.
	told map[string]bool
	// recent is how many clusters have lost the module without an approval, and lately when the last
	// of them has.
	recent int
	lately time.Time
}

func newOracle(w *world) *oracle {
	return &oracle{world: w, disrupted: map[string]bool{}, retried: map[string]bool{}, grants: map[string]int{}, removals: map[string]bool{}, charged: map[string]string{}, failed: map[string]time.Time{}, returned: map[string]time.Time{}, told: map[string]bool{}}
}

func (o *oracle) complainf(format string, args ...any) {
	o.violations = append(o.violations, fmt.Sprintf(format, args...))
}

func (o *oracle) gone(cluster string) { delete(o.disrupted, cluster) }

// breaks records that a cluster is about to become unready without a write. If it was up, what it was
// assigned did not take it down: that it breaks before it has been ready for long enough
// is something that no view may show in time.
func (o *oracle) breaks(cluster string) {
	if o.world.isUp(cluster) {
		delete(o.disrupted, cluster)
	}
}

// look forgets what is up again.
func (o *oracle) look() {
	o.note()

	for name := range o.disrupted {
		if c := o.world.cluster(name); c == nil || o.isBack(name) || !o.world.isSelected(&c.Cluster) {
			delete(o.disrupted, name)
		}
	}
}

// note remembers which clusters have failed.
func (o *oracle) note() {
	for name, a := range o.world.assemblages {
		if a.state == v1alpha1.StateFailed {
			o.failed[name] = a.reportOf
		}
	}
}

// tolerated is how many of the clusters that are down have failed or are late, and take no
// place because maxFailures tolerates them.
func (o *oracle) tolerated(down []string) int {
	w := o.world
	if w.module.spec.Rollout.MaxFailures == nil {
		return 0
	}
	failed, now := 0, w.now.Add(skewMost)

	for _, name := range down {
		a := w.assemblages[name]
		at, has := o.failed[name]
		late := !now.Before(a.at.Add(time.Duration(*w.module.spec.Rollout.ProgressDeadlineSeconds) * time.Second))
		failed += one(late || has && at.Equal(a.at))
	}

	return min(failed, w.module.spec.Rollout.MaxFailures.IntValue())
}

// isBack is true once a cluster is up again, for long enough if it is at the revision
// that is rolled out, by the clock of a manager. Where clusters flap it is so immediately: that
// it breaks before it has been ready for long enough is something that no view may show
// in time.
//
// At any other revision it is up as soon as it is ready. How long it has been so says
// something about a revision that is left, and to wait for that would keep the other
// clusters at a revision that the user has just taken back.
func (o *oracle) isBack(name string) bool {
	w := o.world
	now, minReady := w.now, time.Duration(w.module.spec.Rollout.MinReadySeconds)*time.Second

	if w.skewed {
		now = now.Add(skewMost)
	}

	return w.isUp(name) && (w.flaps || w.assemblages[name].revision != w.rolledOut() || !now.Before(w.assemblages[name].since.Add(minReady)))
}

// written checks the rules in the moment in which an assemblage is written.
func (o *oracle) written(m *manager, r *request, c *cluster, a assemblage) {
	o.look()
	write := &r.write

	if write.Act == decision.Assign {
		o.checkFound(c, write.Revision)
		o.checkReturn(c, a, write.Revision)
	}

	switch {
	case write.Act == decision.Assign && !m.view.has(write.Revision):
		o.complainf("%s is written an assignment to %s that says nothing, which takes away what it has", c.Name, write.Revision)
	case r.write.Act == decision.Unassign && o.world.isSelected(&c.Cluster) && !r.deselected:
		o.complainf("%s is unassigned though it is selected, and was when that was sent; it is ready: %v", c.Name, c.Ready)
	case write.Act == decision.Unassign:
		o.tookAway(m, c, o.world.isUp(c.Name) && write.Cluster.Ready && !write.Cluster.Unreachable)
	case write.Act == decision.Correct && a.hold != nil && !c.deselected:
		o.complainf("%s is written to though it is pinned", c.Name)
	case write.Act == decision.Assign && a.assigned && write.Revision != a.revision:
		o.keepsOrder(c, write.Revision)
		// That a cluster answers again is something that no precondition can tell.
		o.tookDown(m, c, o.world.isUp(c.Name) && write.Cluster.Ready && !write.Cluster.Unreachable)
	}
}

// tookDown counts what is down in the stage of a cluster that was assigned another
// revision, itself included.
func (o *oracle) tookDown(m *manager, c *cluster, up bool) {
	w := o.world
	if !up || w.module.spec.Strategy == v1alpha1.Replace {
		return
	}

	w.count("downs")
	o.disrupted[c.Name] = true
	o.withinTotal(m, c, func(other *cluster) bool {
		return w.isSelected(&other.Cluster) && o.disrupted[other.Name] && !o.isWaived(other.Name)
	})

	var down, all []string
	stage := o.stageOf(&c.Cluster)

	for i := range w.clusters {
		other := &w.clusters[i]
		if o.stageOf(&other.Cluster) != stage || !w.isSelected(&other.Cluster) {
			continue
		}
		all = append(all, other.Name)

		if other.Name == c.Name || o.disrupted[other.Name] && !o.isWaived(other.Name) { // what it had so far waives nothing
			down = append(down, other.Name)
		}
	}

	if limit := o.budget(stage, len(all)) + o.tolerated(down); len(down) > limit {
		o.complainf("stage %q: %s are down of %s, %d may be, the last by %s", stage, namesOf(down), namesOf(all), limit, m.name)
	}
}

// withinTotal checks that a cluster that goes down is within the budget of all stages
// together. What a stage tolerates takes no place there either.
func (o *oracle) withinTotal(m *manager, c *cluster, isDown func(*cluster) bool) {
	w := o.world
	total := w.module.spec.Rollout.MaxUnreadyTotal
	if total == nil {
		return
	}
	w.count("downs under a total")

	down, stages := []string{c.Name}, map[string][]string{o.stageOf(&c.Cluster): {c.Name}}
	for i := range w.clusters {
		if other := &w.clusters[i]; other.Name != c.Name && isDown(other) {
			stage := o.stageOf(&other.Cluster)
			down, stages[stage] = append(down, other.Name), append(stages[stage], other.Name)
		}
	}

	limit := limitOf(total, len(w.clusters))
	for _, names := range stages {
		limit += o.tolerated(names)
	}

	if len(down) > limit {
		o.complainf("all stages together: %s are down, %d may be, the last by %s", namesOf(down), limit, m.name)
	}
}

// keepsOrder checks that a cluster moves while none of an earlier stage is unknown that the
// same revision took down.
func (o *oracle) keepsOrder(c *cluster, revision string) {
	w := o.world
	r := w.module.spec.Rollout
	if w.module.spec.Strategy == v1alpha1.Replace || revision == w.module.status.CurrentRevision || r.OnFailure == v1alpha1.Continue || r.MaxFailures != nil {
		return
	}

	for i := range w.clusters {
		other := &w.clusters[i]
		a := w.assemblages[other.Name]
		down := other.hidden && o.disrupted[other.Name] && a.assigned && a.revision == revision && a.hold == nil

		if down && !other.deselected && o.stageNumber(&other.Cluster) < o.stageNumber(&c.Cluster) {
			o.complainf("%s moves to %s while %s of an earlier stage is unknown, which that took down", c.Name, revision, other.Name)
		}
	}
}

// isWaived is true of a cluster that has failed and no longer counts, or that is
// pinned. One that has failed since it was assigned what it has, and fetches a tag that has
// moved since, is as far down as before: its place was given to another by then.
func (o *oracle) isWaived(name string) bool {
	w := o.world
	a := w.assemblages[name]
	at, failed := o.failed[name]
	failed = a.state == v1alpha1.StateFailed || failed && at.Equal(a.at)
	late := !w.now.Before(a.at.Add(time.Duration(*w.module.spec.Rollout.ProgressDeadlineSeconds) * time.Second))

	// What has what reached all, and had the time to become ready with it, is down for reasons of its own.
	own := late && a.revision == w.module.status.CurrentRevision

	return a.hold != nil || own || w.module.spec.Rollout.OnFailure == v1alpha1.Continue && (failed || late)
}

// stageOf is the stage of a cluster by the labels alone.
func (o *oracle) stageOf(c *model.Cluster) string {
	for _, s := range o.world.module.spec.Rollout.Stages {
		if s.Selector == nil || s.Selector.MatchLabels["stage"] == c.Labels["stage"] {
			return s.Name
		}
	}

	return ""
}

// budget is how many clusters of a stage may be down. Of a percentage the stage may
// have been larger a moment ago, where clusters leave.
func (o *oracle) budget(stage string, n int) int {
	limit := o.world.module.spec.Rollout.MaxUnreadyClusters
	for _, s := range o.world.module.spec.Rollout.Stages {
		if s.Name == stage && s.MaxUnreadyClusters != nil {
			limit = s.MaxUnreadyClusters
		}
	}

	return limitOf(limit, max(n, o.world.names))
}

func limitOf(limit *intstr.IntOrString, n int) int {
	switch {
	case limit == nil:
		return 1
	case limit.StrVal == "":
		return limit.IntValue()
	default:
		percent := 0
		_, _ = fmt.Sscanf(limit.StrVal, "%d%%", &percent)

		return max(1, n*percent/100)
	}
}

// statusWritten: the status stays small, and speaks of what there is.
func (o *oracle) statusWritten(s *v1alpha1.ModuleStatus) {
	if len(s.Moves) > 50 || len(s.FailingClusters) > 20 || len(s.History) > 20 {
		o.complainf("the status grows with the clusters: %d moves, %d failing", len(s.Moves), len(s.FailingClusters))
	}

	if s.Summary != nil && s.Summary.Updated+s.Summary.Waiting != s.Summary.Total {
		o.complainf("%d updated and %d waiting are not %d", s.Summary.Updated, s.Summary.Waiting, s.Summary.Total)
	}

	if s.RolledBack != "" {
		o.world.count("given up")
	}
}

// deleted checks that no revision is deleted that was needed when the request was sent. What
// was made again since, and is used, is not deleted for what had its name before.
func (o *oracle) deleted(r *request, is, seen *model.Revision) {
	w := o.world

	switch {
	case r.needed != "":
		o.complainf("revision %s is deleted though %s", is.Name, r.needed)
	case is.Name == w.module.status.CurrentRevision && is.UID != seen.UID:
		o.complainf("revision %s is deleted though new clusters need it", is.Name)
	case is.UID != seen.UID:
		for i := range w.clusters {
			if a := w.assemblages[w.clusters[i].Name]; a.assigned && a.revision == is.Name {
				o.complainf("revision %s is deleted though %s is assigned it", is.Name, w.clusters[i].Name)

				return
			}
		}
	}
}

// needs says what a revision is needed for, empty if for nothing.
func (o *oracle) needs(name string) string {
	w := o.world

	switch {
	case name == w.module.status.CurrentRevision:
		return "new clusters need it"
	case name == w.asked():
		return "the user wants it"
	}

	for i := range w.clusters {
		if a := w.assemblages[w.clusters[i].Name]; a.assigned && a.revision == name {
			return w.clusters[i].Name + " is assigned it"
		}
	}

	for i := range w.module.status.Moves {
		if m := &w.module.status.Moves[i]; m.Revision == name {
			return m.Cluster + " may be assigned it"
		}
	}

	return ""
}

// planned checks a plan against the view from which it was made.
func (o *oracle) planned(v *model.Observed, p *decision.Plan) {
	if p.NeedsLive {
		return
	}

	o.checkMembers(v, p)
	o.checkVerdict(v, p)

	if !p.Permits {
		return
	}

	if len(p.Writes) > 0 {
		o.complainf("one pass permits and acts")
	}

	for _, m := range p.Status.Moves {
		if !slices.ContainsFunc(v.Module.Status.Moves, func(old v1alpha1.Move) bool {
			return old.Cluster == m.Cluster && old.Revision == m.Revision && old.Remove == m.Remove
		}) {
			o.checkMove(v, &m)
			if !m.Remove {
				o.checkSent(v, &m)
				o.checkMoment(v, &m)
				o.checkTag(v, &m)
			}
		}
	}
}

// resolved: what is written down of a tag is something that it was.
func (o *oracle) resolved(write *decision.Write) {
	if !strings.HasPrefix(digest(write.Resolved), write.Revision+"#") {
		o.complainf("it is written down that %s is %s, which its tag never was", write.Revision, write.Resolved)
	}
}

// checkMoment checks that what is permitted is later than what is assigned, and so not
// done yet; and that it is not permitted in the future, whatever clock was ahead.
func (o *oracle) checkMoment(v *model.Observed, m *v1alpha1.Move) {
	at := momentOf(m)
	if r := recordOf(v, m.Cluster); r != nil && r.Assigned && !r.AssignedAt.Before(at) {
		o.complainf("%s is to move at %s, and has what it has since %s", m.Cluster, at, r.AssignedAt)
	}
	if m.At.After(v.Now) {
		o.complainf("%s is permitted to move at %s, and it is %s", m.Cluster, m.At, v.Now)
	}
}

// checkTag checks that no cluster is assigned a tag once it could be known what it is.
func (o *oracle) checkTag(v *model.Observed, m *v1alpha1.Move) {
	unknown := slices.ContainsFunc(v.Revisions, func(r model.Revision) bool { return r.Name == m.Revision && r.Resolved == "" })
	told := slices.ContainsFunc(v.Records, func(r model.Record) bool {
		return r.Revision == m.Revision && r.Reported && r.State == v1alpha1.StateSucceeded && r.Resolved != "" && !r.Edited && !r.Stale && r.Hold == nil
	})

	if unknown && told {
		o.complainf("%s is to move to %s, of which it is not written down what it is", m.Cluster, m.Revision)
	}
}

// checkMembers: every selected cluster is in exactly one place, and says at most
// one thing.
func (o *oracle) checkMembers(v *model.Observed, p *decision.Plan) {
	places := map[string]int{}
	for _, root := range []rollout.Unit{p.Tree.Root, p.Aside.Root} {
		leaves(&root, func(u *rollout.Unit) { places[u.Name]++ })
	}

	for i := range v.Clusters {
		c := &v.Clusters[i]
		r := recordOf(v, c.Name)
		want := one(loses(v, c) || selects(&v.Module.Spec, c) && (c.Ready || r != nil && r.Assigned || isPending(v, c.Name, r)))

		if places[c.Name] != want {
			o.complainf("%s is in %d places, and should be in %d", c.Name, places[c.Name], want)
		}
	}
}

// isPending is true of a cluster with a move that its record does not show: it was assigned
// what it has before the moment that the move gives it.
func isPending(v *model.Observed, name string, r *model.Record) bool {
	return slices.ContainsFunc(v.Module.Status.Moves, func(m v1alpha1.Move) bool {
		return m.Cluster == name && !m.Remove && (r == nil || !r.Assigned || r.AssignedAt.Before(momentOf(&m)))
	})
}

// momentOf is when a cluster is assigned what a move gives it.
func momentOf(m *v1alpha1.Move) time.Time {
	if m.AssignedAt != nil {
		return m.AssignedAt.Time
	}

	return m.At.Time
}

func leaves(u *rollout.Unit, visit func(*rollout.Unit)) {
	if len(u.Children) == 0 && !u.Group {
		visit(u)
	}

	for i := range u.Children {
		leaves(&u.Children[i], visit)
	}
}

func recordOf(v *model.Observed, name string) *model.Record {
	i := slices.IndexFunc(v.Records, func(r model.Record) bool { return r.Cluster == name })
	if i < 0 {
		return nil
	}

	return &v.Records[i]
}

// checkMove: nothing moves that may not, and nothing before its turn.
func (o *oracle) checkMove(v *model.Observed, m *v1alpha1.Move) {
	if m.Remove {
		o.checkRemoval(v, m)

		return
	}

	i := slices.IndexFunc(v.Clusters, func(c model.Cluster) bool { return c.Name == m.Cluster })
	r := recordOf(v, m.Cluster)

	switch {
	case i < 0 || !selects(&v.Module.Spec, &v.Clusters[i]):
		o.complainf("%s moves, which is not selected", m.Cluster)

		return
	case v.Module.Spec.Suspend:
		o.complainf("%s moves though the module is suspended", m.Cluster)
	case r != nil && r.Hold != nil:
		o.complainf("%s moves though it is pinned", m.Cluster)
	case m.Revision == v.Module.Status.CurrentRevision:
		return // a new cluster, or one that goes back
	}

	o.checkPinning(v, m)

	stages := v.Module.Spec.Rollout.Stages
	at := o.stageOf(&v.Clusters[i])

	for s := range stages {
		if stages[s].Name == at {
			o.checkGates(v, &stages[s], v1alpha1.Before, m)

			break
		}
		o.checkEarlier(v, &stages[s], m)
	}
}

// checkPinning: no cluster moves while another one that runs is to be assigned the commit of
// its tag.
func (o *oracle) checkPinning(v *model.Observed, m *v1alpha1.Move) {
	for i := range v.Records {
		r := &v.Records[i]
		at := slices.IndexFunc(v.Clusters, func(c model.Cluster) bool { return c.Name == r.Cluster })
		if !r.Follows || !r.HasSucceeded() || r.Revision != m.Revision || r.Hold != nil || at < 0 || isPending(v, r.Cluster, r) {
			continue
		}

		if _, refused := v.Refusals[r.Cluster]; !refused && v.Clusters[at].Ready && !v.Clusters[at].Unreachable && selects(&v.Module.Spec, &v.Clusters[at]) {
			o.complainf("%s moves to %s while %s is to be assigned its commit", m.Cluster, m.Revision, r.Cluster)
		}
	}
}

// checkEarlier: a stage is complete before the next one begins, but for what can tell nothing, and
// something in it shows that the revision is good.
func (o *oracle) checkEarlier(v *model.Observed, s *v1alpha1.Stage, m *v1alpha1.Move) {
	if v.Module.Spec.Strategy == v1alpha1.Replace {
		return
	}

	failed, evident, n := 0, 0, 0

	for i := range v.Clusters {
		c := &v.Clusters[i]
		r := recordOf(v, c.Name)
		if o.stageOf(c) != s.Name || !selects(&v.Module.Spec, c) || r != nil && r.Hold != nil || o.isNew(v, r) || !c.Ready && (r == nil || !r.Assigned) {
			continue
		}
		n++

		switch {
		case o.tellsNothing(v, c, r, m.Revision):
		case r == nil || !r.Assigned || r.Revision != m.Revision:
			o.complainf("%s moves to %s before %s of stage %s", m.Cluster, m.Revision, c.Name, s.Name)
		case !r.Reported || r.State != v1alpha1.StateSucceeded || c.Unreachable || !c.Ready || o.isElsewhere(v, r):
			failed++
		default:
			evident++
			o.checkSoak(v, s, r, m)
		}
	}

	if evident == 0 && !s.AllowEmpty && v.Module.Spec.Rollout.OnFailure != v1alpha1.Continue {
		o.complainf("%s moves though nothing of stage %s shows that %s is good", m.Cluster, s.Name, m.Revision)
	}

	if failed > o.mayFail(v, n) {
		o.complainf("%s moves though %d of %d of stage %s are not ready", m.Cluster, failed, n, s.Name)
	}

	if n > 0 {
		o.checkGates(v, s, v1alpha1.After, m)
	}
}

// tellsNothing is true of a cluster of which it is unknown how it does, or that was not ready before it
// was to get a revision.
func (o *oracle) tellsNothing(v *model.Observed, c *model.Cluster, r *model.Record, revision string) bool {
	switch {
	case !c.Ready || c.Unreachable:
		return true
	case r == nil || !r.Assigned:
		return false
	case r.Reported && (r.State == v1alpha1.StateUnreachable || r.Reason == outcome.ReasonSuspended):
		return true
	case r.Revision == revision:
		return r.Unready && !r.Proven
	default:
		late := !v.Now.Before(r.AssignedAt.Add(time.Duration(*v.Module.Spec.Rollout.ProgressDeadlineSeconds) * time.Second))

		return r.Revision == v.Module.Status.CurrentRevision && (r.Unready || r.Proven || late) && r.State != v1alpha1.StateSucceeded
	}
}

// isElsewhere is true of a cluster that runs another commit than the one that the tag of
// its revision was written down to be.
func (o *oracle) isElsewhere(v *model.Observed, r *model.Record) bool {
	return slices.ContainsFunc(v.Revisions, func(known model.Revision) bool {
		return known.Name == r.Revision && known.Resolved != "" && digest(known.Resolved) != digest(r.Resolved)
	})
}

func (o *oracle) mayFail(v *model.Observed, n int) int {
	r := v.Module.Spec.Rollout

	switch {
	case r.OnFailure == v1alpha1.Continue:
		return n
	case r.MaxFailures == nil:
		return 0
	default:
		return r.MaxFailures.IntValue()
	}
}

// checkSoak: a cluster has been ready for long enough, at this very revision.
func (o *oracle) checkSoak(v *model.Observed, s *v1alpha1.Stage, r *model.Record, m *v1alpha1.Move) {
	soak := time.Duration(max(s.SoakSeconds, v.Module.Spec.Rollout.MinReadySeconds)) * time.Second
	if soak > 0 && v.Now.Before(r.Since.Add(soak)) {
		o.complainf("%s moves though %s of stage %s is ready for %s only", m.Cluster, r.Cluster, s.Name, v.Now.Sub(r.Since))
	}
}

// isNew is true of a cluster that has never run the module, where there is a
// revision for such that it has, or is about to have.
func (o *oracle) isNew(v *model.Observed, r *model.Record) bool {
	good := v.Module.Status.CurrentRevision
	if r == nil || !r.Assigned {
		return good != ""
	}
	isPermitted := func(m v1alpha1.Move) bool { return m.Cluster == r.Cluster && !m.Remove && m.Revision == good }

	return good != "" && r.Succeeded == "" && (r.Revision == good || slices.ContainsFunc(v.Module.Status.Moves, isPermitted))
}

func (o *oracle) checkGates(v *model.Observed, s *v1alpha1.Stage, when v1alpha1.GateTime, m *v1alpha1.Move) {
	for _, g := range s.Gates {
		at := g.When
		if at == "" {
			at = v1alpha1.After
		}
		name := model.GateName(m.Revision, s.Name, g)
		is := func(verdict rollout.Verdict) bool {
			return slices.ContainsFunc(v.Gates, func(g model.Gate) bool { return g.Name == name && g.Verdict == verdict })
		}
		mustPass := at == when || at == v1alpha1.During && when == v1alpha1.After

		switch {
		case v.Module.Spec.Strategy == v1alpha1.Replace:
		case mustPass && !is(rollout.Passed):
			o.complainf("%s moves though gate %s has not passed", m.Cluster, name)
		case at == v1alpha1.During && is(rollout.Refused):
			o.complainf("%s moves though gate %s was refused", m.Cluster, name)
		}
	}
}

func one(yes bool) int {
	if yes {
		return 1
	}

	return 0
}
