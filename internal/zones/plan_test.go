package zones

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/intstr"

	"github.com/spillway-dev/spillway/api/spillway/v1alpha1"
	"github.com/spillway-dev/spillway/internal/rollout"
)

var noon = time.Date(2026, 5, 4, 12, 0, 0, 0, time.UTC)

// zoneOf is a settled zone of OnDelete with Pods at these revisions; a "!" after
// one says that the Pod is not ready, "~" that it is terminating, and "-" stands
// for no Pod at all.
func zoneOf(name, revisions string, change ...func(*Set)) Set {
	pods := strings.Fields(revisions)
	set := Set{
		Name: name, UID: types.UID(name), ResourceVersion: "10", Generation: 1, ObservedGeneration: 1,
		Replicas: len(pods), Strategy: OnDelete, MaxUnavailable: 1, CurrentRevision: "v1", UpdateRevision: "v2",
	}
	for i, p := range pods {
		if p == "-" {
			continue
		}
		pod := Pod{
			Name: fmt.Sprintf("%s-%d", name, i), Ordinal: i, UID: types.UID(fmt.Sprintf("%s-%d", name, i)), ResourceVersion: "20",
			Revision: strings.TrimRight(p, "!~"), Created: noon.Add(-time.Hour), Ready: true, Since: noon.Add(-time.Hour),
		}
		if strings.HasSuffix(p, "!") {
			pod.Ready, pod.Reason = false, "CrashLoopBackOff"
		}
		if strings.HasSuffix(p, "~") {
			pod.Ready, pod.Terminating = false, true
		}
		set.Pods = append(set.Pods, pod)
	}
	for _, c := range change {
		c(&set)
	}
	return set
}

// held is a zone that is held by its partition, opened one that has its turn.
func held(s *Set)   { s.Strategy, s.Partition = RollingUpdate, Held }
func opened(s *Set) { s.Strategy, s.Partition = RollingUpdate, 0 }
func lent(s *Set)   { s.Strategy, s.Lent = OnDelete, true }
func stale(s *Set)  { s.Generation++ }
func paused(s *Set) { s.Settings.Paused = true }
func done(s *Set)   { s.CurrentRevision = s.UpdateRevision }

func group(sets ...Set) Observed {
	return Observed{
		Now: noon, Group: Group{Namespace: "mimir", Name: "ingester", Generation: 1},
		Server: Server{MaxUnavailable: true, AdvancesRevision: true}, Sets: sets,
	}
}

func (o Observed) locked(zone string) Observed {
	o.Group.Status.Lock = &v1alpha1.Lock{Holder: "rollout/ingester", Purpose: v1alpha1.PurposeRollout, Zone: zone, Since: metav1.NewMicroTime(noon)}
	return o
}

// moving adds moves of Pods, or of zones, that were permitted at noon.
func (o Observed) moving(names ...string) Observed {
	for _, name := range names {
		m := v1alpha1.Move{Zone: name, UID: types.UID(name), ResourceVersion: "10", Revision: "v2", At: metav1.NewMicroTime(noon)}
		if i := strings.LastIndex(name, "-"); i > 0 {
			m.Zone, m.Pod, m.ResourceVersion = name[:i], name, "20"
		}
		o.Group.Status.Moves = append(o.Group.Status.Moves, m)
	}
	return o
}

// told is the plan as sentences: what is permitted, what is done, who waits why.
func told(o Observed) string {
	p := Decide(o)
	var b strings.Builder
	if p.Permits {
		b.WriteString("permits")
		for _, m := range p.Status.Moves {
			b.WriteString(" " + m.Zone + "/" + m.Pod)
		}
		fmt.Fprintf(&b, " for %q\n", p.Status.Lock.Zone)
	} else if o.Group.Status.Lock != nil && p.Status.Lock == nil {
		b.WriteString("releases\n")
	}
	for _, w := range p.Writes {
		fmt.Fprintf(&b, "%s %s/%s\n", w.Act, w.Zone, w.Pod)
	}
	for _, h := range p.Holds {
		fmt.Fprintf(&b, "%s: %s\n", h.Reason, h.Message)
	}
	return b.String()
}

func TestDecide(t *testing.T) {
	for name, test := range map[string]struct {
		observed Observed
		want     string
	}{
		"converged, nothing is written": {group(zoneOf("a", "v2 v2", done), zoneOf("b", "v2", done)), ""},
		"the first Pod is permitted before it goes": {group(zoneOf("a", "v1 v1"), zoneOf("b", "v1")),
			"permits a/a-0 for \"a\"\n" +
				"BudgetExhausted: a-1 waits, number 1 in the queue: 1 of at most 1 in a is down or on its way\n" +
				"WaitingForOther: b waits: a has 0 of 2 updated\n"},
		"what is permitted is done": {group(zoneOf("a", "v1 v1"), zoneOf("b", "v1")).locked("a").moving("a-0"),
			"Delete a/a-0\n" +
				"Progressing: a-0 is on its way: it is being replaced since 4 May 12:00:00 UTC\n" +
				"BudgetExhausted: a-1 waits, number 1 in the queue: 1 of at most 1 in a is down or on its way (a-0 is being replaced since 4 May 12:00:00 UTC)\n" +
				"WaitingForOther: b waits: a has 1 of 2 ready, a-0 is being replaced since 4 May 12:00:00 UTC\n"},
	} {
		t.Run(name, func(t *testing.T) {
			if diff := cmp.Diff(test.want, told(test.observed)); diff != "" {
				t.Errorf("plan (-want +got):\n%s", diff)
			}
		})
	}
}

func TestSpecOfTheGroupWins(t *testing.T) {
	spec := v1alpha1.RolloutGroupSpec{MaxUnavailable: new(intstr.FromString("50%"))}
	if got := maxUnavailable(&spec, &Set{Settings: Settings{MaxUnavailable: spec50()}}); got.Value != 50 || !got.Percent {
		t.Errorf("%+v", got)
	}
}

func spec50() (l rollout.Limit) { l.Value, l.Set = 2, true; return l }
