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
	r := &reconciled{desc: ReconcileLast.desc, groups: map[group]time.Time{}}
	for _, namespace := range []string{"rests", "fails", "hangs", "recovers", "gone"} {
		r.Begin(namespace, "ingester", noon.Add(-time.Hour))
		r.Succeed(namespace, "ingester")
	}
	r.Begin("fails", "ingester", noon.Add(time.Hour))
	r.Begin("fails", "ingester", noon.Add(2*time.Hour))
	r.Begin("hangs", "ingester", noon.Add(3*time.Hour))
	r.Begin("recovers", "ingester", noon.Add(time.Hour))
	r.Begin("recovers", "ingester", noon.Add(2*time.Hour))
	r.Succeed("recovers", "ingester")
	r.Forget("gone", "ingester")

	found := make(chan prometheus.Metric, 10)
	r.collect(noon.Add(4*time.Hour), found)
	close(found)
	ages := map[string]time.Duration{}
	for m := range found {
		var written dto.Metric
		if err := m.Write(&written); err != nil {
			t.Fatal(err)
		}
		at := time.UnixMilli(int64(written.GetGauge().GetValue() * 1000))
		ages[written.GetLabel()[0].GetValue()] = noon.Add(4 * time.Hour).Sub(at)
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
}
