package simulate_test

import (
	"testing"
	"time"

	"github.com/spillway-dev/spillway/internal/simulate"
	"github.com/spillway-dev/spillway/internal/simulate/record"
	"github.com/spillway-dev/spillway/rollout"
)

func TestMomentsAreCountedFromTheChange(t *testing.T) {
	t.Parallel()
	start := time.Date(2026, 12, 31, 23, 59, 30, 500, time.UTC)
	for name, test := range map[string]struct {
		at   time.Time
		want string
	}{
		"the change":      {start, "+0s"},
		"the same year":   {start.Add(20 * time.Second), "+20s"},
		"the next year":   {start.Add(90 * time.Minute), "+1h30m0s"},
		"the past":        {start.Add(-time.Hour), "31 Dec 22:59:30 UTC"},
		"a month ago":     {start.AddDate(0, -1, 0), "1 Dec 23:59:30 UTC"},
		"in three months": {start.AddDate(0, 3, 0), "+2160h0m0s"},
	} {
		said := "paused since " + rollout.Clock(test.at) + ": the database moves"
		r := simulate.Result{
			Before: []record.Wait{{Sentence: said}}, Waits: []record.Wait{{Sentence: said}}, Stuck: []record.Wait{{Sentence: said}},
			Risks: []simulate.Risk{{Sentence: said, Action: said}},
		}
		r.CountMoments(start)
		want := "paused since " + test.want + ": the database moves"
		for _, got := range []string{r.Before[0].Sentence, r.Waits[0].Sentence, r.Stuck[0].Sentence, r.Risks[0].Sentence, r.Risks[0].Action} {
			if got != want {
				t.Errorf("%s: %q, want %q", name, got, want)
			}
		}
	}
}
