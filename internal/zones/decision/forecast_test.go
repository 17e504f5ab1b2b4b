package decision

import (
	"math/rand/v2"
	"testing"
	"time"

	gocmp "github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/spillway-dev/spillway/api/spillway/v1alpha1"
	"github.com/spillway-dev/spillway/rollout"
)

// ran is a rollout a day before, of zones that each waited and then took some time.
func ran(number int64, zones ...stretch) v1alpha1.Rollout {
	now := noon.Add(-24 * time.Hour)
	r := v1alpha1.Rollout{Number: number, StartedAt: metav1.NewMicroTime(now), Outcome: string(rollout.OutcomeComplete)}
	for _, z := range zones {
		began, ended := metav1.NewMicroTime(now.Add(z.waits)), metav1.NewMicroTime(now.Add(z.waits+z.takes))
		now = ended.Time
		r.Zones = append(r.Zones, v1alpha1.ZoneRevision{Name: z.zone, Revision: "v1", StartedAt: &began, FinishedAt: &ended})
	}
	r.FinishedAt = new(metav1.NewMicroTime(now))
	return r
}

// stretch is a zone in a rollout.
type stretch struct {
	zone         string
	waits, takes time.Duration
}

// A step is written with when the rollout ends; no write is made for that alone.
func TestForecast(t *testing.T) {
	o := group(zoneOf("a", "v1 v1"), zoneOf("b", "v1"))
	if f := o.written(t).Group.Status.Forecast; f != nil {
		t.Errorf("nothing is known of earlier rollouts, and foreseen is %v", f)
	}
	o.Group.Status.History = []v1alpha1.Rollout{ran(1, stretch{"a", 0, time.Minute}, stretch{"b", time.Minute, time.Minute})}
	o = o.written(t)
	after := func(d time.Duration) metav1.Time { return metav1.NewTime(noon.Add(d)) }
	want := &v1alpha1.Forecast{At: after(0), Earliest: after(90 * time.Second), Expected: after(3 * time.Minute), Latest: after(6 * time.Minute), Decides: "b"}
	if diff := gocmp.Diff(want, o.Group.Status.Forecast); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	stands := Decide(*o.then(2*time.Second, zoneOf("a", "v1~ v1"), zoneOf("b", "v1")))
	if diff := gocmp.Diff(o.Group.Status.Forecast, stands.Status.Forecast); diff != "" {
		t.Errorf("time alone changes it:\n%s", diff)
	}
	o = o.then(2*time.Minute, zoneOf("a", "v2 v1", renewed), zoneOf("b", "v1")).written(t)
	if f := o.Group.Status.Forecast; f.At != after(2*time.Minute) || f.Expected != after(4*time.Minute) {
		t.Errorf("with the next step it is %v", f)
	}
	complete := group(zoneOf("a", "v2", done))
	complete.Group.Status.Forecast = want
	if s := complete.written(t).Group.Status; s.Phase != string(rollout.PhaseComplete) || s.Forecast != nil {
		t.Errorf("once it is %s it is %v", s.Phase, s.Forecast)
	}
}

// Of 200 rollouts whose zones take as long as they took before, give or take, nine of ten end
// within what is foreseen at the first step.
func TestRolloutsEndWithinTheirForecast(t *testing.T) {
	const worlds, zones = 200, 3
	within := 0
	for seed := range uint64(worlds) {
		rnd := rand.New(rand.NewPCG(seed, 60))
		typical := time.Duration(30+rnd.IntN(600)) * time.Second
		takes := func() time.Duration { return typical + time.Duration(rnd.Int64N(int64(typical))) }
		o := group(zoneOf("a", "v1"), zoneOf("b", "v1"), zoneOf("c", "v1"))
		for number := range int64(1 + rnd.IntN(5)) {
			o.Group.Status.History = append(o.Group.Status.History, ran(1+number, stretch{"a", 0, takes()}, stretch{"b", typical, takes()}, stretch{"c", typical, takes()}))
		}
		end := noon.Add((zones - 1) * typical)
		for range zones {
			end = end.Add(takes())
		}
		if f := o.written(t).Group.Status.Forecast; !end.Before(f.Earliest.Time) && !end.After(f.Latest.Time) {
			within++
		}
	}
	t.Logf("%d of %d ended when it was foreseen", within, worlds)
	if within < worlds*9/10 {
		t.Errorf("%d of %d ended when it was foreseen", within, worlds)
	}
}
