package measure_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"
	"sigs.k8s.io/yaml"

	"github.com/spillway-dev/spillway/api/spillway/v1alpha1"
	"github.com/spillway-dev/spillway/internal/gates/measure"
)

var noon = time.Date(2026, 5, 4, 12, 0, 0, 0, time.UTC)

func rules(t *testing.T, spec string) measure.Rules {
	t.Helper()
	s := v1alpha1.GateTemplateSpec{}
	if err := yaml.UnmarshalStrict([]byte(spec), &s); err != nil {
		t.Fatal(spec, err)
	}
	return measure.RulesOf(&s)
}

var letters = map[rune]v1alpha1.GateResult{
	'+': v1alpha1.GateSuccess, '-': v1alpha1.GateFailure, '0': v1alpha1.GateNoData, '!': v1alpha1.GateError,
}

// play measures what the source answers, one letter each, until there is a verdict, and
// returns how long that took.
func play(r measure.Rules, answers string) (measure.State, time.Duration) {
	s, now := measure.Begin(noon, v1alpha1.GateTemplateVersion{}, false, r), noon
	for _, answer := range answers {
		if answer == '|' {
			r.EndedAt = now
			continue
		}
		next := measure.Look(&s, r, now)
		for !next.Wake.IsZero() {
			now = next.Wake
			next = measure.Look(&s, r, now)
		}
		switch {
		case next.TimedOut:
			return measure.TimeOut(s, r), now.Sub(noon)
		case !next.Measure:
			return s, now.Sub(noon)
		}
		s = measure.Add(s, r, measure.Sample{At: now, Result: letters[answer], Value: "value " + string(answer)})
	}
	return s, now.Sub(noon)
}

// TestVerdicts checks each rule: what the source answers (+ success, - failure, 0 no data,
// ! error), and what is decided when.
func TestVerdicts(t *testing.T) {
	for name, test := range map[string]struct{ spec, answers, want string }{
		"one measurement by default":                       {`{}`, "+", "Passed after 0s: 1 of 1 measurements succeeded; last: value +"},
		"no failure by default":                            {`{}`, "-", "Refused after 0s: failed measurements: 1 (failureLimit 0); last: value -"},
		"initialDelay":                                     {`{initialDelay: 5m}`, "+", "Passed after 5m0s: 1 of 1 measurements succeeded; last: value +"},
		"interval and count":                               {`{interval: 30s, count: 3}`, "+++", "Passed after 1m0s: 3 of 3 measurements succeeded; last: value +"},
		"count is not reached":                             {`{count: 3}`, "++", " after 1m0s: 2 of 2 measurements succeeded; last: value +"},
		"failureLimit tolerates as many":                   {`{count: 3, failureLimit: 1}`, "+-+", "Passed after 2m0s: 2 of 3 measurements succeeded; last: value +"},
		"failureLimit and one more":                        {`{count: 9, failureLimit: 1}`, "+--", "Refused after 2m0s: failed measurements: 2 (failureLimit 1); last: value -"},
		"consecutiveSuccessLimit":                          {`{consecutiveSuccessLimit: 2}`, "+-+-++", "Passed after 5m0s: succeeded in a row: 2; last: value +"},
		"consecutiveSuccessLimit within count":             {`{consecutiveSuccessLimit: 2, count: 3}`, "+-+", "Refused after 2m0s: 2 in a row did not succeed within 3 measurements; last: value +"},
		"consecutiveSuccessLimit and failureLimit":         {`{consecutiveSuccessLimit: 2, failureLimit: 1}`, "+--", "Refused after 2m0s: failed measurements: 2 (failureLimit 1); last: value -"},
		"an error does not break a row":                    {`{consecutiveSuccessLimit: 2}`, "+!+", "Passed after 2m0s: succeeded in a row: 2; last: value +"},
		"missing data breaks a row":                        {`{consecutiveSuccessLimit: 2}`, "+0+", " after 2m0s: 2 of 2 measurements succeeded, 1 without data; last: value +"},
		"no data waits by default":                         {`{}`, "000+", "Passed after 3m0s: 1 of 1 measurements succeeded, 3 without data; last: value +"},
		"no data waits for ever":                           {`{}`, "00", " after 1m0s: 0 of 0 measurements succeeded, 2 without data; last: no data"},
		"no data until the timeout":                        {`{timeout: 90s}`, "0000", "Refused after 1m30s: no verdict after 1m30s (timeout): 0 of 0 measurements succeeded, 2 without data; last: no data"},
		"no data passes":                                   {`{noData: Pass}`, "0", "Passed after 0s: 1 of 1 measurements succeeded, 1 without data; last: no data"},
		"no data fails":                                    {`{noData: Fail}`, "0", "Refused after 0s: failed measurements: 1 (failureLimit 0); last: no data"},
		"an error is no failure":                           {`{}`, "!!!!+", "Passed after 4m0s: 1 of 1 measurements succeeded, errors: 4; last: value +"},
		"more errors in a row than errorLimit":             {`{}`, "!!!!!", "Refused after 4m0s: errors in a row: 5 (errorLimit 4); last: value !"},
		"errors not in a row":                              {`{errorLimit: 1, count: 3}`, "!+!-!+!+", "Refused after 3m0s: failed measurements: 1 (failureLimit 0); last: value -"},
		"missing data ends a row of errors":                {`{errorLimit: 1}`, "!0!0+", "Passed after 4m0s: 1 of 1 measurements succeeded, 2 without data, errors: 2; last: value +"},
		"the timeout comes before the next measurement":    {`{interval: 10m, count: 2, timeout: 5m}`, "++", "Refused after 5m0s: no verdict after 5m0s (timeout): 1 of 1 measurements succeeded; last: value +"},
		"the timeout comes before the first measurement":   {`{initialDelay: 10m, timeout: 5m}`, "+", "Refused after 5m0s: no verdict after 5m0s (timeout): 0 of 0 measurements succeeded"},
		"a verdict stays, whatever is measured afterwards": {`{}`, "+-", "Passed after 0s: 1 of 1 measurements succeeded; last: value +"},
	} {
		t.Run(name, func(t *testing.T) {
			s, after := play(rules(t, test.spec), test.answers)
			if got := fmt.Sprintf("%s after %s: %s", s.Verdict, after, measure.Sentence(&s)); got != test.want {
				t.Errorf("%s\nwant %s", got, test.want)
			}
			if (s.Verdict == "") != (s.NextAt != nil) {
				t.Errorf("verdict %q, next measurement at %s", s.Verdict, s.NextAt)
			}
		})
	}
}

