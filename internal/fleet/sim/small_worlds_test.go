package sim

import (
	"fmt"
	"slices"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/intstr"

	"github.com/spillway-dev/spillway/api/fleet/v1alpha1"
	"github.com/spillway-dev/spillway/internal/fleet/hub/decision"
	"github.com/spillway-dev/spillway/internal/fleet/hub/model"
	"github.com/spillway-dev/spillway/rollout"
)

// state is how a cluster does. The order is of no meaning.
type state int

const (
	unassigned state = iota
	oldUp
	oldDown
	newUp
	newUpdating
	newFailed
	heldOld
	states
)

// small is a world of a few clusters in two stages, at rest.
type small struct {
	stages    [2][]state
	budget    int
	onFailure v1alpha1.OnFailure
	// hasGood is true if the old revision has got everywhere once.
	hasGood bool
}

// TestSmallWorlds decides every world of up to six clusters in two stages, but for
// those that are another one in disguise. See TestSmallWorldsInDisguise.
func TestSmallWorlds(t *testing.T) {
	const most = 6

	for size := range most + 1 {
		for first := range size + 1 {
			t.Run(fmt.Sprintf("%d-and-%d", first, size-first), func(t *testing.T) {
				t.Parallel()

				n := 0
				eachWorld(first, size-first, func(w *small) {
					if !w.isDisguised() && !t.Failed() {
						w.check(t)
						n++
					}
				})
				t.Logf("%d worlds", n)
			})
		}
	}
}

// eachWorld visits every world with so many clusters in its stages. Within a stage it
// makes no difference which cluster does how.
func eachWorld(first, second int, visit func(*small)) {
	eachMultiset(first, func(a []state) {
		eachMultiset(second, func(b []state) {
			for budget := 1; budget <= 2; budget++ {
				for _, answer := range []v1alpha1.OnFailure{v1alpha1.Pause, v1alpha1.Continue} {
					for _, hasGood := range []bool{true, false} {
						visit(&small{stages: [2][]state{a, b}, budget: budget, onFailure: answer, hasGood: hasGood})
					}
				}
			}
		})
	})
}

// isDisguised is true of a world that is decided as another one is: a cluster that is
// pinned belongs to no stage, wherever its labels would put it; and whether a revision
// is good matters only to those that have never run the module.
func (w *small) isDisguised() bool {
	return slices.Contains(w.stages[0], heldOld) || !w.hasGood && !w.isAnyUnassigned()
}

func (w *small) isAnyUnassigned() bool {
	return slices.Contains(w.stages[0], unassigned) || slices.Contains(w.stages[1], unassigned)
}

// undisguised is the world that is decided alike.
func (w *small) undisguised() *small {
	other := *w
	other.hasGood = w.hasGood || !w.isAnyUnassigned()
	held := slices.DeleteFunc(slices.Clone(w.stages[0]), func(s state) bool { return s != heldOld })
	other.stages[0] = slices.DeleteFunc(slices.Clone(w.stages[0]), func(s state) bool { return s == heldOld })
	other.stages[1] = slices.Concat(w.stages[1], held)

	return &other
}

// TestSmallWorldsInDisguise is that they are: of up to four clusters, all of them.
func TestSmallWorldsInDisguise(t *testing.T) {
	t.Parallel()

	const most = 4

	for size := range most + 1 {
		for first := range size + 1 {
			eachWorld(first, size-first, func(w *small) {
				if !w.isDisguised() {
					return
				}

				w.check(t)

				if got, want := w.moving(), w.undisguised().moving(); !slices.Equal(got, want) {
					t.Errorf("%+v: %v move, and in the world that it is %v", w, got, want)
				}
			})
		}
	}
}

// moving are how those do that move, by stage.
func (w *small) moving() []string {
	var moving []string
	for _, s := range decision.Decide(w.observed()).Steps {
		name := s.Path[len(s.Path)-1]
		stage, at := name[0]-'a', name[1]-'0'
		moving = append(moving, fmt.Sprint(stage, w.stages[stage][at], s.From == oldRevision, s.To == newRevision))
	}
	slices.Sort(moving)

	return moving
}

// eachMultiset visits every non-decreasing sequence of states.
func eachMultiset(size int, visit func([]state)) {
	seq := make([]state, size)

	var fill func(at int, from state)
	fill = func(at int, from state) {
		if at == size {
			visit(seq)

			return
		}

		for s := from; s < states; s++ {
			seq[at] = s
			fill(at+1, s)
		}
	}
	fill(0, 0)
}

var (
	oldTemplate = template("v1")
	newTemplate = template("v2")
	oldRevision = model.RevisionName(model.KindModule, moduleName, oldTemplate)
	newRevision = model.RevisionName(model.KindModule, moduleName, newTemplate)
)

func template(tag string) v1alpha1.TemplateSpec {
	git := &v1alpha1.GitSource{URL: "https://x.test/a", Version: v1alpha1.GitVersion{Tag: tag}}

	return v1alpha1.TemplateSpec{Sync: v1alpha1.Sync{Source: &v1alpha1.Source{Git: git}}}
}

func clusterName(stage, i int) string { return fmt.Sprintf("%c%d", 'a'+stage, i) }

