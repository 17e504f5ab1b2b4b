package measure_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"pgregory.net/rapid"

	"github.com/spillway-dev/spillway/api/spillway/v1alpha1"
	"github.com/spillway-dev/spillway/internal/gates/measure"
)

// TestVerdictsDuring checks the rules of a gate that is measured while its stage rolls: it is
// refused at any moment, and passes with no measurement from before the end. A | is the end.
func TestVerdictsDuring(t *testing.T) {
	for name, test := range map[string]struct{ spec, answers, want string }{
		"it goes on while the stage rolls":             {`{}`, "+++++", " after 4m0s: 5 of 5 measurements succeeded; last: value +"},
		"it passes with the first after the end":       {`{}`, "+++|+", "Passed after 3m0s: 4 of 4 measurements succeeded; last: value +"},
		"one before the end is not enough":             {`{}`, "+++|", " after 2m0s: 3 of 3 measurements succeeded; last: value +"},
		"the stage ends before the first measurement":  {`{}`, "|+", "Passed after 0s: 1 of 1 measurements succeeded; last: value +"},
		"count is how many there are at least":         {`{count: 5}`, "++|+++", "Passed after 4m0s: 5 of 5 measurements succeeded; last: value +"},
		"a failure refuses while the stage rolls":      {`{}`, "++-", "Refused after 2m0s: failed measurements: 1 (failureLimit 0); last: value -"},
		"failureLimit counts all of them":              {`{count: 3, failureLimit: 1}`, "+-++++|-", "Refused after 6m0s: failed measurements: 2 (failureLimit 1); last: value -"},
		"errors refuse while the stage rolls":          {`{errorLimit: 1}`, "+!!", "Refused after 2m0s: errors in a row: 2 (errorLimit 1); last: value !"},
		"no data does not pass after the end":          {`{}`, "+|00+", "Passed after 3m0s: 2 of 2 measurements succeeded, 2 without data; last: value +"},
		"consecutiveSuccessLimit is about the end":     {`{consecutiveSuccessLimit: 2}`, "+-+-|++", "Passed after 5m0s: succeeded in a row: 2; last: value +"},
		"consecutiveSuccessLimit goes across the end":  {`{consecutiveSuccessLimit: 2}`, "-+|+", "Passed after 2m0s: succeeded in a row: 2; last: value +"},
		"consecutiveSuccessLimit and count at the end": {`{consecutiveSuccessLimit: 2, count: 3}`, "+-+-+|-", "Refused after 5m0s: 2 in a row did not succeed within 3 measurements; last: value -"},
		"timeout begins at the end":                    {`{timeout: 90s, count: 9}`, "+++|+++++", "Refused after 3m30s: no verdict after 1m30s (timeout): 4 of 4 measurements succeeded; last: value +"},
	} {
		t.Run(name, func(t *testing.T) {
			r := rules(t, test.spec).Of(&v1alpha1.RolloutGateSpec{When: "During"})
			s, after := play(r, test.answers)
			if got := fmt.Sprintf("%s after %s: %s", s.Verdict, after, measure.Sentence(&s)); got != test.want {
				t.Errorf("%s\nwant %s", got, test.want)
			}
		})
	}
}

// TestRestartsWhileAStageRolls plays a gate with managers that are killed before and after each
// write, and a stage that ends at any time: the verdict follows from what was counted, and none
// that passes is from before the end.
func TestRestartsWhileAStageRolls(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		r := measure.Rules{
			During: true, Interval: time.Minute, Count: int32(rapid.IntRange(1, 6).Draw(t, "count")), Failures: int32(rapid.IntRange(0, 3).Draw(t, "failures")),
			InRow: int32(rapid.IntRange(0, 3).Draw(t, "in a row")), Errors: int32(rapid.IntRange(0, 3).Draw(t, "errors")), NoData: v1alpha1.NoDataWait,
		}
		answers := rapid.SliceOfN(rapid.SampledFrom([]v1alpha1.GateResult{
			v1alpha1.GateSuccess, v1alpha1.GateSuccess, v1alpha1.GateSuccess, v1alpha1.GateFailure, v1alpha1.GateNoData, v1alpha1.GateError,
		}), 20, 20).Draw(t, "answers")
		endsAt := rapid.IntRange(0, 19).Draw(t, "the stage ends before pass")
		w := &world{r: r, source: answers, now: noon, stored: measure.Begin(noon, v1alpha1.GateTemplateVersion{}, false, r)}
		for i := 0; len(w.counted) < len(answers) && w.stored.Verdict == ""; i++ {
			if i > 1000 {
				t.Fatal("it does not end")
			}
			w.now = w.now.Add(time.Duration(rapid.IntRange(0, 200).Draw(t, "time")) * time.Second)
			if i == endsAt {
				end := metav1.NewMicroTime(w.now)
				w.r = w.r.Of(&v1alpha1.RolloutGateSpec{When: "During", EndedAt: &end})
			}
			w.pass(rapid.Bool().Draw(t, "killed before the write"))
			if w.stored.Verdict == v1alpha1.VerdictPassed && (w.r.EndedAt.IsZero() || w.stored.Last[0].At.Time.Before(w.r.EndedAt)) {
				t.Fatalf("it has passed by a measurement at %s, the stage has ended at %s", w.stored.Last[0].At, w.r.EndedAt)
			}
		}
		want := measure.Begin(noon, v1alpha1.GateTemplateVersion{}, false, r)
		for i, at := range w.counted {
			if i > 0 && at.Sub(w.counted[i-1]) < r.Interval {
				t.Fatalf("measurements %d and %d are %s apart", i-1, i, at.Sub(w.counted[i-1]))
			}
			want = measure.Add(want, w.r, measure.Sample{At: at, Result: answers[i]})
		}
		if diff := cmp.Diff(summary(&want), summary(&w.stored)); diff != "" {
			t.Fatal("the restarts made a difference:\n" + diff)
		}
	})
}
