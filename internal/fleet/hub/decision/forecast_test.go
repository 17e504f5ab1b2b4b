package decision_test

import (
	"fmt"
	"math/rand/v2"
	"testing"
	"time"

	gocmp "github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/spillway-dev/spillway/api/fleet/v1alpha1"
	"github.com/spillway-dev/spillway/internal/fleet/hub/decision"
	"github.com/spillway-dev/spillway/internal/fleet/hub/model"
	"github.com/spillway-dev/spillway/rollout"
)

// timed is a module that is rolled out to clusters, each of which takes some time.
type timed struct {
	t     *testing.T
	o     model.Observed
	takes func() time.Duration
	// ready is when clusters that are being updated are ready.
	ready map[string]time.Time
	tags  int
	// forecasts are those of the present rollout, the first one first, nil for none; writes are
	// how often the status was written.
	forecasts []*v1alpha1.Forecast
	writes    int
}

// newTimed has a cluster in stage a, two in b, which rolls them one after the other, and one in
// the last stage.
func newTimed(t *testing.T, takes func() time.Duration) *timed {
	t.Helper()
	w := &timed{t: t, takes: takes, ready: map[string]time.Time{}, tags: 1}
	w.o = planned(t, `strategy: Incremental, rollout: {progressDeadlineSeconds: 36000, stages: [{name: a, selector: {matchLabels: {s: a}}, soakSeconds: 60}, {name: b, selector: {matchLabels: {s: b}}}, {name: c}]}`,
		"a v1 up s=a\nb-1 v1 up s=b\nb-2 v1 up s=b\nc v1 up")
	w.o.Live = true
	return w
}

// begin gives the module another template.
func (w *timed) begin() {
	w.tags++
	tag := fmt.Sprintf("v%d", w.tags)
	w.o.Module.Spec.Template = &v1alpha1.ModuleTemplate{Spec: templateOf(tag)}
	w.o.Revisions = append(w.o.Revisions, model.Revision{Name: revisionOf(tag), Number: int64(w.tags)})
	w.forecasts = nil
}

// pass is what a manager does once. It is false if there was nothing to do.
func (w *timed) pass() (decision.Plan, bool) {
	p := decision.Decide(w.o)
	changes := !equality.Semantic.DeepEqual(w.o.Module.Status, p.Status)
	if changes {
		w.writes++
	}
	w.o.Module.Status = p.Status
	if p.Permits {
		w.forecasts = append(w.forecasts, p.Status.Forecast)
		return p, true
	}
	for i := range p.Writes {
		if write := &p.Writes[i]; write.Act == decision.Assign {
			w.assign(write)
			changes = true
		}
	}
	return p, changes
}

func (w *timed) assign(write *decision.Write) {
	for i := range w.o.Records {
		if r := &w.o.Records[i]; r.Cluster == write.Cluster.Name {
			r.Revision, r.AssignedAt, r.Since, r.State = write.Revision, write.AssignedAt, w.o.Now, v1alpha1.StateUpdating
			r.Generation++
			w.ready[r.Cluster] = w.o.Now.Add(w.takes())
		}
	}
}

// settle lets a manager do all that it does, and returns when time alone changes something.
func (w *timed) settle() time.Time {
	for range 100 {
		if p, changes := w.pass(); !changes {
			return p.Wake
		}
	}
	w.t.Fatal("it never comes to rest")
	return time.Time{}
}

// wait lets time pass until the next cluster is ready, or the next moment at which the manager
// decides again.
func (w *timed) wait(wake time.Time) {
	next := wake
	for _, at := range w.ready {
		if next.IsZero() || at.Before(next) {
			next = at
		}
	}
	w.o.Now = next
	for i := range w.o.Records {
		r := &w.o.Records[i]
		if at, updating := w.ready[r.Cluster]; updating && !at.After(next) {
			r.State, r.Since, r.Succeeded = v1alpha1.StateSucceeded, at, r.Revision
			delete(w.ready, r.Cluster)
		}
	}
}

// roll carries out a whole rollout, and returns when it ended.
func (w *timed) roll() time.Time {
	w.t.Helper()
	w.begin()
	for range 100 {
		wake := w.settle()
		if w.o.Module.Status.Phase == string(rollout.PhaseComplete) {
			end := w.o.Now
			w.o.Now = w.o.Now.Add(time.Hour)
			return end
		}
		w.wait(wake)
	}
	w.t.Fatalf("it does not complete: %+v", w.o.Module.Status)
	return time.Time{}
}

