package scaling

import (
	"encoding/json"
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/spillway-dev/spillway/api/spillway/v1alpha1"
)

// A follower whose replicas are in Git: the leader has 3, and another client applies 5 whenever
// Spillway has written 3. Pods are removed once, and not again for as long as that goes on.
func TestReplicasThatAnotherClientSetsBack(t *testing.T) {
	t.Parallel()
	now := time.Date(2026, 5, 4, 12, 0, 0, 0, time.UTC)
	o := Observed{Now: now, Name: "store", HasGroup: true, Sets: []Set{
		{Name: "a", UID: "a", Replicas: 3, ReadyReplicas: 3, Settled: true},
		{Name: "b", UID: "b", Replicas: 5, ReadyReplicas: 5, Settled: true, Settings: Settings{Leader: "a"}},
	}}
	b := &o.Sets[1]
	writes := func() int {
		p := Decide(o)
		for _, s := range p.Scales {
			noted := b.next(s.To, o.Now)
			raw, err := json.Marshal(noted)
			if err != nil {
				t.Fatal(err)
			}
			if b.Scaled = scaledOf(string(raw)); b.Scaled == nil || *b.Scaled != noted {
				t.Fatalf("%s comes back as %+v", raw, b.Scaled)
			}
		}
		return len(p.Scales)
	}
	if writes() != 1 {
		t.Fatal("the follower does not follow")
	}
	for range 30 { // the other client has set them back; seconds pass
		o.Now = o.Now.Add(time.Second)
		if writes() != 0 {
			t.Fatal("Pods are removed again")
		}
	}
	said := strings.Join(func() []string { p := Decide(o); return p.Explain() }(), "\n")
	if !strings.Contains(said, "another client sets its replicas back from 3 to 5 (once since 4 May 12:00:00 UTC)") || !strings.Contains(said, "tried again at 4 May 12:10:00 UTC") {
		t.Errorf("it says %q", said)
	}
	o.Now = now.Add(contested().First)
	if writes() != 1 || b.Scaled.Undone != 1 {
		t.Errorf("it is tried again, and noted: %+v", b.Scaled)
	}
	o.Now = o.Now.Add(contested().First)
	if writes() != 0 {
		t.Error("it waits longer each time")
	}
	o.Sets[0].Replicas, o.Sets[0].ReadyReplicas = 4, 4
	if writes() != 1 || b.Scaled.Undone != 0 {
		t.Errorf("other replicas are another matter: %+v", b.Scaled)
	}
}

// Where another client removes what is added, that is tried three times.
func TestReplicasThatAnotherClientRemoves(t *testing.T) {
	t.Parallel()
	o := Observed{Now: time.Date(2026, 5, 4, 12, 0, 0, 0, time.UTC), Name: "store", HasGroup: true, Sets: []Set{
		{Name: "a", UID: "a", Replicas: 3, ReadyReplicas: 3, Settled: true},
		{Name: "b", UID: "b", Replicas: 1, ReadyReplicas: 1, Settled: true, Settings: Settings{Leader: "a"}},
	}}
	b, tried := &o.Sets[1], 0
	for range 30 {
		for _, s := range Decide(o).Scales {
			noted := b.next(s.To, o.Now)
			b.Scaled = &noted
			tried++
		}
		o.Now = o.Now.Add(time.Second)
	}
	if tried != raises {
		t.Errorf("tried %d times, want %d", tried, raises)
	}
}

// A client that replaces the whole StatefulSet takes the note with it: the group knows.
func TestReplicasThatAnotherClientSetsBackWithTheNote(t *testing.T) {
	t.Parallel()
	o := group(zone("a", 3), zone("b", 5, leader, "a", minTime, "1h"))
	o.Status.Downscales = []v1alpha1.Downscale{{Zone: "b", UID: "b", From: 5, To: 3, At: metav1.NewMicroTime(noon.Add(-time.Minute))}}
	const want = "ReplicasContested: b is waiting: another client sets its replicas back from 3 to 5 (once since 4 May 11:59:00 UTC); " +
		"remove spec.replicas from what that client applies; tried again at 4 May 12:09:00 UTC\nwake in 9m0s\n"
	if got := told(o); got != want {
		t.Errorf("got %q", got)
	}
	o.Sets[1].Scaled = &Scaled{Replicas: 5, At: noon.Add(-time.Second)} // added by us since
	if got := told(o); got != "scale b 5 to 3 lock=true\n" {
		t.Errorf("got %q", got)
	}
	o.Sets[1].Scaled, o.Sets[1].UID = nil, "another"
	if got := told(o); got != "scale b 5 to 3 lock=true\n" {
		t.Errorf("got %q", got)
	}
}

func TestWhatIsNotedByOthersIsNothing(t *testing.T) {
	t.Parallel()
	for _, value := range []string{"", "x", "{}", `{"replicas":-1,"at":"2026-05-04T12:00:00Z"}`, `{"replicas":1,"at":"2026-05-04T12:00:00Z","undone":-1}`} {
		if s := scaledOf(value); s != nil {
			t.Errorf("%q: %+v", value, s)
		}
	}
}
