package decision

import (
	"cmp"
	"fmt"
	"strings"
	"testing"
	"time"

	gocmp "github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/intstr"

	"github.com/spillway-dev/spillway/api/spillway/v1alpha1"
	"github.com/spillway-dev/spillway/internal/ring"
)

var noon = time.Date(2026, 5, 4, 12, 0, 0, 0, time.UTC)

// zoneOf is a settled zone of OnDelete with Pods at these revisions; a "!" after
// one says that the Pod is not ready, "~" that it is terminating, "?" that it hangs since
// 11:59, "*" that it has hung since then and was never ready, and "-" stands for no Pod at all.
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
			Revision: strings.TrimRight(p, "!~?*"), Created: noon.Add(-time.Hour), Ready: true, Since: noon.Add(-time.Hour),
		}
		if strings.HasSuffix(p, "!") {
			pod.Ready, pod.Reason, pod.Broken = false, "CrashLoopBackOff", true
		}
		if strings.HasSuffix(p, "?") || strings.HasSuffix(p, "*") {
			pod.Ready, pod.Reason, pod.Since, pod.NeverReady = false, "ContainersNotReady", noon.Add(-time.Minute), strings.HasSuffix(p, "*")
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
func held(s *Set)    { s.Strategy, s.Partition = RollingUpdate, Held }
func opened(s *Set)  { s.Strategy, s.Partition = RollingUpdate, 0 }
func lent(s *Set)    { s.Strategy, s.Lent = OnDelete, true }
func stale(s *Set)   { s.Generation++ }
func settled(s *Set) { s.Verified = true }
func paused(s *Set)  { s.Settings.Paused = true }
func done(s *Set)    { s.CurrentRevision = s.UpdateRevision }
func ordered(s *Set) { s.Ordered = true }

func group(sets ...Set) *Observed {
	return &Observed{
		Now: noon, Group: Group{Namespace: "mimir", Name: "ingester", Generation: 1},
		Server: Server{MaxUnavailable: true, AdvancesRevision: true}, Sets: sets,
	}
}

// copy is what the following change, so that each is a group of its own.
func (o *Observed) copy() *Observed {
	c := *o
	c.Group.Status = *o.Group.Status.DeepCopy()
	return &c
}

func (o *Observed) locked(zone string) *Observed {
	o = o.copy()
	o.Group.Status.Lock = &v1alpha1.Lock{Holder: "rollout/ingester", Purpose: v1alpha1.PurposeRollout, Zone: zone, Since: metav1.NewMicroTime(noon)}
	return o
}

// moving adds moves of Pods, or of zones, that were permitted at noon.
func (o *Observed) moving(names ...string) *Observed {
	o = o.copy()
	for _, name := range names {
		m := v1alpha1.Move{Zone: name, UID: types.UID(name), ResourceVersion: "10", Revision: "v2", At: metav1.NewMicroTime(noon)}
		if i := strings.LastIndex(name, "-"); i > 0 {
			m.Zone, m.Pod, m.ResourceVersion = name[:i], name, "20"
		}
		o.Group.Status.Moves = append(o.Group.Status.Moves, m)
	}
	return o
}

// deletingSet is a zone that is being replaced out.
func deletingSet(s *Set) { s.Deleting = true }

func place(n int) func(*Set) { return func(s *Set) { s.Settings.Order = &n } }

// readyFor has the Pods of a zone ready for a while only.
func readyFor(d time.Duration) func(*Set) {
	return func(s *Set) {
		for i := range s.Pods {
			s.Pods[i].Since = noon.Add(-d)
		}
	}
}

func (o *Observed) with(change func(*v1alpha1.RolloutGroupSpec)) *Observed {
	o = o.copy()
	change(&o.Group.Spec)
	return o
}

// windows are open for an hour.
func windows(schedules ...string) func(*v1alpha1.RolloutGroupSpec) {
	return func(g *v1alpha1.RolloutGroupSpec) {
		for _, s := range schedules {
			g.MaintenanceWindows = append(g.MaintenanceWindows, v1alpha1.MaintenanceWindow{Schedule: s, DurationSeconds: 3600})
		}
	}
}

func (o *Observed) server(s Server) *Observed {
	o = o.copy()
	o.Server = s
	return o
}

func (o *Observed) after(d time.Duration) *Observed {
	o = o.copy()
	o.Now = o.Now.Add(d)
	return o
}

func (o *Observed) lockedBy(holder string, expires time.Time) *Observed {
	o = o.copy()
	o.Group.Status.Lock = &v1alpha1.Lock{Holder: holder, Purpose: v1alpha1.PurposeEviction, Since: metav1.NewMicroTime(noon.Add(-time.Minute))}
	if !expires.IsZero() {
		o.Group.Status.Lock.Expires = new(metav1.NewMicroTime(expires))
	}
	return o
}

// decidedAt has another manager decide from Pods of one version, and this view show another.
func (o *Observed) decidedAt(decided, shown string) *Observed {
	o = o.copy()
	o.Group.Status.Seen = &v1alpha1.Seen{Pods: decided}
	o.AsOf.Pods = shown
	return o
}

func (o *Observed) wasOpen(zone string) *Observed {
	o = o.copy()
	o.Group.Status.Zones = append(o.Group.Status.Zones, v1alpha1.Zone{Name: zone, Opened: true})
	return o
}

// whole has a zone that was ready as a whole at a revision.
func (o *Observed) whole(zone, revision string) *Observed {
	o = o.copy()
	o.Group.Status.Zones = append(o.Group.Status.Zones, v1alpha1.Zone{Name: zone, Revision: revision})
	return o
}

// forced has a zone that another client has opened since it was ready as a whole at v1.
func (o *Observed) forced(zone string) *Observed {
	o = o.whole(zone, "v1")
	o.Group.Status.Zones[len(o.Group.Status.Zones)-1].Opened = true
	return o
}

// leaving has a downscale to so many replicas written down that does not need the lock.
func (o *Observed) leaving(zone string, to int32) *Observed {
	o = o.copy()
	o.Group.Status.Downscale = &v1alpha1.Downscale{Zone: zone, UID: types.UID(zone), From: to + 1, To: to, Unscheduled: true}
	return o
}

func (o *Observed) lending(zone string) *Observed {
	o = o.moving(zone)
	o.Group.Status.Moves[0].Lend = true
	return o
}

// lively is a live look that shows these Pods, of no zone.
func (o *Observed) lively(orphans ...Pod) *Observed {
	o = o.copy()
	o.Live, o.Orphans = true, orphans
	return o
}

func (o *Observed) refused(name string) *Observed {
	o = o.copy()
	o.Refusals = ring.Refusals{name: {At: o.Now.Add(10 * time.Second), Reason: "the API server said no"}}
	return o
}

// told is the plan as sentences: what is permitted, what is done, who waits why.
func told(o *Observed) string {
	p := Decide(*o)
	var b strings.Builder
	if p.Permits {
		b.WriteString("permits")
		for _, m := range p.Status.Moves {
			b.WriteString(" " + cmp.Or(m.Pod, m.Zone))
		}
		fmt.Fprintf(&b, " for %q\n", p.Status.Lock.Zone)
	} else if o.Group.Status.Lock != nil && p.Status.Lock == nil {
		b.WriteString("releases\n")
	}
	if p.NeedsLive {
		b.WriteString("looks again, live\n")
	}
	for _, w := range p.Writes {
		fmt.Fprintf(&b, "%s %s\n", w.Act, cmp.Or(w.Pod, w.Zone))
	}
	for _, h := range p.Holds {
		fmt.Fprintf(&b, "%s: %s\n", h.Reason, h.Message)
	}
	return b.String()
}

func TestDecide(t *testing.T) {
	for name, test := range planCases() {
		t.Run(name, func(t *testing.T) {
			if diff := gocmp.Diff(test.want, told(test.observed)); diff != "" {
				t.Errorf("plan (-want +got):\n%s", diff)
			}
		})
	}
}

type planCase struct {
	observed *Observed
	want     string
}

func planCases() map[string]planCase {
	return map[string]planCase{
		"converged, nothing is written": {
			group(zoneOf("a", "v2 v2", done), zoneOf("b", "v2", done)),
			"",
		},
		"the first Pod is permitted before it goes": {
			group(zoneOf("a", "v1 v1"), zoneOf("b", "v1")),
			"permits a-0 for \"a\"\n" +
				"BudgetExhausted: a-1 is queued (position 1): 1 of 1 allowed unavailable in a\n" +
				"WaitingForTurn: b is waiting: a has 0 of 2 updated\n",
		},
		"a Pod that was scaled away is down until it is gone": {
			group(zoneOf("a", "v2 v2~", done, func(s *Set) { s.Replicas = 1 }), zoneOf("b", "v1")),
			"Progressing: a-1 is being removed: terminating\n" +
				"WaitingForTurn: b is waiting: a has 1 of 2 ready, a-1 is terminating\n",
		},
		"and so is one that is about to go": {
			group(zoneOf("a", "v2 v2", done, func(s *Set) { s.Replicas = 1 }), zoneOf("b", "v1")),
			"Progressing: a-1 is being removed: beyond the replicas of its StatefulSet\n" +
				"WaitingForTurn: b is waiting: a has 1 of 2 ready, a-1 is beyond the replicas of its StatefulSet\n",
		},
		"and one that is about to be scaled away without the lock, should a node have it after all": {
			group(zoneOf("a", "v2 v2", done), zoneOf("b", "v1")).leaving("a", 1),
			"Progressing: a-1 is being removed: about to be scaled away\n" +
				"WaitingForTurn: b is waiting: a has 1 of 2 ready, a-1 is about to be scaled away\n",
		},
		"though it is outdated, it is not replaced": {
			group(zoneOf("a", "v2 v1", done)).leaving("a", 1).locked("a"),
			"Progressing: a-1 is being removed: about to be scaled away\n",
		},
		"another StatefulSet of that name is not": {
			group(zoneOf("a", "v2 v2", done, func(s *Set) { s.UID = "new" })).leaving("a", 1),
			"",
		},
		"it takes a place in the budget of its own zone, and adds none": {
			group(zoneOf("a", "v1 v1 v1 v1~", func(s *Set) { s.Replicas = 3 })).with(func(g *v1alpha1.RolloutGroupSpec) {
				g.MaxUnavailable = new(intstr.FromString("50%"))
			}),
			"BudgetExhausted: a-0 is queued (position 1): 1 of 1 allowed unavailable in a (a-3 is terminating)\n" +
				"BudgetExhausted: a-1 is queued (position 2): 1 of 1 allowed unavailable in a (a-3 is terminating)\n" +
				"BudgetExhausted: a-2 is queued (position 3): 1 of 1 allowed unavailable in a (a-3 is terminating)\n" +
				"Progressing: a-3 is being removed: terminating\n",
		},
		"what is permitted is done": {
			group(zoneOf("a", "v1 v1"), zoneOf("b", "v1")).locked("a").moving("a-0"),
			"Delete a-0\n" +
				"Progressing: a-0 is updating: being replaced since 4 May 12:00:00 UTC\n" +
				"BudgetExhausted: a-1 is queued (position 1): 1 of 1 allowed unavailable in a (a-0 is being replaced since 4 May 12:00:00 UTC)\n" +
				"WaitingForTurn: b is waiting: a has 1 of 2 ready, a-0 is being replaced since 4 May 12:00:00 UTC\n",
		},
		"a zone that another client has opened is held": {
			group(zoneOf("a", "v1 v1", held), zoneOf("b", "v1 v1", opened)).whole("a", "v1").whole("b", "v1"),
			"Hold b\n" +
				"BudgetExhausted: a-0 is queued (position 1): 1 of 1 allowed unavailable in a\n" +
				"WaitingForTurn: b is waiting: a has 0 of 2 updated\n" +
				"WaitingForTurn: b is waiting: a has 0 of 2 updated\n",
		},
		"and looked at live before another one rolls": {
			group(zoneOf("a", "v1 v1", held), zoneOf("b", "v1 v1", held)).whole("a", "v1").forced("b"),
			"looks again, live\n" +
				"BudgetExhausted: a-0 is queued (position 1): 1 of 1 allowed unavailable in a\n" +
				"WaitingForTurn: b is waiting: a has 0 of 2 updated\n" +
				"WaitingForTurn: b is waiting: a has 0 of 2 updated\n",
		},
		"a Pod that its controller has replaced stops the others": {
			group(zoneOf("a", "v1", held), zoneOf("b", "v1 v2?", held)).whole("a", "v1").forced("b"),
			"WaitingForTurn: a is waiting: b has 1 of 2 ready, b-1 is not ready since 4 May 11:59:00 UTC (ContainersNotReady), replaced out of turn by Kubernetes: another client had set updateStrategy of StatefulSet b\n" +
				"Unhealthy: b-1 is up to date but not ready since 4 May 11:59:00 UTC (ContainersNotReady), replaced out of turn by Kubernetes: another client had set updateStrategy of StatefulSet b\n" +
				"BudgetExhausted: b-0 is queued (position 1): 1 of 1 allowed unavailable in b (b-1 is not ready since 4 May 11:59:00 UTC (ContainersNotReady), replaced out of turn by Kubernetes: another client had set updateStrategy of StatefulSet b)\n",
		},
		"and not when it is too late, but permitted again": {
			group(zoneOf("a", "v1 v1")).locked("a").moving("a-0").after(ring.ActWithin),
			"permits a-0 for \"a\"\n" +
				"Progressing: a-0 is updating: being replaced since 4 May 12:00:00 UTC\n" +
				"BudgetExhausted: a-1 is queued (position 1): 1 of 1 allowed unavailable in a (a-0 is being replaced since 4 May 12:00:00 UTC)\n",
		},
		"nor by a manager that does not hold the lock": {
			group(zoneOf("a", "v1 v1")).moving("a-0"),
			"Progressing: a-0 is updating: being replaced since 4 May 12:00:00 UTC\n" +
				"BudgetExhausted: a-1 is queued (position 1): 1 of 1 allowed unavailable in a (a-0 is being replaced since 4 May 12:00:00 UTC)\n",
		},
		"a Pod that has changed since is permitted again": {
			group(zoneOf("a", "v1 v1", func(s *Set) { s.Pods[0].ResourceVersion = "21" })).locked("a").moving("a-0"),
			"permits a-0 for \"a\"\n" +
				"BudgetExhausted: a-1 is queued (position 1): 1 of 1 allowed unavailable in a\n",
		},
		"a Pod of the same name is another one": {
			group(zoneOf("a", "v2! v1", func(s *Set) { s.Pods[0].UID = "new" })).locked("a").moving("a-0"),
			"Unhealthy: a-0 is up to date but being replaced since 4 May 12:00:00 UTC (CrashLoopBackOff)\n" +
				"BudgetExhausted: a-1 is queued (position 1): 1 of 1 allowed unavailable in a (a-0 is being replaced since 4 May 12:00:00 UTC (CrashLoopBackOff))\n",
		},
		"the next zone goes once the first is done": {
			group(zoneOf("a", "v2 v2", done), zoneOf("b", "v1 v1")).locked("a"),
			"permits b-0 for \"b\"\n" +
				"BudgetExhausted: b-1 is queued (position 1): 1 of 1 allowed unavailable in b\n",
		},
		"the lock is released when all are done": {
			group(zoneOf("a", "v2", done), zoneOf("b", "v2", done)).locked("b"),
			"releases\n",
		},
		"another client holds the lock": {
			group(zoneOf("a", "v1")).lockedBy("eviction", time.Time{}),
			"Locked: the rollout is waiting: the lock is held by eviction for eviction since 4 May 11:59:00 UTC\n",
		},
		"a lock that has expired is taken over after a live look": {
			group(zoneOf("a", "v1")).lockedBy("eviction", noon),
			"looks again, live\n",
		},
		"an outdated broken Pod goes before a healthy one": {
			group(zoneOf("a", "v1 v1 v1!")),
			"permits a-2 for \"a\"\n" +
				"BudgetExhausted: a-0 is queued (position 1): 1 of 1 allowed unavailable in a (a-2 is not ready since 4 May 11:00:00 UTC (CrashLoopBackOff))\n" +
				"BudgetExhausted: a-1 is queued (position 2): 1 of 1 allowed unavailable in a (a-2 is not ready since 4 May 11:00:00 UTC (CrashLoopBackOff))\n",
		},
		"and does not wait for the turn of its zone": {
			group(zoneOf("a", "v2! v1"), zoneOf("b", "v1! v1")),
			"permits b-0 for \"b\"\n" +
				"Unhealthy: a-0 is up to date but not ready since 4 May 11:00:00 UTC (CrashLoopBackOff)\n" +
				"WaitingForTurn: a is waiting: b has 1 of 2 ready, b-0 is not ready since 4 May 11:00:00 UTC (CrashLoopBackOff)\n" +
				"WaitingForTurn: b is waiting: a has 1 of 2 ready, a-0 is not ready since 4 May 11:00:00 UTC (CrashLoopBackOff)\n",
		},
		"a Pod that hangs may become ready, and says until when": {
			group(zoneOf("a", "v1? - -", ordered)),
			"BudgetExhausted: a-0 is queued (position 1): 3 of 1 allowed unavailable in a (a-0 is not ready since 4 May 11:59:00 UTC (ContainersNotReady)); a-0 may recover until 4 May 12:04:00 UTC\n" +
				"Progressing: a-1 is updating: not created before a-0 is ready, or is replaced, at 4 May 12:04:00 UTC\n" +
				"Progressing: a-2 is updating: not created before a-0 is ready, or is replaced, at 4 May 12:04:00 UTC\n",
		},
		"one at a revision at which none was ready is replaced immediately": {
			group(zoneOf("a", "v1* - -", ordered)),
			"permits a-0 for \"a\"\n" +
				"Progressing: a-1 is updating: not created before a-0 is ready\n" +
				"Progressing: a-2 is updating: not created before a-0 is ready\n",
		},
		"also in several zones, one after the other": {
			group(zoneOf("a", "v1* - -", ordered), zoneOf("b", "v1* - -", ordered)),
			"permits a-0 for \"a\"\n" +
				"Progressing: a-1 is updating: not created before a-0 is ready\n" +
				"Progressing: a-2 is updating: not created before a-0 is ready\n" +
				"WaitingForTurn: b is waiting: a has 0 of 3 ready, a-0 is not ready since 4 May 11:59:00 UTC (ContainersNotReady)\n" +
				"Progressing: b-1 is updating: not created before b-0 is ready\n" +
				"Progressing: b-2 is updating: not created before b-0 is ready\n",
		},
		"but not if another Pod was ready at its revision": {
			group(zoneOf("a", "v1* v1 -", ordered)),
			"BudgetExhausted: a-0 is queued (position 1): 2 of 1 allowed unavailable in a (a-0 is not ready since 4 May 11:59:00 UTC (ContainersNotReady)); a-0 may recover until 4 May 12:04:00 UTC\n" +
				"BudgetExhausted: a-1 is queued (position 2): 2 of 1 allowed unavailable in a (a-0 is not ready since 4 May 11:59:00 UTC (ContainersNotReady))\n" +
				"Progressing: a-2 is updating: not created before a-0 is ready, or is replaced, at 4 May 12:04:00 UTC\n",
		},
		"nor if all of the zone was": {
			group(zoneOf("a", "v1* - -", ordered)).whole("a", "v1"),
			"BudgetExhausted: a-0 is queued (position 1): 3 of 1 allowed unavailable in a (a-0 is not ready since 4 May 11:59:00 UTC (ContainersNotReady)); a-0 may recover until 4 May 12:04:00 UTC\n" +
				"Progressing: a-1 is updating: not created before a-0 is ready, or is replaced, at 4 May 12:04:00 UTC\n" +
				"Progressing: a-2 is updating: not created before a-0 is ready, or is replaced, at 4 May 12:04:00 UTC\n",
		},
		"nor at the revision that is wanted": {
			group(zoneOf("a", "v2* - -", ordered)),
			"Unhealthy: a-0 is up to date but not ready since 4 May 11:59:00 UTC (ContainersNotReady)\n" +
				"Progressing: a-1 is updating: not created before a-0 is ready\n" +
				"Progressing: a-2 is updating: not created before a-0 is ready\n",
		},
		"nor while another zone is disrupted": {
			group(zoneOf("a", "v1* - -", ordered), zoneOf("b", "v2~ v2")).whole("b", "v1").locked("b"),
			"WaitingForTurn: a is waiting: b has 1 of 2 ready, b-0 is terminating\n" +
				"Progressing: a-1 is updating: not created before a-0 is ready\n" +
				"Progressing: a-2 is updating: not created before a-0 is ready\n" +
				"Progressing: b-0 is updating: terminating\n",
		},
		"nor if the group keeps such Pods, whether they were ready or not": {
			group(zoneOf("a", "v1* - -", ordered)).with(func(g *v1alpha1.RolloutGroupSpec) { g.StuckPods = v1alpha1.KeepStuckPods }),
			"StuckPodKept: a-0 is waiting: it is not ready since 4 May 11:59:00 UTC (ContainersNotReady), and spec.stuckPods is Keep\n" +
				"Progressing: a-1 is updating: not created before a-0 is ready\n" +
				"Progressing: a-2 is updating: not created before a-0 is ready\n",
		},
		"a Pod that hangs in a second zone waits for its turn, until it is stuck": {
			group(zoneOf("a", "v2? v1"), zoneOf("b", "v1? v1")),
			"Unhealthy: a-0 is up to date but not ready since 4 May 11:59:00 UTC (ContainersNotReady)\n" +
				"WaitingForTurn: a is waiting: b has 1 of 2 ready, b-0 is not ready since 4 May 11:59:00 UTC (ContainersNotReady)\n" +
				"WaitingForTurn: b is waiting: a has 1 of 2 ready, a-0 is not ready since 4 May 11:59:00 UTC (ContainersNotReady); b-0 may recover until 4 May 12:04:00 UTC\n" +
				"WaitingForTurn: b is waiting: a has 1 of 2 ready, a-0 is not ready since 4 May 11:59:00 UTC (ContainersNotReady)\n",
		},
		"unless the group keeps such Pods": {
			group(zoneOf("a", "v1 v1!")).with(func(g *v1alpha1.RolloutGroupSpec) { g.StuckPods = v1alpha1.KeepStuckPods }),
			"BudgetExhausted: a-0 is queued (position 1): 1 of 1 allowed unavailable in a (a-1 is not ready since 4 May 11:00:00 UTC (CrashLoopBackOff))\n" +
				"StuckPodKept: a-1 is waiting: it is not ready since 4 May 11:00:00 UTC (CrashLoopBackOff), and spec.stuckPods is Keep\n",
		},
		"a Pod that is missing is down": {
			group(zoneOf("a", "- v2", done), zoneOf("b", "v1")),
			"Progressing: a-0 is updating: not created yet\n" +
				"WaitingForTurn: b is waiting: a has 1 of 2 ready, a-0 is not created yet\n",
		},
		"a Pod that terminates is down": {
			group(zoneOf("a", "v2~ v2", done), zoneOf("b", "v1")),
			"Progressing: a-0 is updating: terminating\n" +
				"WaitingForTurn: b is waiting: a has 1 of 2 ready, a-0 is terminating\n",
		},
		"a zone without replicas is done": {
			group(zoneOf("a", ""), zoneOf("b", "v1")),
			"permits b-0 for \"b\"\n",
		},
		"a status that is stale makes all wait": {
			group(zoneOf("a", "v1", stale), zoneOf("b", "v1")),
			"StatusNotObserved: the rollout is waiting: the status of a has not observed generation 2 yet\n" +
				"StatusNotObserved: the rollout is waiting: the status of a has not observed generation 2 yet\n",
		},
		"also if nothing seems outdated there": {
			group(zoneOf("a", "v2", stale), zoneOf("b", "v1")),
			"GatePending: a is waiting: gate status is pending: the status of a has not observed generation 2 yet\n" +
				"StatusNotObserved: the rollout is waiting: the status of a has not observed generation 2 yet\n",
		},
		"a paused zone that is up is passed by": {
			group(zoneOf("a", "v1", paused), zoneOf("b", "v1")),
			"permits b-0 for \"b\"\n" +
				"Paused: a is paused\n",
		},
		"a paused zone that is not up stops the others": {
			group(zoneOf("a", "v1 v1!", paused), zoneOf("b", "v1")),
			"Paused: a is paused\n" +
				"Paused: a is paused\n" +
				"WaitingForTurn: b is waiting: a is paused\n",
		},
		"a paused group": {
			group(zoneOf("a", "v1")).with(func(g *v1alpha1.RolloutGroupSpec) {
				g.Pause = &v1alpha1.Pause{By: "alice", Reason: "lunch", Since: new(metav1.NewTime(noon))}
			}),
			"Paused: the rollout is paused by alice since 4 May 12:00:00 UTC: lunch\n",
		},
		"outside of its windows nothing is begun": {
			group(zoneOf("a", "v1 v1!")).with(windows("0 2 * * *")),
			"OutsideWindow: the rollout is waiting: its next maintenance window opens on 5 May 02:00:00 UTC\n" +
				"OutsideWindow: the rollout is waiting: its next maintenance window opens on 5 May 02:00:00 UTC\n",
		},
		"what was permitted is withdrawn": {
			group(zoneOf("a", "v1 v1")).locked("a").moving("a-0").with(windows("0 2 * * *")),
			"Fence a-0\n" +
				"Progressing: a-0 is updating: being replaced since 4 May 12:00:00 UTC\n" +
				"OutsideWindow: the rollout is waiting: its next maintenance window opens on 5 May 02:00:00 UTC\n",
		},
		"and a zone that is open is held": {
			group(zoneOf("a", "v2 v1", opened), zoneOf("b", "v1", held)).locked("a").with(windows("0 2 * * *")),
			"Hold a\n" +
				"OutsideWindow: the rollout is waiting: its next maintenance window opens on 5 May 02:00:00 UTC\n" +
				"OutsideWindow: the rollout is waiting: its next maintenance window opens on 5 May 02:00:00 UTC\n",
		},
		"in one of them it goes on": {
			group(zoneOf("a", "v1")).with(windows("0 2 * * *", "0 12 * * *")),
			"permits a-0 for \"a\"\n",
		},
		"and a group that is complete does not care": {
			group(zoneOf("a", "v2", done)).with(windows("0 2 * * *")),
			"",
		},
		"a window that is none stalls the group": {
			group(zoneOf("a", "v1")).with(windows("midnight")),
			"InvalidInput: the rollout is waiting: RolloutGroup ingester: spec.maintenanceWindows[0]: invalid value \"midnight\": must be a schedule as in a CronJob, such as \"0 2 * * 1-5\" for two o'clock from Monday to Friday: expected exactly 5 fields, found 1: [midnight]\n",
		},
		"a zone that is being deleted": {
			group(zoneOf("a", "v1 v1!", deletingSet), zoneOf("b", "v1")),
			"Deleting: a is waiting: it is being deleted\n" +
				"Deleting: a is waiting: it is being deleted\n" +
				"WaitingForTurn: b is waiting: a is waiting: it is being deleted\n",
		},
		"mixed strategies stall the group": {
			group(zoneOf("a", "v1"), zoneOf("b", "v1", held)),
			"InvalidInput: the rollout is waiting: StatefulSet b: spec.updateStrategy.type: \"RollingUpdate\" differs from \"OnDelete\" of StatefulSet a; use the same for all of a group\n" +
				"InvalidInput: the rollout is waiting: StatefulSet b: spec.updateStrategy.type: \"RollingUpdate\" differs from \"OnDelete\" of StatefulSet a; use the same for all of a group\n",
		},
		"a percentage that is none stalls the group": {
			group(zoneOf("a", "v1")).with(func(g *v1alpha1.RolloutGroupSpec) { g.MaxUnavailable = new(intstr.FromString("150%")) }),
			"InvalidInput: the rollout is waiting: RolloutGroup ingester: spec.maxUnavailable: invalid value \"150%\": must be a number of at least 1 such as \"2\", or a percentage from 1% to 100% such as \"25%\"\n",
		},
		"a zone that is named twice stalls the group": {
			group(zoneOf("a", "v1")).with(func(g *v1alpha1.RolloutGroupSpec) { g.ZoneOrder = []string{"a", "a"} }),
			"InvalidInput: the rollout is waiting: RolloutGroup ingester: spec.zoneOrder: \"a\" is named twice; name it once\n",
		},
		"two zones in one place stall the group": {
			group(zoneOf("a", "v1", place(1)), zoneOf("b", "v1", place(1))),
			"InvalidInput: the rollout is waiting: StatefulSet b: annotation spillway.dev/zone-order: \"1\" is already used by StatefulSet a; give each its own\n" +
				"InvalidInput: the rollout is waiting: StatefulSet b: annotation spillway.dev/zone-order: \"1\" is already used by StatefulSet a; give each its own\n",
		},
		"the group's order wins over the annotations'": {
			group(zoneOf("a", "v1", place(1)), zoneOf("b", "v1")).with(func(g *v1alpha1.RolloutGroupSpec) { g.ZoneOrder = []string{"b"} }),
			"permits b-0 for \"b\"\n" +
				"WaitingForTurn: a is waiting: b has 0 of 1 updated\n",
		},
		"annotations say the order": {
			group(zoneOf("a", "v1"), zoneOf("b", "v1", place(7))),
			"permits b-0 for \"b\"\n" +
				"WaitingForTurn: a is waiting: b has 0 of 1 updated\n",
		},
		"a percentage counts the replicas, rounded down": {
			group(zoneOf("a", "v1 v1 v1 v1 v1")).with(func(g *v1alpha1.RolloutGroupSpec) { g.MaxUnavailable = new(intstr.FromString("50%")) }),
			"permits a-0 a-1 for \"a\"\n" +
				"BudgetExhausted: a-2 is queued (position 1): 2 of 2 allowed unavailable in a\n" +
				"BudgetExhausted: a-3 is queued (position 2): 2 of 2 allowed unavailable in a\n" +
				"BudgetExhausted: a-4 is queued (position 3): 2 of 2 allowed unavailable in a\n",
		},
		"a Pod must be ready for long enough": {
			group(zoneOf("a", "v2 v1", readyFor(5*time.Second)), zoneOf("b", "v1")).with(func(g *v1alpha1.RolloutGroupSpec) { g.MinReadySeconds = 30 }),
			"Soaking: a-0 is ready; soaking until 4 May 12:00:25 UTC (minReadySeconds)\n" +
				"MinReadySeconds: a-1 is waiting: soaking until 4 May 12:00:25 UTC (minReadySeconds)\n" +
				"WaitingForTurn: b is waiting: a has 0 of 2 ready, a-0 is ready; soaking until 4 May 12:00:25 UTC (minReadySeconds)\n",
		},
		"also at an old revision": {
			group(zoneOf("a", "v1 v1", readyFor(5*time.Second))).with(func(g *v1alpha1.RolloutGroupSpec) { g.MinReadySeconds = 30 }),
			"MinReadySeconds: a-0 is waiting: soaking until 4 May 12:00:25 UTC (minReadySeconds)\n" +
				"MinReadySeconds: a-1 is waiting: soaking until 4 May 12:00:25 UTC (minReadySeconds)\n",
		},
		"a zone soaks": {
			group(zoneOf("a", "v2", readyFor(time.Minute)), zoneOf("b", "v1")).with(func(g *v1alpha1.RolloutGroupSpec) { g.Soak = &metav1.Duration{Duration: 5 * time.Minute} }),
			"Soaking: a is ready; soaking until 4 May 12:04:00 UTC\n" +
				"Soaking: b is waiting: a is ready; soaking until 4 May 12:04:00 UTC\n",
		},
		"a view that is older than what was decided upon": {
			group(zoneOf("a", "v1")).decidedAt("100", "99"),
			"looks again, live\n" +
				"StaleView: the rollout is waiting: the cache of Pods or StatefulSets is older than the last decision\n",
		},
		"a zone that is held is opened in its turn": {
			group(zoneOf("a", "v1 v1", held), zoneOf("b", "v1", held)),
			"permits a for \"a\"\n" +
				"BudgetExhausted: a-0 is queued (position 1): 1 of 1 allowed unavailable in a\n" +
				"WaitingForTurn: b is waiting: a has 0 of 2 updated\n",
		},
		"by one patch": {
			group(zoneOf("a", "v1 v1", held), zoneOf("b", "v1", held)).locked("a").moving("a"),
			"Open a\n" +
				"Progressing: a-1 is updating: about to be replaced\n" +
				"BudgetExhausted: a-0 is queued (position 1): 1 of 1 allowed unavailable in a (a-1 is about to be replaced)\n" +
				"WaitingForTurn: b is waiting: a has 1 of 2 ready, a-1 is about to be replaced\n",
		},
		"while it is open its controller replaces the Pods": {
			group(zoneOf("a", "v1 v1", opened), zoneOf("b", "v1", held)).locked("a"),
			"BudgetExhausted: a-0 is queued (position 1): 1 of 1 allowed unavailable in a\n" +
				"WaitingForTurn: b is waiting: a has 0 of 2 updated\n",
		},
		"but not what is stuck": {
			group(zoneOf("a", "v1! v1", opened), zoneOf("b", "v1", held)).locked("a"),
			"permits a-0 for \"a\"\n" +
				"BudgetExhausted: a-1 is queued (position 1): 1 of 1 allowed unavailable in a (a-0 is not ready since 4 May 11:00:00 UTC (CrashLoopBackOff))\n" +
				"WaitingForTurn: b is waiting: a has 1 of 2 ready, a-0 is not ready since 4 May 11:00:00 UTC (CrashLoopBackOff)\n",
		},
		"it is held again when it is done": {
			group(zoneOf("a", "v2 v2", opened, done), zoneOf("b", "v1", held)).locked("a"),
			"Hold a\n" +
				"GatePending: a is waiting: gate partition is pending: the zone is open, and must be held again\n" +
				"WaitingForTurn: b is waiting: a is waiting: gate partition is pending: the zone is open, and must be held again\n",
		},
		"also before its controller says so": {
			group(zoneOf("a", "v2 v2", opened), zoneOf("b", "v1", held)).locked("a"),
			"Hold a\n" +
				"GatePending: a is waiting: gate partition is pending: the zone is open, and must be held again\n" +
				"WaitingForTurn: b is waiting: a is waiting: gate partition is pending: the zone is open, and must be held again\n",
		},
		"but not one that is lent: it would come back at the old revision": {
			group(zoneOf("a", "v2 v2", lent), zoneOf("b", "v1", held)).server(Server{AdvancesRevision: true}).locked("a"),
			"GatePending: a is waiting: gate partition is pending: the zone is open, and must be held again\n" +
				"WaitingForTurn: b is waiting: a is waiting: gate partition is pending: the zone is open, and must be held again\n",
		},
		"a zone that joins open is held first": {
			group(zoneOf("a", "v1", opened), zoneOf("b", "v1", held)),
			"Hold a\n" +
				"WaitingForTurn: b is waiting: a has 0 of 1 updated\n",
		},
		"also while its status is stale": {
			group(zoneOf("a", "v1", opened, stale)),
			"Hold a\n" +
				"StatusNotObserved: the rollout is waiting: the status of a has not observed generation 2 yet\n",
		},
		"a pause holds a zone that is open": {
			group(zoneOf("a", "v1", opened, paused), zoneOf("b", "v1", held)).locked("a"),
			"Hold a\n" +
				"Paused: a is paused\n",
		},
		"a zone that was open wants a live look before the next": {
			group(zoneOf("a", "v2", held, done), zoneOf("b", "v1", held)).locked("a").wasOpen("a"),
			"looks again, live\n",
		},
		"one that was held when it was done does not": {
			group(zoneOf("a", "v2", held, stale, settled), zoneOf("b", "v1 v1", held)).locked("a").wasOpen("a"),
			"permits b for \"b\"\n" +
				"BudgetExhausted: b-0 is queued (position 1): 1 of 1 allowed unavailable in b\n",
		},
		"without maxUnavailable a zone is lent": {
			group(zoneOf("a", "v1 v1", held)).server(Server{}).locked("a").lending("a"),
			"Lend a\n" +
				"BudgetExhausted: a-0 is queued (position 1): 1 of 1 allowed unavailable in a\n",
		},
		"and its Pods are deleted one by one": {
			group(zoneOf("a", "v1 v1", lent)).server(Server{}).locked("a"),
			"permits a-1 for \"a\"\n" +
				"BudgetExhausted: a-0 is queued (position 1): 1 of 1 allowed unavailable in a\n",
		},
		"a Pod that would come back as it is waits while its zone is held": {
			group(zoneOf("a", "v2! v2", held), zoneOf("b", "v1! v1", held)).locked("a"),
			"Unhealthy: a-0 is up to date but not ready since 4 May 11:00:00 UTC (CrashLoopBackOff)\n" +
				"WaitingForTurn: b is waiting: a has 1 of 2 ready, a-0 is not ready since 4 May 11:00:00 UTC (CrashLoopBackOff)\n" +
				"HeldByPartition: b-0 is waiting: not ready since 4 May 11:00:00 UTC (CrashLoopBackOff); the partition holds its zone, so it would come back at v1\n",
		},
		"one at a revision that is not wanted goes": {
			group(zoneOf("a", "v2! v2", held), zoneOf("b", "v0! v1", held)).locked("b"),
			"permits b-0 for \"b\"\n" +
				"Unhealthy: a-0 is up to date but not ready since 4 May 11:00:00 UTC (CrashLoopBackOff)\n" +
				"WaitingForTurn: b is waiting: a has 1 of 2 ready, a-0 is not ready since 4 May 11:00:00 UTC (CrashLoopBackOff)\n",
		},
		"one at a revision that is not wanted waits for what was moved": {
			group(zoneOf("a", "v2! v2", held), zoneOf("b", "v0! v1", held)).locked("a"),
			"Unhealthy: a-0 is up to date but not ready since 4 May 11:00:00 UTC (CrashLoopBackOff)\n" +
				"WaitingForTurn: b is waiting: a has 1 of 2 ready, a-0 is not ready since 4 May 11:00:00 UTC (CrashLoopBackOff)\n" +
				"WaitingForTurn: b is waiting: a has 1 of 2 ready, a-0 is not ready since 4 May 11:00:00 UTC (CrashLoopBackOff)\n",
		},
		"what is down under the lock goes first, though no zone was ever complete": {
			group(zoneOf("a", "v0! v1"), zoneOf("b", "v0! v1")).locked("b"),
			"permits b-0 for \"b\"\n" +
				"WaitingForTurn: a is waiting: b has 1 of 2 ready, b-0 is not ready since 4 May 11:00:00 UTC (CrashLoopBackOff)\n" +
				"WaitingForTurn: a is waiting: b has 1 of 2 ready, b-0 is not ready since 4 May 11:00:00 UTC (CrashLoopBackOff)\n" +
				"WaitingForTurn: b is waiting: a has 1 of 2 ready, a-0 is not ready since 4 May 11:00:00 UTC (CrashLoopBackOff)\n",
		},
		"under a lock for the whole what is down first goes first": {
			group(zoneOf("a", "v1~ v1"), zoneOf("b", "v0! v1")).locked(""),
			"Progressing: a-0 is updating: terminating\n" +
				"WaitingForTurn: a is waiting: b has 1 of 2 ready, b-0 is not ready since 4 May 11:00:00 UTC (CrashLoopBackOff)\n" +
				"WaitingForTurn: b is waiting: a has 1 of 2 ready, a-0 is terminating\n" +
				"WaitingForTurn: b is waiting: a has 1 of 2 ready, a-0 is terminating\n",
		},
		"broken Pods of two zones do not wait for each other": {
			group(zoneOf("a", "v1!", held), zoneOf("b", "v1!", held)),
			"permits a for \"a\"\n" +
				"HeldByPartition: b-0 is waiting: not ready since 4 May 11:00:00 UTC (CrashLoopBackOff); the partition holds its zone, so it would come back at v1\n",
		},
		"a strategy that a user has set back is cleared up": {
			group(zoneOf("a", "v2", held, done, func(s *Set) { s.Lent = true })),
			"Hold a\n",
		},
		"a controller that does not advance the revision is helped": {
			group(zoneOf("a", "v2")).server(Server{}),
			"Advance a\n",
		},
		"a write that was refused waits": {
			group(zoneOf("a", "v1")).locked("a").moving("a-0").refused("a-0"),
			"Progressing: a-0 is updating: not replaced yet, the API server refuses it: the API server said no\n",
		},
		"and is not permitted again before it is tried again": {
			group(zoneOf("a", "v1")).locked("a").moving("a-0").after(ring.ActWithin).refused("a-0"),
			"Progressing: a-0 is updating: not replaced yet, the API server refuses it: the API server said no\n",
		},
		"but then": {
			group(zoneOf("a", "v1")).locked("a").moving("a-0").refused("a-0").after(ring.ActWithin),
			"permits a-0 for \"a\"\n" +
				"Progressing: a-0 is updating: not replaced yet, the API server refuses it: the API server said no\n",
		},
		"a move of a zone that is gone wants a live look": {
			group(zoneOf("b", "v2", done)).locked("a").moving("a-0"),
			"looks again, live\n",
		},
		"and is over when its Pod is gone": {
			group(zoneOf("b", "v2", done)).locked("a").moving("a-0").lively(),
			"releases\n",
		},
		"or has changed": {
			group(zoneOf("b", "v2", done)).locked("a").moving("a-0").lively(Pod{Name: "a-0", UID: "a-0", ResourceVersion: "21"}),
			"releases\n",
		},
		"but not while it stands: it is withdrawn before": {
			group(zoneOf("b", "v2", done)).locked("a").moving("a-0").lively(Pod{Name: "a-0", UID: "a-0", ResourceVersion: "20"}),
			"Fence a-0\n",
		},
	}
}

// A zone that is open though nothing was permitted is remembered, if its controller may have replaced Pods: it was whole at
// another revision than the one that it wants, or that is not known.
func TestAZoneThatAnotherClientHasOpenedIsRemembered(t *testing.T) {
	for name, test := range map[string]struct {
		observed *Observed
		want     bool
	}{
		"outdated":             {group(zoneOf("a", "v1 v1", opened)).whole("a", "v1"), true},
		"of an unknown target": {group(zoneOf("a", "v2 v2", opened, stale)).whole("a", "v2"), true},
		"up to date":           {group(zoneOf("a", "v2 v2", opened, done)).whole("a", "v2"), false},
		"new in the group":     {group(zoneOf("a", "v1 v1", opened)), false},
		"held":                 {group(zoneOf("a", "v1 v1", held), zoneOf("b", "v1", held)).whole("a", "v1").whole("b", "v1").with(func(g *v1alpha1.RolloutGroupSpec) { g.Pause = &v1alpha1.Pause{} }), false},
		"opened in its turn":   {group(zoneOf("a", "v1 v1", opened)).whole("a", "v1").locked("a"), false},
	} {
		plan := Decide(*test.observed)
		if got := plan.Status.Zones[0].Opened; got != test.want {
			t.Errorf("%s: opened is %v, want %v", name, got, test.want)
		}
	}
}
