package scaling

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/spillway-dev/spillway/internal/ring"
)

// putOff has a write or a call of a set fail, and be tried again after a while.
func (o Observed) putOff(set string, after time.Duration) Observed {
	o.Refusals = ring.Refusals{set: {At: noon.Add(after), Reason: "the API server said no"}}
	return o
}

// What Pods answer may change what is to be done, so nothing is scaled in a pass that calls
// Pods, be it a single one.
func TestNothingIsScaledBeforePodsHaveAnswered(t *testing.T) {
	others := []Set{zone("l", 3), zone("m", 1, leader, "l")}
	for name, test := range map[string]struct {
		set  Set
		want string
	}{
		"one call": {
			zone("a", 10, delayed...).mirroring(10, 10).prepared(map[int]time.Duration{9: time.Minute}), "call a prepare=false [9]\n",
		},
		"two calls": {
			zone("a", 3, delayed...).mirroring(2, 3),
			"call a prepare=false [0 1]\ncall a prepare=true [2]\nDownscaleDelayed: a is waiting: preparing its last Pods (1) for 30m0s\n",
		},
		"no call": {
			zone("a", 10, delayed...).mirroring(10, 10).prepared(nil), "scale m 1 to 3 lock=false\n",
		},
	} {
		t.Run(name, func(t *testing.T) {
			if diff := cmp.Diff(test.want, told(group(slices.Concat([]Set{test.set}, others)...))); diff != "" {
				t.Errorf("plan (-want +got):\n%s", diff)
			}
		})
	}
}

// The Pods of each set are called, and no other set's.
func TestEachSetGetsItsOwnCalls(t *testing.T) {
	stay, prepare, other := Call{Set: "a", Ordinals: []int{0}}, Call{Set: "a", Prepare: true, Ordinals: []int{1}}, Call{Set: "b", Ordinals: []int{2}}
	p := Plan{Calls: []Call{stay, other, prepare}}
	for set, want := range map[string][]Call{"a": {stay, prepare}, "b": {other}, "c": {}} {
		if diff := cmp.Diff(want, p.callsTo(set)); diff != "" {
			t.Errorf("calls to %s (-want +got):\n%s", set, diff)
		}
	}
	if len(p.Calls) != 3 {
		t.Errorf("of three calls %d are left", len(p.Calls))
	}
}

// What failed waits for its next try, and nothing else does.
func TestWhatFailedWaitsForItsNextTry(t *testing.T) {
	for name, test := range map[string]struct {
		observed Observed
		want     string
	}{
		"a scale": {
			group(zone("a", 3), zone("b", 1, leader, "a"), zone("c", 2, leader, "a")).putOff("b", time.Minute),
			"scale c 2 to 3 lock=false\nRetryLater: b is waiting: the API server said no; next try at 4 May 12:01:00 UTC\nwake in 1m0s\n",
		},
		"a call": {
			group(zone("a", 3, delayed...).mirroring(2, 3)).putOff("a", time.Minute),
			"DownscaleDelayed: a is waiting: preparing its last Pods (1) for 30m0s; the last attempt failed: the API server said no\nwake in 1m0s\n",
		},
		"until then": {
			group(zone("a", 3), zone("b", 1, leader, "a")).putOff("b", 0), "scale b 1 to 3 lock=false\n",
		},
	} {
		t.Run(name, func(t *testing.T) {
			if diff := cmp.Diff(test.want, told(test.observed)); diff != "" {
				t.Errorf("plan (-want +got):\n%s", diff)
			}
		})
	}
}

// A set that is being deleted is left as it is.
func TestASetThatIsBeingDeletedIsNotScaled(t *testing.T) {
	for _, replicas := range []int{1, 5} {
		b := zone("b", replicas, leader, "a").with(func(s *Set) { s.Deleting = true })
		if got := told(group(zone("a", 3), b)); got != "" {
			t.Errorf("of %d replicas: %s", replicas, got)
		}
	}
}

// A set that cannot be scaled says why, also where it has no replicas.
func TestAnUnknownTargetIsReportedAtAnyNumberOfReplicas(t *testing.T) {
	for _, replicas := range []int{0, 1, 3} {
		want := "LeaderMissing: b is waiting: its leader gone is not in the group; name one that is\n"
		if diff := cmp.Diff(want, told(group(zone("b", replicas, leader, "gone")))); diff != "" {
			t.Errorf("of %d replicas (-want +got):\n%s", replicas, diff)
		}
	}
}

// The plan does not depend on the order in which a cache lists the sets: two managers
// scale the same one down first.
func TestThePlanDoesNotDependOnTheOrderOfTheList(t *testing.T) {
	a, b, c := zone("a", 1), zone("b", 3, leader, "a"), zone("c", 3, leader, "a")
	const want = "scale b 3 to 1 lock=true\nWaitingForTurn: c is waiting: b is next\n"
	for _, sets := range [][]Set{{a, b, c}, {c, b, a}, {b, c, a}, {c, a, b}} {
		if diff := cmp.Diff(want, told(group(sets...))); diff != "" {
			t.Errorf("(-want +got):\n%s", diff)
		}
	}
}

// What is written back comes in the order of the names of the objects, in each pass.
func TestWriteBacksComeInTheOrderOfTheirNames(t *testing.T) {
	var sets []Set
	want := ""
	for i := range 8 {
		pairs := mirror()
		pairs[1] = fmt.Sprintf("template-%d", i)
		sets = append(sets, zone(fmt.Sprintf("zone-%d", 7-i), 5, pairs...).mirroring(5, 3))
		want += fmt.Sprintf("write back 5 to ReplicaTemplate template-%d\n", i)
	}
	for range 3 {
		if diff := cmp.Diff(want, told(group(sets...))); diff != "" {
			t.Fatalf("(-want +got):\n%s", diff)
		}
	}
}