// observed is the world as a hub sees it.
func (w *small) observed() model.Observed {
	o := model.Observed{Now: noon, AsOf: "1", Revisions: []model.Revision{{Name: oldRevision, Number: 1}, {Name: newRevision, Number: 2}}}
	o.Module = model.Module{Kind: model.KindModule, Name: moduleName, Finalized: true, Spec: v1alpha1.ModuleSpec{
		Selector: &metav1.LabelSelector{}, Strategy: v1alpha1.Incremental, Template: &v1alpha1.ModuleTemplate{Spec: newTemplate},
		Rollout: &v1alpha1.Rollout{MaxUnreadyClusters: new(intstr.FromInt(w.budget)), OnFailure: w.onFailure, Stages: []v1alpha1.Stage{
			{Name: "a", Selector: &metav1.LabelSelector{MatchLabels: map[string]string{"stage": "0"}}}, {Name: "b"},
		}},
	}}

	if w.hasGood {
		o.Module.Status.CurrentRevision = oldRevision
	}

	for stage, clusters := range w.stages {
		for i, s := range clusters {
			name := clusterName(stage, i)
			o.Clusters = append(o.Clusters, model.Cluster{
				Name: name, UID: types.UID(name), Ready: true, Labels: map[string]string{"stage": fmt.Sprint(stage)},
			})
			o.Records = append(o.Records, s.record(name))
		}
	}

	return o
}

func (s state) record(name string) model.Record {
	r := model.Record{
		Cluster: name, Name: name, Assigned: true, Revision: oldRevision, AssignedAt: noon.Add(-time.Minute), Reported: true,
		State: v1alpha1.StateSucceeded, Since: noon.Add(-time.Minute), Succeeded: oldRevision, Proven: true, DeletionPolicy: v1alpha1.Delete,
	}

	switch s {
	case unassigned:
		return model.Record{Cluster: name, Name: name}
	case oldDown:
		r.State = v1alpha1.StateUpdating
	case newUp:
		r.Revision, r.Succeeded = newRevision, newRevision
	case newUpdating:
		r.Revision, r.State = newRevision, v1alpha1.StateUpdating
	case newFailed:
		r.Revision, r.State = newRevision, v1alpha1.StateFailed
	case heldOld:
		r.Hold = &v1alpha1.Hold{By: "alice"}
	}

	return r
}

// isNew is true of a cluster that does not wait.
func (w *small) isNew(s state) bool { return s == unassigned && w.hasGood }

// isDown is true of one that takes a place in the budget.
func (w *small) isDown(s state) bool {
	return s == oldDown || s == newUpdating || s == newFailed && w.onFailure != v1alpha1.Continue
}

func (s state) isAtTarget() bool { return s == newUp || s == newUpdating || s == newFailed }

func (w *small) check(t *testing.T) {
	t.Helper()

	p := decision.Decide(w.observed())
	steps, holds := map[string]rollout.Step{}, map[string]int{}

	for _, s := range p.Steps {
		steps[s.Path[len(s.Path)-1]] = s
	}

	for _, h := range p.Holds {
		holds[h.Path[len(h.Path)-1]]++
	}

	for stage, clusters := range w.stages {
		for i, s := range clusters {
			name := clusterName(stage, i)
			step, moves := steps[name]
			w.checkOne(t, name, s, step, moves, holds[name])
		}
		w.checkStage(t, stage, steps)
	}
	w.checkOrder(t, steps)
}

// checkOne: what is not where it should be is one step or one hold, and goes where
// it has to.
func (w *small) checkOne(t *testing.T, name string, s state, step rollout.Step, moves bool, holds int) {
	t.Helper()

	want := newRevision
	if w.isNew(s) {
		want = oldRevision
	}

	switch said := holds + one(moves); {
	case s == newUp && said != 0:
		t.Errorf("%+v: %s is where it should be, and %d things are said of it", w, name, said)
	case s != newUp && said != 1:
		t.Errorf("%+v: %d things are said of %s", w, said, name)
	case moves && s == heldOld:
		t.Errorf("%+v: %s is pinned, and moves", w, name)
	case moves && s.isAtTarget():
		t.Errorf("%+v: %s moves though it is at the target", w, name)
	case moves && step.To != want:
		t.Errorf("%+v: %s moves to %s", w, name, step.To)
	case w.isNew(s) && !moves:
		t.Errorf("%+v: %s is new, and waits", w, name)
	}
}

// checkStage: no more are down than may be, but those that were already.
func (w *small) checkStage(t *testing.T, stage int, steps map[string]rollout.Step) {
	t.Helper()

	before, after := 0, 0

	for i, s := range w.stages[stage] {
		_, moves := steps[clusterName(stage, i)]
		before += one(w.isDown(s))
		after += one(w.isDown(s) || moves && !w.isNew(s))
	}

	if after > max(before, w.budget) {
		t.Errorf("%+v: stage %d: %d were down, %d are, %d may be", w, stage, before, after, w.budget)
	}
}

// checkOrder: the second stage begins when the first is done and something in it shows that the revision
// is good, and then it does.
func (w *small) checkOrder(t *testing.T, steps map[string]rollout.Step) {
	t.Helper()

	done, evident, left, down, moving := true, w.onFailure == v1alpha1.Continue, false, false, false

	for _, s := range w.stages[0] {
		out := s == heldOld || w.isNew(s)
		done = done && (out || s == newUp || s == newFailed && w.onFailure == v1alpha1.Continue)
		evident = evident || s == newUp
	}

	for i, s := range w.stages[1] {
		_, moves := steps[clusterName(1, i)]
		moving = moving || moves && !w.isNew(s)
		left = left || !s.isAtTarget() && s != heldOld && !w.isNew(s)
		down = down || w.isDown(s) || s == newFailed
	}

	switch {
	case moving && (!done || !evident):
		t.Errorf("%+v: the second stage moves before the first is done", w)
	case done && evident && left && !down && !moving:
		t.Errorf("%+v: nothing moves though it might", w)
	}
}
