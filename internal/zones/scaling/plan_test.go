package scaling

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/spillway-dev/spillway/api/spillway/v1alpha1"
)

var noon = time.Date(2026, 5, 4, 12, 0, 0, 0, time.UTC)

// zone is a StatefulSet all of whose Pods are ready; the pairs are annotations in
// rollout-operator's language.
func zone(name string, replicas int, pairs ...string) Set {
	annotations := map[string]string{}
	for i := 0; i < len(pairs); i += 2 {
		annotations["grafana.com/"+pairs[i]] = pairs[i+1]
	}
	return Set{
		Name: name, UID: types.UID(name), ResourceVersion: "1", Replicas: replicas, ReadyReplicas: replicas, Settled: true,
		Settings: SettingsOf(nil, annotations),
	}
}

func (s Set) with(change func(*Set)) Set {
	change(&s)
	return s
}

func (s Set) mirroring(replicas, status int) Set {
	return s.with(func(s *Set) {
		s.Mirrored = &Mirrored{Replicas: replicas, StatusReplicas: status, UID: "m", ResourceVersion: "1"}
	})
}

// prepared are Pods that said at noon since when they are.
func (s Set) prepared(since map[int]time.Duration) Set {
	return s.with(func(s *Set) {
		s.Answers = map[int]Answer{}
		for i := range s.Replicas {
			s.Answers[i] = Answer{Stays: true}
		}
		for i, ago := range since {
			s.Answers[i] = Answer{Since: noon.Add(-ago), Asked: noon}
		}
	})
}

func group(sets ...Set) Observed {
	return Observed{Now: noon, Name: "ingester", HasGroup: true, Sets: sets}
}

func (o Observed) scaledDown(zone string, ago time.Duration) Observed {
	o.Status.Downscales = append(o.Status.Downscales, v1alpha1.Downscale{Zone: zone, At: metav1.NewMicroTime(noon.Add(-ago))})
	return o
}

func (o Observed) locked(l v1alpha1.Lock) Observed {
	l.Since = metav1.NewMicroTime(noon)
	o.Status.Lock = &l
	return o
}

func (o Observed) pending(d v1alpha1.Downscale, ago time.Duration) Observed {
	d.At = metav1.NewMicroTime(noon.Add(-ago))
	o.Status.Downscale = &d
	return o.locked(v1alpha1.Lock{Holder: "downscale/" + d.Zone, Purpose: v1alpha1.PurposeDownscale, Zone: d.Zone})
}

// admitted has a downscale that was admitted for a version of its StatefulSet, and was asked
// for again since, or not.
func (o Observed) admitted(version string, ago, asked time.Duration) Observed {
	d := v1alpha1.Downscale{Zone: "a", UID: "a", From: 3, To: 2, Prepares: true, ResourceVersion: version}
	d.AdmittedAt = new(metav1.NewMicroTime(noon.Add(-ago)))
	return o.pending(d, asked)
}

func (s Set) at(version string) Set { return s.with(func(s *Set) { s.ResourceVersion = version }) }

// refused notes a downscale that is tried again after a while.
func (o Observed) refused(zone string, after time.Duration) Observed {
	o.Status.RefusedDownscales = []v1alpha1.RefusedDownscale{{
		Zone: zone, UID: types.UID(zone), Message: "no one may", RetryAt: new(metav1.NewMicroTime(noon.Add(after))),
	}}
	return o
}

// takingBack has one written down that takes nothing down.
func (o Observed) takingBack(zone string, from, to int32) Observed {
	o.Status.Downscale = &v1alpha1.Downscale{
		Zone: zone, UID: types.UID(zone), From: from, To: to, At: metav1.NewMicroTime(noon), AdmittedAt: new(metav1.NewMicroTime(noon)), Unscheduled: true,
	}
	return o
}

func neverRan(s *Set) { s.TakesBack, s.ReadyReplicas = true, 1 }

// undoing has a downscale that was refused at noon, and of which Pods may still obey.
func (o Observed) undoing(zone string) Observed {
	o.Status.Downscale = &v1alpha1.Downscale{Zone: zone, UID: types.UID(zone), From: 3, To: 2, At: metav1.NewMicroTime(noon), Prepares: true, Refused: true}
	return o
}

