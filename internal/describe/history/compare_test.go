package history

import (
	"errors"
	"testing"
	"time"

	gocmp "github.com/google/go-cmp/cmp"

	"github.com/spillway-dev/spillway/internal/describe"
)

// Two rollouts stand side by side, with what differs; parts that one of them lacks are empty.
func TestCompare(t *testing.T) {
	at := func(minutes int) *time.Time {
		m := time.Date(2026, 5, 4, 12, minutes, 0, 0, time.UTC)
		return &m
	}
	zone := func(name string, from, to int) Part {
		return Part{Ref: describe.Ref{Kind: "Zone", Name: name}, Started: at(from), Ended: at(to), Outcome: "Complete"}
	}
	all := []Entry{
		{What: "rollout 2", To: "r3", Change: "Secret db: password", By: "anna", Started: at(30), Outcome: "Running", Message: "it waits", Units: []Part{zone("a", 30, 34)}},
		{What: "rollout 1", To: "r2", Change: "ConfigMap app: LEVEL", By: "anna", Started: at(0), Ended: at(10), Outcome: "Complete", Units: []Part{zone("a", 0, 4), zone("b", 4, 10)}},
	}
	got, err := Compare(all, "rollout 1", "2")
	if err != nil {
		t.Fatal(err)
	}
	want := []Row{
		{"outcome", "Complete", "Running", true}, {"by", "anna", "anna", false},
		{"change", "ConfigMap app: LEVEL", "Secret db: password", true}, {"to", "r2", "r3", true},
		{"began", "2026-05-04 12:00:00 UTC", "2026-05-04 12:30:00 UTC", true}, {"took", "10m0s", "", true}, {"message", "", "it waits", true},
		{"zone/a", "Complete 4m0s", "Complete 4m0s", false}, {"zone/b", "Complete 6m0s", "", true},
	}
	if diff := gocmp.Diff(want, got.Rows); diff != "" {
		t.Errorf("-want +got\n%s", diff)
	}
	for _, names := range [][2]string{{"rollout 3", "rollout 1"}, {"rollout 1", ""}, {"", ""}} {
		if _, err := Compare(all, names[0], names[1]); !errors.Is(err, ErrNoSuchRollout) {
			t.Errorf("%q: %v", names, err)
		}
	}
}

// Each rollout has a name of its own: plans that are run again have a uid.
func TestName(t *testing.T) {
	all := []Entry{{What: "plan backup", UID: "e3"}, {What: "plan deploy", UID: "e2"}, {What: "plan backup", UID: "e1"}, {What: "content abc"}, {What: "content abc", To: "x"}}
	for i, want := range []string{"plan backup", "plan deploy", "e1", "content abc", "x"} {
		if got := Name(all, i); got != want {
			t.Errorf("%d is called %q, not %q", i, got, want)
		}
	}
}