// TestWhatIsKeptIsBounded checks that a state does not grow.
func TestWhatIsKeptIsBounded(t *testing.T) {
	r := rules(t, `{noData: Wait}`)
	s := measure.Begin(noon, v1alpha1.GateTemplateVersion{}, false, r)
	for i := range 100 {
		s = measure.Add(s, r, measure.Sample{At: noon, Result: v1alpha1.GateNoData, Value: strings.Repeat("é", 1000+i), Sent: strings.Repeat("é", 5000)})
	}
	if len(s.Last) != 5 || len(s.Last[0].Value) > 256 || len(s.Sent) > 2048 || s.NoData != 100 {
		t.Errorf("%d samples of %d bytes, %d bytes sent, %d without data", len(s.Last), len(s.Last[0].Value), len(s.Sent), s.NoData)
	}
}

// source answers each measurement, by its number.
type source []v1alpha1.GateResult

// manager is one that is killed now and then: its state is lost where it was not written.
type world struct {
	r       measure.Rules
	source  source
	stored  measure.State
	now     time.Time
	counted []time.Time
}

// TestRestartsNeitherRepeatNorSkip plays a gate with managers that are killed before and
// after each write, and stand still for any time: the verdict is that of a manager that runs
// all along, each measurement counts once, and two are at least an interval apart.
func TestRestartsNeitherRepeatNorSkip(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		r := measure.Rules{
			Interval: time.Minute, InitialDelay: time.Duration(rapid.IntRange(0, 2).Draw(t, "delay")) * time.Minute,
			Count: int32(rapid.IntRange(1, 6).Draw(t, "count")), Failures: int32(rapid.IntRange(-1, 3).Draw(t, "failures")),
			InRow: int32(rapid.IntRange(0, 3).Draw(t, "in a row")), Errors: int32(rapid.IntRange(0, 3).Draw(t, "errors")),
			NoData: rapid.SampledFrom([]v1alpha1.NoDataPolicy{"", v1alpha1.NoDataWait, v1alpha1.NoDataPass, v1alpha1.NoDataFail}).Draw(t, "no data"),
		}
		answers := rapid.SliceOfN(rapid.SampledFrom([]v1alpha1.GateResult{
			v1alpha1.GateSuccess, v1alpha1.GateFailure, v1alpha1.GateNoData, v1alpha1.GateError,
		}), 1, 20).Draw(t, "answers")
		want, wantCounted := undisturbed(r, answers)

		w := &world{r: r, source: answers, now: noon, stored: measure.Begin(noon, v1alpha1.GateTemplateVersion{}, false, r)}
		for i := 0; len(w.counted) < wantCounted; i++ {
			if i > 1000 {
				t.Fatal("it does not end")
			}
			w.now = w.now.Add(time.Duration(rapid.IntRange(0, 200).Draw(t, "time")) * time.Second)
			w.pass(rapid.Bool().Draw(t, "killed before the write"))
		}
		w.now = w.now.Add(time.Hour)
		if next := measure.Look(&w.stored, r, w.now); next.Measure != (want.Verdict == "") {
			t.Fatalf("after %d measurements: %+v", len(w.counted), next)
		}
		if diff := cmp.Diff(summary(&want), summary(&w.stored)); diff != "" {
			t.Fatal("the restarts made a difference:\n" + diff)
		}
		for i := 1; i < len(w.counted); i++ {
			if gap := w.counted[i].Sub(w.counted[i-1]); gap < r.Interval {
				t.Fatalf("measurements %d and %d are %s apart", i-1, i, gap)
			}
		}
		if first := w.counted[0].Sub(noon); first < r.InitialDelay {
			t.Fatalf("the first measurement is after %s", first)
		}
	})
}

// undisturbed is the state after all answers, or the verdict, and how many counted.
func undisturbed(r measure.Rules, answers source) (measure.State, int) {
	s := measure.Begin(noon, v1alpha1.GateTemplateVersion{}, false, r)
	for i, answer := range answers {
		s = measure.Add(s, r, measure.Sample{At: noon.Add(time.Duration(i) * time.Hour), Result: answer})
		if s.Verdict != "" {
			return s, i + 1
		}
	}
	return s, len(answers)
}

// pass is one pass of a manager that knows only what is stored.
func (w *world) pass(killed bool) {
	s := w.stored
	if !measure.Look(&s, w.r, w.now).Measure {
		return
	}
	after := measure.Add(s, w.r, measure.Sample{At: w.now, Result: w.source[len(w.counted)]})
	if killed {
		return
	}
	w.stored, w.counted = after, append(w.counted, w.now)
}

// summary is a state without its times.
func summary(s *measure.State) string {
	return fmt.Sprintf("%s %s: %d succeeded, %d failed, %d errors, %d without data, %d and %d in a row",
		s.Verdict, s.Message, s.Succeeded, s.Failed, s.Errors, s.NoData, s.SuccessesInRow, s.ErrorsInRow)
}