// told is a plan as sentences.
func told(o Observed) string {
	p := Decide(o)
	var b strings.Builder
	if p.Settlement.Verdict != Wait {
		fmt.Fprintf(&b, "%s\n", p.Settlement.Verdict)
	}
	for _, c := range p.Calls {
		fmt.Fprintf(&b, "call %s prepare=%v %v\n", c.Set, c.Prepare, c.Ordinals)
	}
	for _, s := range p.Scales {
		taken := ""
		if s.TakesBack {
			taken = ", taken back"
		}
		fmt.Fprintf(&b, "scale %s %d to %d lock=%v%s\n", s.Set.Name, s.From, s.To, s.Locks, taken)
	}
	for _, w := range p.WriteBacks {
		fmt.Fprintf(&b, "write back %d to %s\n", w.Replicas, w.Mirror)
	}
	for _, h := range p.Holds {
		fmt.Fprintf(&b, "%s: %s\n", h.Reason, h.Message)
	}
	if !p.Wake.IsZero() {
		fmt.Fprintf(&b, "wake in %s\n", p.Wake.Sub(noon))
	}
	return b.String()
}

const (
	leader  = "rollout-downscale-leader"
	minTime = "min-time-between-zones-downscale"
)

var mirrored = []string{"rollout-mirror-replicas-from-resource-name", "ingester", "rollout-mirror-replicas-from-resource-kind", "ReplicaTemplate", "rollout-mirror-replicas-from-resource-api-version", "rollout-operator.grafana.com/v1"}

func mirror(pairs ...string) []string { return append(append([]string{}, mirrored...), pairs...) }

var delayed = mirror("rollout-delayed-downscale", "30m", "rollout-prepare-delayed-downscale-url", "http://pod/prepare")

