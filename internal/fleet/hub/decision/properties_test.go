package decision_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/api/equality"
	"pgregory.net/rapid"

	"github.com/spillway-dev/spillway/api/fleet/v1alpha1"
	"github.com/spillway-dev/spillway/internal/fleet/hub/decision"
	"github.com/spillway-dev/spillway/internal/fleet/hub/model"
	"github.com/spillway-dev/spillway/rollout"
)

// wishes are how a module may be rolled out, in the words of its spec.
var wishes = rapid.Custom(func(t *rapid.T) string {
	draw := func(label string, words ...string) string { return rapid.SampledFrom(words).Draw(t, label) }
	stages := draw("stages", "", `, stages: [{name: first, selector: {matchLabels: {stage: a}}}, {name: then, selector: {matchLabels: {stage: b}}}]`)
	return fmt.Sprintf("strategy: %s, suspend: %s, rollout: {maxUnreadyClusters: %s, maxFailures: %s, onFailure: %s, unmatchedClusters: %s%s}",
		draw("strategy", "Incremental", "Incremental", "Incremental", "Replace"), draw("suspend", "false", "false", "false", "true"),
		draw("budget", "1", "2", "50%", "100%"), draw("failures", "0", "0", "1", "2"), draw("onFailure", "Pause", "Continue", "Rollback"), draw("unmatched", "Last", "Exclude"), stages)
})

// standings are how a cluster may stand, in the words of [planned].
var standings = rapid.Custom(func(t *rapid.T) string {
	draw := func(label string, words ...string) string { return rapid.SampledFrom(words).Draw(t, label) }
	words := []string{"stage=" + draw("stage", "a", "b", "c"), draw("ready", "", "", "", "notready"), draw("held", "", "", "", "", "held"), draw("gone", "", "", "", "", "", "gone")}
	if tag := draw("tag", "", "v1", "v2"); tag != "" {
		words = append(words, tag, draw("new", "", "", "new"), draw("state", "up", "up", "updating", "failed", "unreachable", "waiting"),
			draw("ago", "@10s", "@30m"), draw("drifted", "", "", "", "", "drifted"))
	}
	return strings.Join(slices.DeleteFunc(words, func(w string) bool { return w == "" }), " ")
})

// anyFleet is a module and some clusters.
func anyFleet(t *testing.T, r *rapid.T) *facts {
	t.Helper()
	lines := rapid.SliceOfN(standings, 1, 9).Draw(r, "clusters")
	for i := range lines {
		lines[i] = fmt.Sprintf("c%d %s", i, lines[i])
	}
	f := &facts{Observed: planned(t, wishes.Draw(r, "spec"), strings.Join(lines, "\n")), plan: decision.Plan{}}
	f.plan = decision.Decide(f.Observed)
	return f
}

// facts is what the documentation says is true of clusters, apart from the code that
// decides, and the plan.
type facts struct {
	model.Observed

	plan decision.Plan
}

// deadlinePassed is how long clusters may take where nothing is said about it.
const deadlinePassed = 10 * time.Minute

func (f *facts) staged() bool { return f.Module.Spec.Strategy == v1alpha1.Incremental }

// belongs is true of a cluster that is one of the module's: one that is selected and
// was never ready is none yet.
func (f *facts) belongs(i int) bool {
	return !f.Clusters[i].Deleting && (f.Clusters[i].Ready || f.Records[i].Assigned)
}

func (f *facts) isPinned(i int) bool { return f.Records[i].Hold != nil }

// stage is where a cluster goes along, negative if nowhere.
func (f *facts) stage(i int) int {
	stages := f.Module.Spec.Rollout.Stages
	switch label := f.Clusters[i].Labels["stage"]; {
	case f.isPinned(i) || !f.belongs(i):
		return -1
	case len(stages) == 0 || !f.staged():
		return 0
	case label == "a":
		return 0
	case label == "b":
		return 1
	case f.Module.Spec.Rollout.UnmatchedClusters == v1alpha1.UnmatchedExclude:
		return -1
	default:
		return 2
	}
}

