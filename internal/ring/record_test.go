package ring_test

import (
	"encoding/json"
	"fmt"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/spillway-dev/spillway/api/spillway/v1alpha1"
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
		if total != 5000 || len(raw) > 512<<10 {
			t.Errorf("%s: %d units in %d causes, %d bytes", name, total, len(causes), len(raw))
		}
	}
}

// A rollout begins, comes to its end, and is the history of the next one; what is at its end stays as it is.
func TestRecord(t *testing.T) {
	now := time.Date(2026, 5, 4, 12, 0, 0, 0, time.UTC)
	decided := func(target, phase string, causes ...v1alpha1.RolloutCause) *v1alpha1.RolloutRecord {
		return &v1alpha1.RolloutRecord{Target: target, Phase: phase, Causes: causes, WaitingFor: phase}
	}
	first, past := ring.Record(nil, nil, decided("a", "Waiting", ring.Causes([]ring.Waiting{waits("x", "y")}, "")...), now)
	first.Causes[0].Since = &first.StartedAt
	second, past := ring.Record(first, past, decided("a", "Waiting", ring.Causes([]ring.Waiting{waits("x", "y")}, "")...), now.Add(time.Minute))
	if !second.StartedAt.Equal(&first.StartedAt) || second.Causes[0].Since == nil || len(past) > 0 {
		t.Errorf("it goes on as %+v after %+v", second, past)
	}
	done, past := ring.Record(second, past, decided("a", "Complete"), now.Add(2*time.Minute))
	if done.FinishedAt == nil || len(past) > 0 {
		t.Errorf("it ends as %+v after %+v", done, past)
	}
	later, _ := ring.Record(done, past, decided("b", "Complete"), now.Add(time.Hour))
	if diff := cmp.Diff(done, later); diff != "" {
		t.Error("what is complete has changed" + diff)
	}
	next, past := ring.Record(done, past, decided("b", "Failed"), now.Add(time.Hour))
	if next.FinishedAt != nil || len(past) != 1 || past[0].Outcome != "Complete" || past[0].Target != "a" {
		t.Errorf("%+v is next after %+v", next, past)
	}
	for i := range 20 {
		next, past = ring.Record(next, past, decided(fmt.Sprint(i), "Failed"), now.Add(2*time.Hour))
	}
	if len(past) != 10 || past[0].Outcome != "Failed" || past[0].Message != "Failed" {
		t.Errorf("the history is %+v", past)
	}
}