func TestDecide(t *testing.T) {
	for name, test := range map[string]struct {
		observed Observed
		want     string
	}{
		"nothing is asked":       {group(zone("a", 3), zone("b", 2)), ""},
		"all are where they are": {group(zone("a", 3), zone("b", 3, leader, "a", minTime, "1h")), ""},
		"up immediately, all of a chain": {group(zone("a", 3), zone("b", 1, leader, "a"), zone("c", 1, leader, "b")),
			"scale b 1 to 3 lock=false\n"},
		"up waits for the leader": {group(zone("a", 3).with(func(s *Set) { s.ReadyReplicas = 2 }), zone("b", 1, leader, "a", "rollout-upscale-only-when-leader-ready", "true")),
			"LeaderNotReady: b is waiting: its leader a has 2 of 3 replicas ready\n"},
		"and only if it is asked to": {group(zone("a", 3).with(func(s *Set) { s.ReadyReplicas = 2 }), zone("b", 1, leader, "a")),
			"scale b 1 to 3 lock=false\n"},
		"where it is it waits for nothing": {
			group(zone("a", 3).with(func(s *Set) { s.ReadyReplicas = 2 }), zone("b", 3, leader, "a", minTime, "1h", "rollout-upscale-only-when-leader-ready", "true")).scaledDown("a", 10*time.Minute), "",
		},
		"all follow one another": {group(zone("a", 3, leader, "b"), zone("b", 1, leader, "a")),
			"LeaderMissing: a is waiting: its leaders follow one another: a follows b follows a\n" +
				"LeaderMissing: b is waiting: its leaders follow one another: b follows a follows b\n"},
		"up does not wait for a lock": {group(zone("a", 3), zone("b", 1, leader, "a")).locked(v1alpha1.Lock{Holder: "rollout/ingester", Purpose: "rollout", Zone: "a"}),
			"scale b 1 to 3 lock=false\n"},
		"down, none has before": {group(zone("a", 1), zone("b", 3, leader, "a")), "scale b 3 to 1 lock=true\n"},
		"down waits for the minimum time": {group(zone("a", 1), zone("b", 3, leader, "a", minTime, "1h")).scaledDown("a", 10*time.Minute),
			"MinTimeBetweenZonesDownscale: b is waiting: a was scaled down at 4 May 11:50:00 UTC; the minimum time is 1h0m0s\nwake in 50m0s\n"},
		"down waits for the minimum time of another only if it is prepared": {
			group(zone("a", 1, minTime, "1h"), zone("b", 3, leader, "a", minTime, "10m")).scaledDown("a", 30*time.Minute), "scale b 3 to 1 lock=true\n",
		},
		"and then it does": {
			group(zone("a", 1, minTime, "1h"), zone("b", 3, leader, "a", minTime, "10m").with(func(s *Set) { s.Settings.Prepares = true })).scaledDown("a", 30*time.Minute),
			"MinTimeBetweenZonesDownscale: b is waiting: a was scaled down at 4 May 11:30:00 UTC; the minimum time is 1h0m0s\nwake in 30m0s\n",
		},
		"down waits while a Pod of another zone is down": {
			group(zone("a", 1).with(func(s *Set) { s.Down = "a-1 is terminating" }), zone("b", 3, leader, "a")),
			"WaitingForTurn: b is waiting: a is unavailable (a-1 is terminating)\n",
		},
		"and not for Pods of its own": {
			group(zone("a", 1), zone("b", 3, leader, "a").with(func(s *Set) { s.Down = "b-2 is not ready" })), "scale b 3 to 1 lock=true\n",
		},
		"of two that are down, none goes": {
			group(zone("a", 1), zone("b", 3, leader, "a").with(func(s *Set) { s.Down = "b-2 is not ready" }),
				zone("c", 3, leader, "a").with(func(s *Set) { s.Down = "c-2 is not ready" })),
			"WaitingForTurn: b is waiting: c is unavailable (c-2 is not ready)\nWaitingForTurn: c is waiting: b is unavailable (b-2 is not ready)\n",
		},
		"what was refused waits, also if another manager noted it": {
			group(zone("a", 1), zone("b", 3, leader, "a")).refused("b", time.Minute),
			"RetryLater: b is waiting: no one may; next try at 4 May 12:01:00 UTC\nwake in 1m0s\n",
		},
		"and until the Pods of a refused downscale know that they stay, no other begins": {
			group(zone("a", 1), zone("b", 3, leader, "a"), zone("c", 3)).undoing("c"),
			"Locked: downscale is waiting: the lock is held by downscale/c, which was refused: its Pods are called to stay since 4 May 12:00:00 UTC\nwake in 1m0s\n",
		},
		"a Pod that cannot be prepared and may have data": {
			group(zone("a", 3, delayed...).mirroring(2, 3).prepared(nil).with(func(s *Set) { s.Unprepared = "Pod a-2 does not run" })),
			"DownscaleDelayed: a is waiting: Pod a-2 does not run\n",
		},
		"its own downscale does not matter": {group(zone("a", 1), zone("b", 3, leader, "a", minTime, "1h")).scaledDown("b", time.Minute), "scale b 3 to 1 lock=true\n"},
		"the minimum time is over":          {group(zone("a", 1), zone("b", 3, leader, "a", minTime, "1h")).scaledDown("a", time.Hour), "scale b 3 to 1 lock=true\n"},
		"no minimum time is said": {group(zone("a", 1), zone("b", 3, leader, "a")).scaledDown("a", time.Hour),
			"MinTimeBetweenZonesDownscale: b is waiting: its minimum time after a downscale of a is not set; annotate it with spillway.dev/min-time-between-zones-downscale\n"},
		"what rollout-operator has noted counts": {group(zone("a", 1, "last-downscale", "2026-05-04T11:30:00Z"), zone("b", 3, leader, "a", minTime, "1h")),
			"MinTimeBetweenZonesDownscale: b is waiting: a was scaled down at 4 May 11:30:00 UTC; the minimum time is 1h0m0s\nwake in 30m0s\n"},
		"down waits for the lock": {group(zone("a", 1), zone("b", 3, leader, "a")).locked(v1alpha1.Lock{Holder: "rollout/ingester", Purpose: "rollout", Zone: "c"}),
			"Locked: downscale is waiting: the lock is held by rollout/ingester for rollout of c since 4 May 12:00:00 UTC\n"},
		"what no node ever had is taken back while a rollout has the lock": {
			group(zone("a", 1), zone("b", 3, leader, "a").with(neverRan)).locked(v1alpha1.Lock{Holder: "rollout/ingester", Purpose: "rollout", Zone: "b"}),
			"scale b 3 to 1 lock=true, taken back\n",
		},
		"whatever other zones do, and when they were scaled down": {
			group(zone("a", 1).with(func(s *Set) { s.Down = "a-1 is terminating" }), zone("b", 3, leader, "a", minTime, "1h").with(neverRan)).scaledDown("a", time.Minute),
			"scale b 3 to 1 lock=true, taken back\n",
		},
		"but not while a downscale is under way": {
			group(zone("a", 1), zone("b", 3, leader, "a").with(neverRan), zone("c", 3)).pending(v1alpha1.Downscale{Zone: "c", UID: "c", From: 3, To: 2, Prepares: true}, time.Second),
			"Locked: take-back is waiting: the lock is held by downscale/c for downscale of c since 4 May 11:59:59 UTC\nwake in 59s\n",
		},
		"nor if another client adds them again": {
			group(zone("a", 1), zone("b", 3, leader, "a").with(neverRan).with(func(s *Set) { s.Scaled = &Scaled{Replicas: 1, At: noon.Add(-time.Second)} })),
			"ReplicasContested: b is waiting: another client sets its replicas back from 1 to 3 (once since 4 May 11:59:59 UTC); " +
				"remove spec.replicas from what that client applies; tried again at 4 May 12:09:59 UTC\nwake in 9m59s\n",
		},
		"what a manager before us has written down is taken back, and nothing else goes down": {
			group(zone("a", 1), zone("b", 3, leader, "a").with(neverRan), zone("c", 3, leader, "a")).takingBack("b", 3, 1),
			"scale b 3 to 1 lock=true, taken back\n" +
				"Locked: downscale is waiting: the lock is held by downscale/b for downscale of b since 4 May 12:00:00 UTC\nwake in 1m5s\n",
		},
		"two go down, one at a time": {group(zone("a", 1), zone("b", 3, leader, "a"), zone("c", 3, leader, "a")),
			"scale b 3 to 1 lock=true\nWaitingForTurn: c is waiting: b is next\n"},
		"a forced number":                  {group(zone("a", 3), zone("b", 3, leader, "a", "rollout-force-replicas", "5")), "scale b 3 to 5 lock=false\n"},
		"a forced number without a leader": {group(zone("b", 3, "rollout-force-replicas", "5")), ""},
		"one that is not understood":       {group(zone("a", 3), zone("b", 3, leader, "a", "rollout-force-replicas", "-1")), ""},
		"a cycle": {group(zone("a", 3, leader, "c"), zone("b", 1, leader, "a"), zone("c", 2, leader, "a")),
			"LeaderMissing: a is waiting: its leaders follow one another: a follows c follows a\n" +
				"scale b"},
		"what is not understood": {group(zone("a", 3), zone("b", 3, leader, "a", minTime, "soon")),
			"InvalidInput: b is waiting: annotation grafana.com/min-time-between-zones-downscale: invalid value \"soon\": must be a duration such as \"12h\"\n"},
		"a mirrored object that has not been read": {group(zone("a", 3, mirrored...)), "MirrorUnreadable: a is waiting: ReplicaTemplate ingester: it has not been read yet\n"},
		"a mirrored object": {group(zone("a", 3, mirrored...).mirroring(5, 3), zone("b", 3, mirrored...).mirroring(5, 3)),
			"scale a 3 to 5 lock=false\nscale b 3 to 5 lock=false\n"},
		"gets how many there are":          {group(zone("a", 5, mirrored...).mirroring(5, 3), zone("b", 4, mirror("rollout-force-replicas", "4")...).mirroring(5, 3)), "write back 5 to ReplicaTemplate ingester\n"},
		"unless it is not wanted":          {group(zone("a", 5, mirror("rollout-mirror-replicas-from-resource-write-back", "false")...).mirroring(5, 3)), ""},
		"nor where that is not understood": {group(zone("a", 5, mirror("rollout-mirror-replicas-from-resource-write-back", "perhaps")...).mirroring(5, 3)), ""},
		"one that cannot be read": {group(zone("a", 5, mirrored...).with(func(s *Set) { s.Mirrored = &Mirrored{Problem: "not found"} })),
			"MirrorUnreadable: a is waiting: ReplicaTemplate ingester: not found\n"},
		"a delay: all are called": {group(zone("a", 3, delayed...).mirroring(2, 3)),
			"call a prepare=false [0 1]\ncall a prepare=true [2]\nDownscaleDelayed: a is waiting: preparing its last Pods (1) for 30m0s\n"},
		"a delay: none is ripe": {group(zone("a", 3, delayed...).mirroring(1, 3).prepared(map[int]time.Duration{1: time.Hour, 2: 10 * time.Minute})),
			"DownscaleDelayed: a is waiting: a-2 must be prepared for 30m0s, until 4 May 12:20:00 UTC\nwake in 20m0s\n"},
		"a delay: those in a row at the end go": {group(zone("a", 4, delayed...).mirroring(1, 4).prepared(map[int]time.Duration{1: time.Hour, 2: time.Minute, 3: time.Hour})),
			"scale a 4 to 3 lock=true\n"},
		"a delay: all go": {group(zone("a", 4, delayed...).mirroring(1, 4).prepared(map[int]time.Duration{1: time.Hour, 2: time.Hour, 3: time.Hour})),
			"scale a 4 to 1 lock=true\n"},
		"a delay: ripe ones are asked again": {group(zone("a", 2, delayed...).mirroring(1, 2).prepared(nil).with(func(s *Set) {
			s.Answers[1] = Answer{Since: noon.Add(-time.Hour), Asked: noon.Add(-45 * time.Minute)}
		})), "call a prepare=true [1]\nDownscaleDelayed: a is waiting: preparing its last Pods (1) for 30m0s\n"},
		"a delay: idle, no Pod is called":    {group(zone("a", 2, delayed...).mirroring(2, 2).prepared(nil)), ""},
		"a delay: 10, 9 and 10 again":        {group(zone("a", 10, delayed...).mirroring(10, 10).prepared(map[int]time.Duration{9: time.Minute})), "call a prepare=false [9]\n"},
		"a delay: Pods that do not exist go": {group(zone("a", 2, delayed...).mirroring(1, 2).prepared(nil).with(func(s *Set) { s.Answers[1] = Answer{Asked: noon} })), "scale a 2 to 1 lock=true\n"},
		"a downscale is awaited":             {group(zone("a", 3)).pending(v1alpha1.Downscale{Zone: "a", UID: "a", From: 3, To: 2, Prepares: true}, time.Second), "wake in 59s\n"},
		"a downscale was seen":               {group(zone("a", 2)).pending(v1alpha1.Downscale{Zone: "a", UID: "a", From: 3, To: 2, Prepares: true}, time.Second), "Land\n"},
		"a downscale did not come":           {group(zone("a", 3)).pending(v1alpha1.Downscale{Zone: "a", UID: "a", From: 3, To: 2, Prepares: true}, time.Hour), "Undo\n"},
		"its StatefulSet has changed since":  {group(zone("a", 3).at("8")).admitted("7", 20*time.Second, 20*time.Second), "Undo\n"},
		"it has changed, a moment ago":       {group(zone("a", 3).at("8")).admitted("7", time.Second, time.Second), "wake in 9s\n"},
		"it has not changed since":           {group(zone("a", 3).at("7")).admitted("7", 20*time.Second, 20*time.Second), "wake in 45s\n"},
		"it changed, and is asked for again": {group(zone("a", 3).at("8")).admitted("7", 20*time.Second, time.Second), "wake in 45s\n"},
		"a downscale of what is gone":        {group().pending(v1alpha1.Downscale{Zone: "a", UID: "a", From: 3, To: 2, Prepares: true}, time.Second), "Drop\n"},
		"a manager before us took the lock":  {group(zone("a", 1), zone("b", 3, leader, "a")).pending(v1alpha1.Downscale{Zone: "b", UID: "b", From: 3, To: 1}, time.Second), "scale b 3 to 1 lock=true\nwake in 59s\n"},
	} {
		t.Run(name, func(t *testing.T) {
			got := told(test.observed)
			if name == "a cycle" { // of which only the first sentence is of interest
				if !strings.Contains(got, "its leaders follow one another: a follows c follows a") || !strings.Contains(got, "c follows a follows c") || !strings.Contains(got, "scale b 1 to 3") {
					t.Error(got)
				}
				return
			}
			if diff := cmp.Diff(test.want, got); diff != "" {
				t.Errorf("plan (-want +got):\n%s", diff)
			}
		})
	}
}

