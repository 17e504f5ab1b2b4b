package metrics

import (
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	dto "github.com/prometheus/client_model/go"
)

// The alert of Mimir fires for a group that was not reconciled for ten minutes, and never goes
// off for one that rests; nor does a group of the same name in another namespace hide it.
func TestAGroupThatRestsIsReconciled(t *testing.T) {
	t.Parallel()
	noon := time.Date(2026, 1, 1, 12, 0, 0, 0, time.UTC)
	now := noon.Add(-time.Hour)
	clock := func() time.Time { return now }
	p := &passes{last: Passes.last, groups: map[group]*course{}}
	pass := func(namespace string, at time.Duration, failed bool) {
		now = noon.Add(at)
		p.Begin(namespace, t.Name(), clock)(failed)
	}
	for _, namespace := range []string{"rests", "fails", "hangs", "recovers", "gone"} {
		pass(namespace, -time.Hour, false)
	}
	pass("fails", time.Hour, true)
	pass("recovers", time.Hour, true)
	pass("fails", 2*time.Hour, true)
	pass("recovers", 2*time.Hour, false)
	now = noon.Add(3 * time.Hour)
	p.Begin("hangs", t.Name(), clock)
	p.Forget("gone", t.Name())

	now = noon.Add(4 * time.Hour)
	found := make(chan prometheus.Metric, 10)
	p.Collect(found)
	close(found)
	ages := map[string]time.Duration{}
	for m := range found {
		written := written(t, m)
		at := time.UnixMilli(int64(written.GetGauge().GetValue() * 1000))
		ages[written.GetLabel()[0].GetValue()] = now.Sub(at)
	}
	want := map[string]time.Duration{"rests": 0, "recovers": 0, "fails": 3 * time.Hour, "hangs": time.Hour}
	if len(ages) != len(want) {
		t.Errorf("found %v", ages)
	}
	for namespace, age := range want {
		if ages[namespace] != age {
			t.Errorf("%s: %s old, want %s", namespace, ages[namespace], age)
		}
	}
	// Two passes and one scrape, for one that fails; no pass of the others failed since.
	for namespace, want := range map[string]float64{"fails": 3, "recovers": 1, "rests": 0} {
		if got := written(t, reconcilesFailed.WithLabelValues(namespace, t.Name())).GetCounter().GetValue(); got != want {
			t.Errorf("%s: %v failed passes, want %v", namespace, got, want)
		}
	}
}

func written(t *testing.T, m prometheus.Metric) *dto.Metric {
	t.Helper()
	var written dto.Metric
	if err := m.Write(&written); err != nil {
		t.Fatal(err)
	}
	return &written
}