func (f *facts) hasFailed(i int) bool {
	return f.Records[i].Assigned && f.Clusters[i].Ready && f.Records[i].State == v1alpha1.StateFailed
}

// isSilent is true of a cluster of which it is unknown how it does: it is no evidence.
func (f *facts) isSilent(i int) bool {
	return f.staged() && (!f.Clusters[i].Ready || f.Records[i].Assigned && f.Records[i].State == v1alpha1.StateUnreachable)
}

// isSpared is true of a cluster that was down before it gets the target: that takes no place.
func (f *facts) isSpared(i int) bool {
	r := &f.Records[i]
	since := r.Unready || r.Proven || !f.Now.Before(r.AssignedAt.Add(deadlinePassed))
	sick := f.isAt(i, "v1") && since && (r.State == v1alpha1.StateFailed || r.State != v1alpha1.StateSucceeded && !r.Proven)
	return f.staged() && !f.isAt(i, "v2") && (since && f.isSilent(i) || sick) // v1 reached all
}

func (f *facts) isLate(i int) bool {
	return f.Records[i].Assigned && !f.isSilent(i) && !f.Now.Before(f.Records[i].AssignedAt.Add(deadlinePassed))
}

// isUp is true of a cluster that does well at what it was assigned. Of one that was
// changed by another client that is not known; it matters where it is to stay as it is.
func (f *facts) isUp(i int) bool {
	r := &f.Records[i]
	return r.Assigned && f.Clusters[i].Ready && r.State == v1alpha1.StateSucceeded && (!r.Drifted || !f.isAt(i, f.aim(i)))
}

func (f *facts) isAt(i int, tag string) bool {
	return f.Records[i].Assigned && f.Records[i].Revision == revisionOf(tag)
}

// isNew is true of a cluster that has never run the module: v1 is the revision that got
// everywhere.
func (f *facts) isNew(i int) bool {
	r := &f.Records[i]
	late := r.Assigned && !f.Now.Before(r.AssignedAt.Add(deadlinePassed))
	return f.staged() && r.Succeeded == "" && (!r.Assigned || f.isAt(i, "v1") && !f.hasFailed(i) && !late)
}

func (f *facts) aim(i int) string {
	if f.stage(i) >= 0 && f.isNew(i) {
		return "v1"
	}
	return "v2"
}

// isTolerated is true of a cluster that has failed at the target where that makes no
// difference.
func (f *facts) isTolerated(i int) bool {
	late := f.isLate(i) && f.Records[i].Succeeded != f.Records[i].Revision && !f.isUp(i)
	failed := f.hasFailed(i) && !f.Records[i].Drifted
	continues := f.Module.Spec.Rollout.OnFailure == v1alpha1.Continue || !f.staged() && f.Module.Spec.Rollout.OnFailure == v1alpha1.Pause
	return f.isAt(i, "v2") && (continues || f.isWithin(i)) && (failed || late)
}

// isWithin is true if no more clusters of the stage of one have failed than may.
func (f *facts) isWithin(i int) bool {
	n := 0
	for _, j := range f.in(f.stage(i)) {
		late := f.isLate(j) && f.Records[j].Succeeded != f.Records[j].Revision && !f.isUp(j)
		n += one(f.isAt(j, "v2") && (late || f.hasFailed(j) && !f.Records[j].Drifted))
	}
	return n <= f.Module.Spec.Rollout.MaxFailures.IntValue()
}

// steps are what moves, by cluster.
func (f *facts) steps() map[string]rollout.Step {
	steps := map[string]rollout.Step{}
	for _, s := range f.plan.Steps {
		steps[s.Path[len(s.Path)-1]] = s
	}
	return steps
}

