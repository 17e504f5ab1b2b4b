package simulate_test

import (
	"cmp"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	gocmp "github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/spillway-dev/spillway/internal/simulate"
	"github.com/spillway-dev/spillway/internal/simulate/forecast"
	"github.com/spillway-dev/spillway/internal/simulate/record"
	"github.com/spillway-dev/spillway/internal/simulate/world"
)

// drawn is a rollout whose Pods take times that are drawn, at some moment.
type drawn struct {
	seed uint64
	// present is what there is at the moment, which is so long after the change.
	present []client.Object
	after   time.Duration
	options simulate.Options
	// real is what happens in the end.
	real simulate.Result
}

// draw plays a rollout of the seed: its Pods take the drawn times, and so did those that they
// replace.
func draw(t *testing.T, scenario string, seed uint64) *drawn {
	t.Helper()
	rnd := rand.New(rand.NewPCG(seed, 21))
	slowest := 5 + rnd.IntN(115)
	takes := func() time.Duration { return time.Duration(slowest+rnd.IntN(slowest)) * time.Second }
	base, change := objects(read(t, scenario, "base.yaml")), objects(read(t, scenario, "change.yaml"))
	o := benchOptions()
	o.Stop = new(time.Duration)
	present := state(t, base, nil, o)
	o.Readiness = world.Readiness{Default: time.Minute, Of: map[string]time.Duration{}}
	for _, obj := range present {
		if pod, ok := obj.(*corev1.Pod); ok {
			o.Readiness.Of["pod/"+pod.Name] = takes()
			took(pod, takes())
		}
	}
	o.Present = present
	then, err := simulate.Run(t.Context(), nil, change, o)
	if err != nil || !then.Settled {
		t.Fatalf("seed %d: settled is %t: %v", seed, then.Settled, err)
	}
	d := &drawn{seed: seed, options: o, real: then, after: time.Duration(rnd.Int64N(int64(time.Duration(then.Took)))).Truncate(time.Second)}
	o.Within = max(d.after, 1)
	d.present = state(t, nil, change, o)
	return d
}

func state(t *testing.T, base, change []*unstructured.Unstructured, o simulate.Options) []client.Object {
	t.Helper()
	all, err := simulate.After(t.Context(), base, change, o)
	if err != nil {
		t.Fatal(err)
	}
	return all
}

// took has a Pod have been ready so long after it was made.
func took(pod *corev1.Pod, d time.Duration) {
	for i := range pod.Status.Conditions {
		if c := &pod.Status.Conditions[i]; c.Type == corev1.PodReady {
			c.LastTransitionTime = metav1.NewTime(pod.CreationTimestamp.Add(d))
		}
	}
}

// foresee is the forecast at the moment, by what was seen until then.
func (d *drawn) foresee(t *testing.T) forecast.Course {
	t.Helper()
	o := d.options
	o.Present, o.Now, o.Readiness = d.present, o.Now.Add(d.after), world.Readiness{Default: time.Minute}
	outlook, err := forecast.Of(t.Context(), o)
	if err != nil {
		t.Fatalf("seed %d: %v", d.seed, err)
	}
	i := slices.IndexFunc(outlook.Rollouts, func(c forecast.Course) bool { return c.Ring == record.RingZones })
	if i < 0 {
		t.Fatalf("seed %d: no rollout is foreseen %s after the change: %+v", d.seed, d.after, outlook)
	}
	return outlook.Rollouts[i]
}

// remaining are the real steps after the moment, each decision in the order of its units.
func (d *drawn) remaining() []string {
	var left []record.Step
	for _, s := range d.real.Steps {
		if time.Duration(s.At) > d.after && s.Ring == record.RingZones {
			left = append(left, s)
		}
	}
	return ordered(left)
}

// ordered are steps in their order, where those of the same moment may come in any.
func ordered(steps []record.Step) []string {
	slices.SortStableFunc(steps, func(a, b record.Step) int {
		return cmp.Or(cmp.Compare(a.At, b.At), strings.Compare(a.Unit, b.Unit))
	})
	var texts []string
	for _, s := range steps {
		texts = append(texts, s.Unit+" "+s.Does)
	}
	return texts
}

// Of 200 rollouts, each looked at in some moment, all take the steps that were foreseen, in
// that order; and nine of ten end when it was foreseen.
func TestARolloutEndsAsForeseen(t *testing.T) {
	t.Parallel()
	const worlds = 200
	within := 0
	for seed := range uint64(worlds) {
		d := draw(t, []string{"zones-order", "zones-two-at-a-time", "zones-lent"}[seed%3], seed)
		c := d.foresee(t)
		var coming []record.Step
		for i := range c.Steps {
			coming = append(coming, c.Steps[i].Step)
		}
		if diff := gocmp.Diff(d.remaining(), ordered(coming)); diff != "" {
			t.Errorf("seed %d, %s after the change (-real +foreseen):\n%s", seed, d.after, diff)
		}
		end := d.options.Now.Add(time.Duration(d.real.Took))
		if c.Ends != nil && !end.Before(c.Ends.Earliest) && !end.After(c.Ends.Latest) {
			within++
		}
	}
	if within < worlds*9/10 {
		t.Errorf("%d of %d ended when it was foreseen", within, worlds)
	}
	t.Logf("%d of %d ended when it was foreseen", within, worlds)
}