// Defect 16: with rollout-operator one leader that is missing keeps all others from
// being scaled, and no Event says so.
func TestDefect16OneMissingLeaderConcernsItsFollowerAlone(t *testing.T) {
	got := told(group(zone("a", 3), zone("b", 1, leader, "a"), zone("c", 1, leader, "gone")))
	want := "scale b 1 to 3 lock=false\nLeaderMissing: c is waiting: its leader gone is not in the group; name one that is\n"
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
}

// Defect 7: where rollout-operator keeps the time of the last downscale elsewhere, its
// controller does not read it there. Ours reads what the guards have written.
func TestDefect7WhatTheGuardsHaveWrittenKeepsFollowersWaiting(t *testing.T) {
	o := group(zone("a", 1), zone("b", 3, leader, "a", minTime, "12h")).scaledDown("a", time.Hour)
	want := "MinTimeBetweenZonesDownscale: b is waiting: a was scaled down at 4 May 11:00:00 UTC; the minimum time is 12h0m0s\nwake in 11h0m0s\n"
	if diff := cmp.Diff(want, told(o)); diff != "" {
		t.Error(diff)
	}
}

// Issue 61: the annotation wins over the label, of which is warned.
func TestIssue61TheAnnotationWins(t *testing.T) {
	label := map[string]string{"grafana.com/" + minTime: "1h"}
	if s := SettingsOf(label, nil); *s.MinTime != time.Hour || !s.MinTimeIsLabel {
		t.Errorf("%+v", s)
	}
	if s := SettingsOf(label, map[string]string{"grafana.com/" + minTime: "2h"}); *s.MinTime != 2*time.Hour || s.MinTimeIsLabel {
		t.Errorf("%+v", s)
	}
}

