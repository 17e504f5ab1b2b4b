package lock

import (
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/spillway-dev/spillway/api/spillway/v1alpha1"
)

func ago(d time.Duration) time.Time { return noon.Add(-d) }

func TestMinTime(t *testing.T) {
	name := func(d Downscaled) string { return d.Zone }
	for text, test := range map[string]struct {
		others []Downscaled
		want   string
		until  time.Time
	}{
		"no other":           {},
		"never scaled down":  {others: []Downscaled{{Zone: "a", Wait: time.Hour}}},
		"long ago":           {others: []Downscaled{{Zone: "a", Last: ago(time.Hour), Wait: time.Hour}}},
		"not long enough":    {[]Downscaled{{Zone: "a", Last: ago(time.Hour), Wait: time.Hour + 1}}, "a", noon.Add(1)},
		"the longest counts": {[]Downscaled{{"a", ago(1), time.Minute}, {"b", ago(2), time.Hour}, {"c", ago(0), 0}}, "b", ago(2).Add(time.Hour)},
		"of two the first":   {[]Downscaled{{"a", noon, time.Hour}, {"b", noon, time.Hour}}, "a", noon.Add(time.Hour)},
	} {
		t.Run(text, func(t *testing.T) {
			block := MinTime(noon, test.others, name)
			if (block == nil) != (test.want == "") {
				t.Fatalf("%+v", block)
			}
			if block != nil && (block.Message != test.want || !block.Until.Equal(test.until) || block.Reason != ReasonMinTime || block.Since.IsZero()) {
				t.Errorf("%+v", block)
			}
		})
	}
}

// Of what Spillway and what rollout-operator have noted the later counts, and an
// annotation wins over a label.
func TestRecently(t *testing.T) {
	const key, last = "grafana.com/min-time-between-zones-downscale", "grafana.com/last-downscale"
	s := &v1alpha1.RolloutGroupStatus{Downscales: []v1alpha1.Downscale{{Zone: "a", At: metav1.NewMicroTime(noon)}}}
	for text, test := range map[string]struct {
		zone                string
		labels, annotations map[string]string
		want                Downscaled
		says, wrong         bool
	}{
		"ours":                {zone: "a", labels: map[string]string{key: "1h"}, want: Downscaled{"a", noon, time.Hour}, says: true},
		"both":                {zone: "a", labels: map[string]string{key: "1h"}, annotations: map[string]string{key: "2h"}, want: Downscaled{"a", noon, 2 * time.Hour}, says: true},
		"an earlier one":      {zone: "a", annotations: map[string]string{last: "2026-05-04T11:00:00Z"}, want: Downscaled{Zone: "a", Last: noon}},
		"a later one":         {zone: "a", annotations: map[string]string{last: "2026-05-04T13:00:00Z"}, want: Downscaled{Zone: "a", Last: noon.Add(time.Hour)}},
		"none":                {zone: "b", want: Downscaled{Zone: "b"}},
		"no time":             {zone: "a", annotations: map[string]string{last: "yesterday"}, wrong: true},
		"no duration":         {zone: "a", labels: map[string]string{key: "soon"}, wrong: true},
		"an empty annotation": {zone: "a", annotations: map[string]string{key: ""}, labels: map[string]string{key: "1h"}, wrong: true},
	} {
		t.Run(text, func(t *testing.T) {
			got, says, err := Recently(s, test.zone, test.labels, test.annotations)
			if (err != nil) != test.wrong || says != test.says || got.Wait != test.want.Wait || !got.Last.Equal(test.want.Last) {
				t.Errorf("%+v, %v, %v", got, says, err)
			}
		})
	}
}
