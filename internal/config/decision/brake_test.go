package decision

import (
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/spillway-dev/spillway/api/spillway/v1alpha1"
	"github.com/spillway-dev/spillway/internal/config/content"
)

// rolls are past rollouts of these contents, one a minute, the last a minute ago.
func rolls(contents ...string) (*v1alpha1.RolloutRecord, []v1alpha1.PastRolloutRecord) {
	var all []v1alpha1.PastRolloutRecord
	for i, target := range contents {
		past := v1alpha1.PastRolloutRecord{Target: strings.TrimPrefix(target, "-")}
		if past.Target == target {
			past.MovedAt = new(metav1.NewMicroTime(now.Add(-time.Duration(i+1) * time.Minute)))
		}
		all = append(all, past)
	}
	return &v1alpha1.RolloutRecord{Target: all[0].Target, MovedAt: all[0].MovedAt}, all[1:]
}

// Only contents that were rolled count, each once in a row, and only those before the present one. It is held until the
// first of them is old enough.
func TestBrake(t *testing.T) {
	db := secret("shop", "db", "1")
	for name, test := range map[string]struct {
		contents []string
		change   func(o *Observed)
		until    time.Duration
	}{
		"five":                           {[]string{"e", "d", "c", "b", "a"}, nil, 5 * time.Minute},
		"more":                           {[]string{"g", "f", "e", "d", "c", "b", "a"}, nil, 5 * time.Minute},
		"four":                           {[]string{"d", "c", "b", "a"}, nil, 0},
		"one content twice":              {[]string{"d", "c", "c", "b", "a"}, nil, 0},
		"back and forth":                 {[]string{"b", "a", "b", "a", "b"}, nil, 5 * time.Minute},
		"some were not rolled":           {[]string{"e", "-d", "c", "-b", "a"}, nil, 0},
		"the present one is rolled":      {[]string{"", "e", "d", "c", "b", "a"}, nil, 0},
		"the present one waits":          {[]string{"-", "e", "d", "c", "b", "a"}, nil, 4 * time.Minute},
		"a user has retried":             {[]string{"e", "d", "c", "b", "a"}, func(o *Observed) { using(retried(db, now))(&o.Workloads[0]) }, 0},
		"a retry of before":              {[]string{"e", "d", "c", "b", "a"}, func(o *Observed) { using(retried(db, now.Add(-time.Hour)))(&o.Workloads[0]) }, 5 * time.Minute},
		"nothing stops it":               {[]string{"e", "d", "c", "b", "a"}, func(o *Observed) { o.Workloads[0].Settings.Unstoppable = true }, 0},
		"it is long ago":                 {[]string{"e", "d", "c", "b", "a"}, func(o *Observed) { o.Now = now.Add(5 * time.Minute) }, 0},
		"another namespace's record":     {[]string{"e", "d", "c", "b", "a"}, func(o *Observed) { o.Workloads[0].Namespace = "else" }, 0},
		"what has no hash is not rolled": {[]string{"e", "d", "c", "b", "a"}, func(o *Observed) { o.Workloads[0].Template.Hash = "" }, 0},
	} {
		t.Run(name, func(t *testing.T) {
			object := content.ObjectOf(db)
			o := Observed{Now: now, Workloads: []Workload{outdated("a", using(db), changed(dbKey))}}
			present, _ := o.Workloads[0].Config.Release(object)
			record := &v1alpha1.ConfigRollout{}
			record.Rollout, record.History = rolls(test.contents...)
			if record.Rollout.Target == "" {
				record.Rollout.Target = present.Digest
			}
			o.Records = map[content.Object]*v1alpha1.ConfigRollout{object: record}
			if test.change != nil {
				test.change(&o)
			}
			plan := Decide(o, Options{})
			if test.until == 0 {
				if len(plan.Writes) == 0 || !plan.Writes[0].Rolls {
					t.Errorf("it is not rolled: %+v", plan.Holds)
				}
				return
			}
			if len(plan.Holds) != 1 || plan.Holds[0].Reason != ReasonConfigKeepsChanging || !plan.Holds[0].Until.Equal(now.Add(test.until)) || !plan.Wake.Equal(plan.Holds[0].Until) {
				t.Errorf("%+v, looks again at %s", plan.Holds, plan.Wake)
			}
			if again := Decide(o, Options{KeepGoing: true}); len(again.Writes) == 0 || !again.Writes[0].Rolls {
				t.Error("it is held although failures stop nothing")
			}
		})
	}
}