func TestProblems(t *testing.T) {
	for name, test := range map[string]struct{ pairs, want []string }{
		"a delay":   {mirror("rollout-delayed-downscale", "soon", "rollout-prepare-delayed-downscale-url", "http://pod/x"), []string{"grafana.com/rollout-delayed-downscale"}},
		"its URL":   {mirror("rollout-delayed-downscale", "1d", "rollout-prepare-delayed-downscale-url", "pod/x"), []string{"grafana.com/rollout-prepare-delayed-downscale-url"}},
		"no URL":    {mirror("rollout-delayed-downscale", "soon"), nil},
		"a version": {append(mirror(), "rollout-mirror-replicas-from-resource-api-version", "a/b/c"), []string{"grafana.com/rollout-mirror-replicas-from-resource-api-version"}},
		"a time":    {[]string{"last-downscale", "yesterday"}, []string{"grafana.com/last-downscale"}},
	} {
		t.Run(name, func(t *testing.T) {
			var got []string
			for _, p := range zone("a", 1, test.pairs...).Settings.Problems {
				got = append(got, p.Field)
			}
			if diff := cmp.Diff(test.want, got); diff != "" {
				t.Error(diff)
			}
		})
	}
}

// A downscale that was refused is said while its Pods are called to stay, and otherwise not.
func TestExplainNamesWhatWasRefused(t *testing.T) {
	p := Plan{}
	if got := p.Explain(); len(got) > 0 {
		t.Errorf("of nothing it says %q", got)
	}
	p.Settlement.Downscale = &v1alpha1.Downscale{Zone: "a", From: 3, To: 2, Refused: true}
	want := []string{"a is not scaled down from 3 to 2 replicas: it was refused; its Pods are called to stay"}
	if diff := cmp.Diff(want, p.Explain()); diff != "" {
		t.Error(diff)
	}
}
