package zones_test

import (
	"slices"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"

	"github.com/spillway-dev/spillway/internal/zones"
	"github.com/spillway-dev/spillway/rollout"
)

// Two zones are created with a template at which no Pod becomes ready, so of each there is one
// Pod that hangs. The corrected template waited five minutes, until that counted as stuck.
func TestACorrectedTemplateDoesNotWaitForWhatWasNeverReady(t *testing.T) {
	t.Parallel()
	bothWays(t, func(_ *testing.T, w *world, strategy string) {
		w.manage()
		for _, name := range []string{"zone-a", "zone-b"} {
			w.create(zone(name, strategy, replicas(2), func(s *appsv1.StatefulSet) {
				s.Spec.PodManagementPolicy = appsv1.OrderedReadyPodManagement
				s.Spec.Template.Annotations[behavior] = "never-ready"
			}))
		}
		w.runs("zone-a: v1!", "zone-b: v1!")
		w.settled()
		w.behave("v2", "", "zone-a", "zone-b")
		w.complete("v2", "zone-a", "zone-b")
	})
}

// Pods that were ready may become so again: what they wait for says until when they may, and they
// are replaced then.
func TestAPodThatMayRecoverSaysUntilWhen(t *testing.T) {
	w := newWorld(t)
	w.manage()
	w.settles(onDelete)
	w.breakPod("zone-a-0")
	w.breakPod("zone-a-1")
	w.roll("v2", "zone-a")
	w.waitsFor("Waiting", "zone-a-0 may recover until ")
	w.goes(0)
	e, err := zones.Explain(t.Context(), w.client, w.options, w.namespace, ingester)
	if err != nil {
		t.Fatal(err)
	}
	i := slices.IndexFunc(e.Holds, func(h rollout.Hold) bool { return h.Path.String() == "zone-a/zone-a-0" })
	if wait := e.Holds[max(i, 0)].Until.Sub(w.clock.Now()); i < 0 || e.Holds[i].Reason != rollout.ReasonBudget || wait <= 0 || wait > 5*time.Minute {
		t.Errorf("it waits for %s: %+v", wait, e.Holds)
	}
	if e.Until == nil || e.Until.IsZero() {
		t.Errorf("the group does not say until when: %+v", e)
	}
	w.barrier.Step(t, time.Hour)
	w.complete("v2", "zone-a")
}