// A rollout notes how long its stages took, and the next one is foreseen by that, with each
// step and in no other write.
func TestForecast(t *testing.T) {
	w := newTimed(t, func() time.Duration { return time.Minute })
	w.roll()
	for _, f := range w.forecasts {
		if f != nil {
			t.Errorf("nothing is known of earlier rollouts, and foreseen is %v", f)
		}
	}
	first, steps := w.writes, len(w.forecasts)
	var stages []string
	for _, s := range w.o.Module.Status.History[0].Stages {
		stages = append(stages, fmt.Sprint(s.Name, " ", s.FinishedAt.Sub(s.StartedAt.Time)))
	}
	if diff := gocmp.Diff([]string{"a 2m0s", "b 2m0s", "c 1m0s"}, stages); diff != "" {
		t.Errorf("stages, a with its soak (-want +got):\n%s", diff)
	}
	began := w.o.Now
	w.roll()
	after := func(d time.Duration) metav1.Time { return metav1.NewTime(began.Add(d)) }
	want := &v1alpha1.Forecast{At: after(0), Earliest: after(150 * time.Second), Expected: after(5 * time.Minute), Latest: after(10 * time.Minute), Decides: "c"}
	if diff := gocmp.Diff(want, w.forecasts[0]); diff != "" {
		t.Errorf("at the first step (-want +got):\n%s", diff)
	}
	if last := w.forecasts[len(w.forecasts)-1]; last.Expected != after(5*time.Minute) || last.At != after(4*time.Minute) || last.Decides != "c" {
		t.Errorf("at the last step it is %v", last)
	}
	if got := w.writes - first; len(w.forecasts) != steps || got != first {
		t.Errorf("%d steps and %d writes, without a forecast %d and %d", len(w.forecasts), got, steps, first)
	}
	if f := w.o.Module.Status.Forecast; f != nil {
		t.Errorf("once it is complete it is %v", f)
	}
}

// What is foreseen stays while time passes, and goes with what it was about.
func TestAForecastIsOfOneRollout(t *testing.T) {
	w := newTimed(t, func() time.Duration { return time.Minute })
	w.roll()
	w.begin()
	w.settle()
	foreseen := w.o.Module.Status.Forecast
	if foreseen == nil {
		t.Fatal("there is none")
	}
	for name, test := range map[string]struct {
		change func(*model.Observed)
		keeps  bool
	}{
		"time alone changes nothing": {func(o *model.Observed) { o.Now = o.Now.Add(30 * time.Second) }, true},
		"it is paused":               {func(o *model.Observed) { o.Module.Spec.Suspend = true }, true},
		"another revision is wanted": {func(o *model.Observed) {
			o.Module.Spec.Template = &v1alpha1.ModuleTemplate{Spec: templateOf("v9")}
		}, false},
		"it is invalid":       {func(o *model.Observed) { o.Module.Spec.Selector = nil; o.Module.Spec.TargetRevision = "gone" }, false},
		"it has failed":       {func(o *model.Observed) { o.Records[0].State = v1alpha1.StateFailed }, false},
		"it is being deleted": {func(o *model.Observed) { o.Module.Deleting = true }, false},
	} {
		t.Run(name, func(t *testing.T) {
			o := w.o
			o.Records = append([]model.Record(nil), o.Records...)
			test.change(&o)
			p := decision.Decide(o)
			if got := p.Status.Forecast; test.keeps && gocmp.Diff(foreseen, got) != "" || !test.keeps && got != nil {
				t.Errorf("%v in phase %s", got, p.Status.Phase)
			}
		})
	}
}

// Going back waits for no soak and no gate, so how long rollouts took says nothing of it.
func TestGoingBackIsNotForeseen(t *testing.T) {
	o := planned(t, `strategy: Incremental, rollout: {onFailure: Rollback}`, "a v2 failed\nb v1 up")
	began, ended := metav1.NewMicroTime(noon.Add(-time.Hour)), metav1.NewMicroTime(noon.Add(-50*time.Minute))
	o.Module.Status.History = []v1alpha1.PastRollout{{
		Revision: revisionOf("v1"), Outcome: string(rollout.OutcomeComplete), StartedAt: began, FinishedAt: &ended,
		Stages: []v1alpha1.PastStage{{Name: "all", StartedAt: began, FinishedAt: ended}},
	}}
	for range 2 {
		p := decision.Decide(o)
		if !p.Permits || p.Status.Forecast != nil {
			t.Fatalf("%s: %v", said(&p), p.Status.Forecast)
		}
		o.Module.Status = p.Status
	}
}

// How long stages took is remembered of five rollouts.
func TestTheTimesOfStagesAreBounded(t *testing.T) {
	w := newTimed(t, func() time.Duration { return time.Minute })
	for range 8 {
		w.roll()
	}
	timed := 0
	for i, past := range w.o.Module.Status.History {
		if len(past.Stages) > 0 {
			timed++
		}
		if (len(past.Stages) == 3) != (i < 5) {
			t.Errorf("rollout %d has %d stages", i, len(past.Stages))
		}
	}
	if timed != 5 || len(w.o.Module.Status.History) != 8 {
		t.Errorf("%d of %d rollouts have the times of their stages", timed, len(w.o.Module.Status.History))
	}
}

// Of 200 rollouts whose clusters take as long as they took before, give or take, nine of ten end
// within what is foreseen at the first step.
func TestRolloutsEndWithinTheirForecast(t *testing.T) {
	const worlds = 200
	within := 0
	for seed := range uint64(worlds) {
		rnd := rand.New(rand.NewPCG(seed, 80))
		typical := time.Duration(30+rnd.IntN(600)) * time.Second
		w := newTimed(t, func() time.Duration {
			return typical + time.Duration(rnd.Int64N(int64(typical))).Truncate(time.Microsecond)
		})
		for range 1 + rnd.IntN(5) {
			w.roll()
		}
		end := w.roll()
		f := w.forecasts[0]
		if f == nil {
			t.Fatalf("seed %d: there is none", seed)
		}
		if !end.Before(f.Earliest.Time) && !end.After(f.Latest.Time) {
			within++
		}
	}
	t.Logf("%d of %d ended when it was foreseen", within, worlds)
	if within < worlds*9/10 {
		t.Errorf("%d of %d ended when it was foreseen", within, worlds)
	}
}