// in are the clusters that go along in a stage.
func (f *facts) in(stage int) []int {
	var all []int
	for i := range f.Clusters {
		if f.stage(i) == stage && !f.isNew(i) {
			all = append(all, i)
		}
	}
	return all
}

// Of a stage never more clusters are down than the budget says, unless they were so
// before.
func TestPropertyNeverMoreAreUnreadyThanTheBudgetSays(t *testing.T) {
	rapid.Check(t, func(r *rapid.T) {
		f := anyFleet(t, r)
		steps := f.steps()
		for stage := range 3 {
			down, taken, all := 0, 0, f.in(stage)
			for _, i := range all {
				step, moves := steps[f.Clusters[i].Name]
				down += one(f.Records[i].Assigned && !f.isUp(i) && !f.isTolerated(i) && !f.isSpared(i))
				taken += one(moves && !step.Repair)
				if moves && step.Repair && (f.isUp(i) || !f.Records[i].Assigned && f.Clusters[i].Ready) {
					r.Errorf("%s is up, and taken for down", f.Clusters[i].Name)
				}
			}
			if budget := f.budget(len(all)); taken > 0 && f.staged() && down+taken > budget {
				r.Errorf("of stage %d %d are down, and %d more are taken down, of at most %d", stage, down, taken, budget)
			}
		}
	})
}

func one(yes bool) int {
	if yes {
		return 1
	}
	return 0
}

func (f *facts) budget(n int) int {
	limit := f.Module.Spec.Rollout.MaxUnreadyClusters
	if limit.StrVal == "" {
		return limit.IntValue()
	}
	percent := 0
	_, _ = fmt.Sscanf(limit.StrVal, "%d%%", &percent)
	return max(1, n*percent/100)
}

// No cluster moves before all of every earlier stage are where they should be, but for those
// that can tell nothing, and one shows that it is good; those that are new do not wait.
func TestPropertyStagesGoOneAfterAnother(t *testing.T) {
	rapid.Check(t, func(r *rapid.T) {
		f := anyFleet(t, r)
		steps := f.steps()
		for later := range f.Clusters {
			if _, moves := steps[f.Clusters[later].Name]; !moves || f.isNew(later) {
				continue
			}
			for stage := range f.stage(later) {
				evident := 0
				for _, i := range f.in(stage) {
					evident += one(f.isAt(i, "v2") && f.isUp(i) && !f.isSilent(i))
					if (!f.isAt(i, "v2") || !f.isUp(i) && !f.isTolerated(i)) && !f.isSpared(i) && !f.isSilent(i) {
						r.Errorf("%s moves, and %s goes before", f.Clusters[later].Name, f.Clusters[i].Name)
					}
				}
				if evident == 0 && f.staged() && f.Module.Spec.Rollout.OnFailure != v1alpha1.Continue {
					r.Errorf("%s moves, and nothing shows that stage %d is good", f.Clusters[later].Name, stage)
				}
			}
		}
	})
}

// A cluster that a user holds stays: it does not move, and is not written to.
func TestPropertyPinsStay(t *testing.T) {
	rapid.Check(t, func(r *rapid.T) {
		f := anyFleet(t, r)
		for i := range f.Clusters {
			name := f.Clusters[i].Name
			if _, moves := f.steps()[name]; f.isPinned(i) && moves {
				r.Errorf("%s is held, and moves", name)
			}
			written := slices.ContainsFunc(f.plan.Writes, func(w decision.Write) bool { return w.Cluster != nil && w.Cluster.Name == name })
			if f.isPinned(i) && written {
				r.Errorf("%s is held, and written to", name)
			}
		}
	})
}

