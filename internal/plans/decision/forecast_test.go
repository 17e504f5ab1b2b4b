package decision

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	gocmp "github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/spillway-dev/spillway/api/kudo/v1beta1"
	"github.com/spillway-dev/spillway/internal/plans/object"
	"github.com/spillway-dev/spillway/internal/vocabulary"
)

// twoPhases has a phase of two steps one after the other, and then one of two in parallel.
const twoPhases = `
version: "1"
parameters:
- {name: NODES, default: "1"}
tasks:
- {name: a, kind: Apply, spec: {resources: [a.yaml]}}
- {name: b, kind: Apply, spec: {resources: [b.yaml]}}
- {name: c, kind: Apply, spec: {resources: [c.yaml]}}
- {name: d, kind: Apply, spec: {resources: [d.yaml]}}
templates:
  a.yaml: &t |
    apiVersion: apps/v1
    kind: Deployment
    metadata: {name: "{{ .StepName }}"}
    spec: {replicas: 1, template: {metadata: {}, spec: {containers: [{name: c, image: "{{ .Params.NODES }}"}]}}}
  b.yaml: *t
  c.yaml: *t
  d.yaml: *t
plans:
  deploy: &p
    strategy: serial
    phases:
    - {name: first, strategy: serial, steps: [{name: a, tasks: [a]}, {name: b, tasks: [b]}]}
    - {name: second, strategy: parallel, steps: [{name: c, tasks: [c]}, {name: d, tasks: [d]}]}
  update: *p
`

// timed is a world in which Deployments take some time to become ready.
type timed struct {
	*world

	takes func() time.Duration
	ready map[object.Ref]time.Time
	// forecasts are what the statuses of the present plan said that were written with a step, the
	// first one first, nil for none.
	forecasts []*v1beta1.Forecast
}

func newTimed(t *testing.T, takes func() time.Duration) *timed {
	t.Helper()
	return &timed{world: newWorld(t, twoPhases), takes: takes, ready: map[object.Ref]time.Time{}}
}

// settle lets a manager do all that it does. What it applies is ready after some time.
func (w *timed) settle(t *testing.T) {
	t.Helper()
	for _, name := range []string{"a", "b", "c", "d"} {
		w.unhealthy[name] = true
	}
	told := len(w.story)
	w.world.settle(t)
	for ref := range w.objects {
		if _, waits := w.ready[ref]; !waits && strings.Contains(strings.Join(w.story[told:], "\n")+"\n", " "+ref.String()+"\n") {
			w.ready[ref] = w.now.Add(w.takes())
		}
	}
	if f := w.instance.Status.Forecast; w.instance.Status.Running() != nil && (len(w.forecasts) == 0 || f != nil && f.At.Time.Equal(w.now.Truncate(time.Second))) {
		w.forecasts = append(w.forecasts, f)
	}
}

// wait lets time pass until the next Deployment is ready.
func (w *timed) wait() {
	var next object.Ref
	for ref, at := range w.ready {
		if before, some := w.ready[next]; !some || at.Before(before) {
			next = ref
		}
	}
	w.now = w.ready[next]
	delete(w.ready, next)
	w.unhealthy[next.Name] = false
	w.grow(next)
}

// run carries out a plan, for a change of a parameter if there was one before, and returns
// when it ended.
func (w *timed) run(t *testing.T) time.Time {
	t.Helper()
	w.begin()
	for range 20 {
		w.settle(t)
		if len(w.ready) == 0 {
			break
		}
		w.wait()
	}
	e := w.instance.Status.Execution
	if e.Result != v1beta1.ResultComplete {
		t.Fatalf("it does not complete: %+v", w.instance.Status)
	}
	w.now = w.now.Add(time.Hour)
	return e.FinishedAt.Time
}

func (w *timed) begin() {
	w.forecasts = nil
	if n := len(w.instance.Status.History); n > 0 {
		w.set(parameters("NODES", fmt.Sprint(n+1)))
	}
}

