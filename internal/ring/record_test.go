package ring_test

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/spillway-dev/spillway/api/record"
	"github.com/spillway-dev/spillway/internal/ring"
	"github.com/spillway-dev/spillway/rollout"
)

func waits(unit, why string) ring.Waiting {
	return ring.Waiting{Cause: rollout.Cause{Does: "is waiting", Why: why}, Unit: unit, State: "Waiting", Reason: "X"}
}

// What waits for the same is one cause, and its sentence about each unit is the engine's.
func TestCauses(t *testing.T) {
	a, b, c := waits("Deployment a", "a has failed"), waits("Deployment b", "a has failed"), waits("Deployment c", "paused")
	a.Since, b.Since = time.Unix(200, 0), time.Unix(100, 0)
	causes := ring.Causes([]ring.Waiting{a, b, c}, "ns")
	if len(causes) != 2 || causes[0].Count != 2 || causes[0].Since.Unix() != 100 {
		t.Fatalf("the causes are %+v", causes)
	}
	if is := ring.Sentence(&causes[0], causes[0].Units[1], 0); is != "Deployment b is waiting: a has failed" {
		t.Error(is)
	}
}

// However many units wait, each for something of its own, the record is small enough for the API server.
func TestARecordIsBounded(t *testing.T) {
	var same, each []ring.Waiting
	for i := range 5000 {
		name := fmt.Sprintf("Deployment a-name-of-a-workload-that-is-rather-long-%04d", i)
		same, each = append(same, waits(name, "common has failed")), append(each, waits(name, fmt.Sprintf("a reason of its own, number %d", i)))
	}
	for name, units := range map[string][]ring.Waiting{"the same": same, "each": each} {
		causes := ring.Causes(units, "ns")
		raw, err := json.Marshal(causes)
		if err != nil {
			t.Fatal(err)
		}
		total := 0
		for i := range causes {
			total += int(causes[i].Count)
		}
		if total != 5000 || len(raw) > 256<<10 {
			t.Errorf("%s: %d units in %d causes, %d bytes", name, total, len(causes), len(raw))
		}
	}
}

// A rollout begins, comes to its end, and is the history of the next one; what is at its end stays as it is.
func TestRecord(t *testing.T) {
	now := time.Date(2026, 5, 4, 12, 0, 0, 0, time.UTC)
	decided := func(target, phase string, causes ...record.Cause) *record.Rollout {
		return &record.Rollout{Target: target, Phase: phase, Causes: causes, WaitingFor: phase, ChangedBy: "who wrote " + target}
	}
	first, past := ring.Record(nil, nil, decided("a", "Waiting", ring.Causes([]ring.Waiting{waits("x", "y")}, "")...), "kubectl-edit", now)
	first.Causes[0].Since, first.ChangedBy = &first.StartedAt, "argocd"
	second, past := ring.Record(first, past, decided("a", "Waiting", ring.Causes([]ring.Waiting{waits("x", "y")}, "")...), "kubectl-edit", now.Add(time.Minute))
	if !second.StartedAt.Equal(&first.StartedAt) || second.Causes[0].Since == nil || len(past) > 0 {
		t.Errorf("it goes on as %+v after %+v", second, past)
	}
	done, past := ring.Record(second, past, decided("a", "Complete"), "kubectl-edit", now.Add(2*time.Minute))
	if done.FinishedAt == nil || len(past) > 0 {
		t.Errorf("it ends as %+v after %+v", done, past)
	}
	later, _ := ring.Record(done, past, decided("b", "Complete"), "kubectl-edit", now.Add(time.Hour))
	if diff := cmp.Diff(done, later); diff != "" {
		t.Error("what is complete has changed" + diff)
	}
	next, past := ring.Record(done, past, decided("b", "Failed"), "kubectl-edit", now.Add(time.Hour))
	if next.FinishedAt != nil || len(past) != 1 || past[0].Outcome != "Complete" || past[0].Target != "a" || past[0].ChangedBy != "argocd" || past[0].UndoneBy != "" {
		t.Errorf("%+v is next after %+v", next, past)
	}
	for i := range 20 {
		next, past = ring.Record(next, past, decided(fmt.Sprint(i), "Failed"), "kubectl-edit", now.Add(2*time.Hour))
	}
	if len(past) != 10 || past[0].Outcome != "Failed" || past[0].Message != "Failed" || past[0].UndoneBy != "kubectl-edit" {
		t.Errorf("the history is %+v", past)
	}
}