// Every cluster that is not where it should be is exactly one step or one hold, with a
// sentence that names it or the cause; and goes where it has to.
func TestPropertyEveryClusterIsOneStepOrOneHold(t *testing.T) {
	rapid.Check(t, func(r *rapid.T) {
		f := anyFleet(t, r)
		said := map[string]int{}
		for _, h := range f.plan.Holds {
			said[h.Path[len(h.Path)-1]]++
			if h.Message == "" || h.Reason == "" {
				r.Errorf("a hold without a word: %+v", h)
			}
		}
		for name, step := range f.steps() {
			said[name]++
			i := slices.IndexFunc(f.Clusters, func(c model.Cluster) bool { return c.Name == name })
			if want := revisionOf(f.aim(i)); step.To != want || step.From == want {
				r.Errorf("%s moves from %s to %s", name, step.From, step.To)
			}
		}
		for i := range f.Clusters {
			settled := f.isAt(i, f.aim(i)) && f.isUp(i)
			if want := one(f.belongs(i) && !settled); said[f.Clusters[i].Name] != want {
				r.Errorf("%d things are said of %s, not %d", said[f.Clusters[i].Name], f.Clusters[i].Name, want)
			}
		}
	})
}

// What moves is written down before, and nothing else is; a pass permits or acts.
func TestPropertyWhatMovesIsPermittedFirst(t *testing.T) {
	rapid.Check(t, func(r *rapid.T) {
		f := anyFleet(t, r)
		if f.plan.Permits && len(f.plan.Writes) > 0 {
			r.Error("one pass permits and acts")
		}
		if slices.ContainsFunc(f.plan.Writes, func(w decision.Write) bool { return w.Act == decision.Assign }) {
			r.Error("something is assigned that no status has permitted")
		}
		var permitted []string
		for _, m := range f.plan.Status.Moves {
			permitted = append(permitted, fmt.Sprint(m.Cluster, m.Revision, m.Repair))
		}
		var wanted []string
		for name, s := range f.steps() {
			wanted = append(wanted, fmt.Sprint(name, s.To, s.Repair))
		}
		slices.Sort(permitted)
		slices.Sort(wanted)
		if f.plan.Phase != rollout.PhaseRollingBack && !slices.Equal(permitted, wanted) {
			r.Errorf("%v is permitted, and %v moves", permitted, wanted)
		}
	})
}

// Where all are where they should be there is nothing to write, but for the status once.
func TestPropertyConvergedThereIsNothingToWrite(t *testing.T) {
	rapid.Check(t, func(r *rapid.T) {
		f := anyFleet(t, r)
		for i := range f.Clusters {
			f.Clusters[i].Ready = true
			name := f.Clusters[i].Name
			f.Clusters[i], f.Records[i] = read([]string{name, "v2", "up", "stage=" + f.Clusters[i].Labels["stage"]})
		}
		for i := range f.Module.Spec.Rollout.Stages {
			f.Module.Spec.Rollout.Stages[i].AllowEmpty = true
		}
		f.Module.Status = decision.Decide(f.Observed).Status
		p := decision.Decide(f.Observed)
		if p.Permits || p.NeedsLive || len(p.Writes) > 0 || !equality.Semantic.DeepEqual(p.Status, f.Module.Status) {
			r.Errorf("there are still writes: %+v", p.Writes)
		}
		if p.Phase != rollout.PhaseComplete || !p.Wake.IsZero() {
			r.Errorf("it is %s, and looks again at %s", p.Phase, p.Wake)
		}
	})
}

// In which order a cache lists things makes no difference.
func TestPropertyTheOrderOfTheListMakesNoDifference(t *testing.T) {
	rapid.Check(t, func(r *rapid.T) {
		f := anyFleet(t, r)
		other := f.Observed
		other.Clusters = rapid.Permutation(f.Clusters).Draw(r, "clusters, shuffled")
		other.Records = rapid.Permutation(f.Records).Draw(r, "records, shuffled")
		p := decision.Decide(other)
		if said(&p) != said(&f.plan) || !equality.Semantic.DeepEqual(p.Status, f.plan.Status) {
			r.Errorf("%s\nis another plan than\n%s", said(&p), said(&f.plan))
		}
	})
}