// TestForecast checks that a plan notes how long its steps took, and that the next time the end
// of the plan is foreseen by that, with each step and in no write of its own.
func TestForecast(t *testing.T) {
	w := newTimed(t, func() time.Duration { return time.Minute })
	w.run(t)
	before := w.statuses
	w.run(t)
	unforeseen := w.statuses - before
	if w.forecasts[0] != nil {
		t.Errorf("nothing is known of how long an update takes, and foreseen is %v", w.forecasts[0])
	}
	var steps []string
	for _, s := range w.instance.Status.History[0].Steps {
		steps = append(steps, fmt.Sprint(s.Name, " ", s.FinishedAt.Sub(s.StartedAt.Time)))
	}
	if diff := gocmp.Diff([]string{"first/a 1m0s", "first/b 1m0s", "second/c 1m0s", "second/d 1m0s"}, steps); diff != "" {
		t.Errorf("steps (-want +got):\n%s", diff)
	}
	began := w.now
	before = w.statuses
	w.run(t)
	if got := w.statuses - before; got != unforeseen {
		t.Errorf("%d writes of the status, without a forecast %d", got, unforeseen)
	}
	after := func(d time.Duration) metav1.Time { return metav1.NewTime(began.Add(d)) }
	want := []*v1beta1.Forecast{
		{At: after(0), Earliest: after(90 * time.Second), Expected: after(3 * time.Minute), Latest: after(6 * time.Minute), Decides: "second/c"},
		{At: after(time.Minute), Earliest: after(2 * time.Minute), Expected: after(3 * time.Minute), Latest: after(5 * time.Minute), Decides: "second/c"},
		{At: after(2 * time.Minute), Earliest: after(150 * time.Second), Expected: after(3 * time.Minute), Latest: after(4 * time.Minute), Decides: "second/c"},
	}
	if diff := gocmp.Diff(want, w.forecasts); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	if f := w.instance.Status.Forecast; f != nil {
		t.Errorf("once the plan has ended it is %v", f)
	}
}

// TestAForecastIsOfOneExecution checks that what is foreseen stays while time passes, and goes
// with what it was about.
func TestAForecastIsOfOneExecution(t *testing.T) {
	for name, test := range map[string]struct {
		change func(*timed)
		keeps  bool
	}{
		"time alone changes nothing": {func(w *timed) { w.now = w.now.Add(30 * time.Second) }, true},
		"it is abandoned": {func(w *timed) {
			w.instance.Annotations = map[string]string{vocabulary.AbandonPlan.Native: string(w.instance.Status.Execution.UID)}
		}, false},
		"its OperatorVersion is gone": {func(w *timed) { w.versions, w.pins = nil, nil }, true},
	} {
		t.Run(name, func(t *testing.T) {
			w := newTimed(t, func() time.Duration { return time.Minute })
			for range 2 {
				w.run(t)
			}
			w.begin()
			w.settle(t)
			foreseen := w.instance.Status.Forecast.DeepCopy()
			test.change(w)
			w.settle(t)
			if got := w.instance.Status.Forecast; foreseen == nil || test.keeps && gocmp.Diff(foreseen, got) != "" || !test.keeps && got != nil {
				t.Errorf("%v, and before %v", got, foreseen)
			}
		})
	}
}

// TestPlansEndWithinTheirForecast checks that of 200 plans whose steps take as long as they took
// before, give or take, nine of ten end within what is foreseen at the first step: ten of each
// Instance, of which the first has run once before.
func TestPlansEndWithinTheirForecast(t *testing.T) {
	const worlds, plans = 20, 10
	within := 0
	for seed := range uint64(worlds) {
		rnd := rand.New(rand.NewPCG(seed, 80))
		typical := time.Duration(30+rnd.IntN(600)) * time.Second
		w := newTimed(t, func() time.Duration { return typical + time.Duration(rnd.Int64N(int64(typical))) })
		w.run(t) // it is deployed
		w.run(t)
		for range plans {
			end := w.run(t)
			f := w.forecasts[0]
			if f == nil {
				t.Fatalf("seed %d: there is none", seed)
			}
			if !end.Before(f.Earliest.Time) && !end.After(f.Latest.Time) {
				within++
			}
		}
	}
	t.Logf("%d of %d ended when it was foreseen", within, worlds*plans)
	if within < worlds*plans*9/10 {
		t.Errorf("%d of %d ended when it was foreseen", within, worlds*plans)
	}
}
