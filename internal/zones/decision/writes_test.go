package decision

import (
	"encoding/json"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/util/intstr"

	"github.com/spillway-dev/spillway/api/spillway/v1alpha1"
	"github.com/spillway-dev/spillway/internal/ring"
)

// A write waits until the cache shows an own write with the same Change, and a refusal puts off
// all writes with the same object. So the deletion of a Pod names the Pod, and not
// the zone, of which other Pods may be deleted; and another version is another write.
func TestAWriteNamesWhatItChanges(t *testing.T) {
	for name, test := range map[string]struct {
		observed *Observed
		want     []ring.Change
	}{
		"a Pod that is deleted": {
			group(zoneOf("a", "v1 v1 v1")).with(func(g *v1alpha1.RolloutGroupSpec) { g.MaxUnavailable = new(intstr.FromInt32(2)) }).locked("a").moving("a-0", "a-1"),
			[]ring.Change{{Act: "Delete", Object: "a-0", Version: "a-0/20"}, {Act: "Delete", Object: "a-1", Version: "a-1/20"}},
		},
		"a zone that is opened": {
			group(zoneOf("a", "v1 v1", held), zoneOf("b", "v1", held)).locked("a").moving("a"),
			[]ring.Change{{Act: "Open", Object: "a", Version: "a/10"}},
		},
		"a zone that is held, at the version that was observed": {
			group(zoneOf("a", "v1", opened, func(s *Set) { s.ResourceVersion = "11" }), zoneOf("b", "v1", held)),
			[]ring.Change{{Act: "Hold", Object: "a", Version: "a/11"}},
		},
	} {
		t.Run(name, func(t *testing.T) {
			var got []ring.Change
			for _, w := range Decide(*test.observed).Writes {
				got = append(got, w.Change())
			}
			if !equality.Semantic.DeepEqual(got, test.want) {
				t.Errorf("got %+v, want %+v", got, test.want)
			}
		})
	}
}

// A refused deletion puts off the Pod, and not its zone or another Pod of it.
func TestARefusalPutsOffWhatWasRefused(t *testing.T) {
	o := group(zoneOf("a", "v1 v1 v1")).with(func(g *v1alpha1.RolloutGroupSpec) { g.MaxUnavailable = new(intstr.FromInt32(2)) }).locked("a").moving("a-0", "a-1")
	first := Decide(*o).Writes[0]
	p := Decide(*o.refused(first.Change().Object))
	if len(p.Writes) != 1 || p.Writes[0].Pod != "a-1" {
		t.Errorf("it writes %+v", p.Writes)
	}
}

// What a status says of time is what the API server returns of it: otherwise a status
// that was just written would differ from the one that is observed, and be written again.
func TestAStatusComesBackAsItWasDecided(t *testing.T) {
	p := Decide(*group(zoneOf("a", "v1 v1"), zoneOf("b", "v1")).after(123 * time.Nanosecond))
	raw, err := json.Marshal(p.Status)
	if err != nil {
		t.Fatal(err)
	}
	var back v1alpha1.RolloutGroupStatus
	if err := json.Unmarshal(raw, &back); err != nil {
		t.Fatal(err)
	}
	if p.Status.Lock == nil || len(p.Status.Moves) == 0 || !equality.Semantic.DeepEqual(p.Status, back) {
		t.Errorf("it is decided as\n%+v\nand comes back as\n%+v", p.Status, back)
	}
}