// However many units a record is about, and however they are called, it is at most 256 KiB: causes are
// grouped, never cut, and each names its first unit.
func TestARecordOfAPlanIsBounded(t *testing.T) {
	now := time.Date(2026, 5, 4, 12, 0, 0, 0, time.UTC)
	for name, why := range map[string]func(int) string{
		"the same": func(int) string { return "common has failed" },
		"each":     func(i int) string { return strings.Repeat(fmt.Sprintf("a reason of its own, %d \"quoted\"; ", i), 60) },
	} {
		d := ring.Decided{Namespace: "ns", Phase: rollout.PhaseWaiting, Reason: "X", Sentence: strings.Repeat("s", 4000), Total: 6000}
		for i := range 300 {
			d.Stages = append(d.Stages, record.Stage{Name: strings.Repeat("n", 63), Message: strings.Repeat("m", 256), Total: int32(i)})
			d.Notes = append(d.Notes, strings.Repeat("n", 4000))
		}
		for i := range 5000 {
			d.Units = append(d.Units, waits(fmt.Sprintf("a-stage-with-a-name/a-name-of-a-cluster-that-is-rather-long-%04d", i), why(i)))
		}
		r := d.Record(nil, now)
		raw, err := json.Marshal(r)
		if err != nil {
			t.Fatal(err)
		}
		total := 0
		for i := range r.Causes {
			if total += int(r.Causes[i].Count); len(r.Causes[i].Units) == 0 {
				t.Errorf("%s: %+v names no unit", name, r.Causes[i])
			}
		}
		if total != 5000 || r.Units != (record.Counts{Total: 6000, Complete: 1000, Waiting: 5000}) || len(raw) > 256<<10 {
			t.Errorf("%s: %d units in %d causes, %d bytes, %+v", name, total, len(r.Causes), len(raw), r.Units)
		}
	}
}

// A record says when the rollout began and ended, and stays as it is while nothing but the time changes.
func TestARecordIsQuiet(t *testing.T) {
	now := time.Date(2026, 5, 4, 12, 0, 0, 0, time.UTC)
	decided := func(target string, phase rollout.Phase, units ...ring.Waiting) *ring.Decided {
		return &ring.Decided{Target: target, Phase: phase, Reason: "X", Sentence: "a is waiting", Units: units, Total: 2}
	}
	first := decided("1", rollout.PhaseWaiting, waits("a", "why")).Record(nil, now)
	another := decided("1", rollout.PhaseWaiting, waits("a", "why"))
	another.By = "another"
	if same := another.Record(first, now.Add(time.Hour)); same != first {
		t.Errorf("it was written again: %+v after %+v", same, first)
	}
	if differs := another.Record(nil, now); differs.DecidedBy != "another" || !ring.SaysTheSame(first, differs) || ring.SaysTheSame(nil, differs) || ring.SaysTheSame(first, nil) {
		t.Errorf("another manager records %+v after %+v", differs, first)
	}
	moves := decided("1", rollout.PhaseProgressing, ring.Waiting{Unit: "a", State: ring.StateRolling}).Record(first, now.Add(time.Minute))
	done := decided("1", rollout.PhaseComplete).Record(moves, now.Add(2*time.Minute))
	if !done.StartedAt.Equal(&first.StartedAt) || moves.MovedAt == nil || !done.MovedAt.Equal(moves.MovedAt) || !done.FinishedAt.Time.Equal(now.Add(2*time.Minute)) || done.WaitingFor != "" || done.Reason != "" {
		t.Errorf("it ends as %+v", done)
	}
	if same := decided("1", rollout.PhaseComplete).Record(done, now.Add(time.Hour)); same != done {
		t.Errorf("at rest it was written again: %+v", same)
	}
	next := decided("2", rollout.PhaseComplete).Record(done, now.Add(time.Hour))
	if !next.StartedAt.Time.Equal(now.Add(time.Hour)) || !next.FinishedAt.Time.Equal(now.Add(time.Hour)) || next.MovedAt != nil {
		t.Errorf("another target is %+v", next)
	}
	if broken := decided("1", rollout.PhaseWaiting, waits("a", "why")).Record(done, now.Add(time.Hour)); broken.FinishedAt != nil || !broken.StartedAt.Time.Equal(now.Add(time.Hour)) {
		t.Errorf("what breaks later is %+v", broken)
	}
}

// What the sentence of the whole says is the first cause.
func TestTheFirstCauseSaysMost(t *testing.T) {
	d := ring.Decided{Phase: rollout.PhaseFailed, Reason: rollout.ReasonDeadline, Telling: rollout.Cause{Does: "failed", Why: "late"}, Units: []ring.Waiting{
		waits("a", "b has failed"), {Unit: "b", State: ring.StateFailed, Cause: rollout.Cause{Does: "failed", Why: "late"}, Reason: rollout.ReasonDeadline},
	}}
	r := d.Record(nil, time.Unix(100, 0))
	if len(r.Causes) != 2 || r.Causes[0].Units[0] != "b" || r.Units != (record.Counts{Total: 2, Waiting: 1, Failed: 1}) {
		t.Errorf("%+v", r)
	}
}
