package zones_test

import (
	"context"
	"fmt"
	"testing"

	appsv1 "k8s.io/api/apps/v1"

	"github.com/spillway-dev/spillway/internal/lab/controlplane"
	"github.com/spillway-dev/spillway/internal/lab/testenv"
	"github.com/spillway-dev/spillway/internal/lab/testenv/fault"
)

// The story of the fault tests: two zones come to be, and roll, with one Pod that
// is broken from the start; then they roll once more. Whatever goes wrong
// meanwhile, the witness must have nothing to complain of, and the end is the same.

func (w *world) beginStory(strategy string) {
	w.t.Helper()
	w.create(zone("zone-a", strategy, replicas(2)), zone("zone-b", strategy, replicas(2)))
}

// tell tells the story to its end; meanwhile is called all along.
func (w *world) tell(strategy string, meanwhile func()) {
	w.t.Helper()
	w.beginStory(strategy)
	w.arrives("v1", meanwhile)
	w.roll("v2", "zone-a", "zone-b")
	w.arrives("v2", meanwhile)
	w.witness.testify()
}

// arrives is complete with something that goes on meanwhile.
func (w *world) arrives(image string, meanwhile func()) {
	w.t.Helper()
	w.eventually(func() error {
		meanwhile()
		for _, name := range []string{"zone-a", "zone-b"} {
			if got, want := w.images(name), image+" "+image; got != want {
				return fmt.Errorf("%s runs %s, want %s: %s", name, got, want, w.says())
			}
		}
		if err := w.isComplete(); err != nil {
			return err
		}
		return w.isHeld()
	})
}

// isHeld is nil if every zone rests as it should.
func (w *world) isHeld() error {
	for _, name := range []string{"zone-a", "zone-b"} {
		strategy := w.set(name).Spec.UpdateStrategy
		if strategy.Type == onDelete {
			continue
		}
		if strategy.RollingUpdate == nil || strategy.RollingUpdate.Partition == nil || *strategy.RollingUpdate.Partition < 2 {
			return fmt.Errorf("%s is open: %+v", name, strategy.RollingUpdate)
		}
	}
	return nil
}

func noFault() {}

// TestFaultTheManagerStopsAtEveryWrite tells the story by managers that stop.
func TestFaultTheManagerStopsAtEveryWrite(t *testing.T) {
	t.Parallel()
	for _, strategy := range []string{onDelete, rollingUpdate} {
		t.Run(strategy, func(t *testing.T) {
			testenv.Story(t, 10, func(t *testing.T, begin fault.Begin) {
				w := newWorld(t)
				w.tell(strategy, begin(func(i *fault.Injector) func() { return w.managed(i) }))
			})
		})
	}
}

// TestFaultTwoManagersParallel has two managers that know nothing of each other.
func TestFaultTwoManagersParallel(t *testing.T) {
	t.Parallel()
	for i := range 3 {
		bothWays(t, func(t *testing.T, w *world, strategy string) {
			t.Log("run", i)
			w.managed(fault.New())
			w.managed(fault.New())
			w.tell(strategy, noFault)
		})
	}
}

// TestFaultTwoManagersOneBehind has two managers, of which one sees nothing for a
// part of the story, and acts all the same.
func TestFaultTwoManagersOneBehind(t *testing.T) {
	t.Parallel()
	bothWays(t, func(_ *testing.T, w *world, strategy string) {
		lagging := fault.New()
		w.managed(lagging)
		w.beginStory(strategy)
		w.arrives("v1", noFault)
		w.managed(fault.New())
		release := lagging.HoldWatches()
		w.roll("v2", "zone-a", "zone-b")
		w.eventually(func() error { return contains(w.images("zone-a"), "v2") })
		release()
		w.arrives("v2", noFault)
		w.witness.testify()
	})
}

// TestFaultConflicts refuses every other write.
func TestFaultConflicts(t *testing.T) {
	t.Parallel()
	bothWays(t, func(_ *testing.T, w *world, strategy string) {
		n := 0
		inj := fault.New()
		inj.Conflict(func(fault.Request) bool { n++; return n%2 == 1 })
		w.managed(inj)
		w.tell(strategy, noFault)
	})
}

// TestFaultCachesLag lets templates be edited while the caches see nothing.
func TestFaultCachesLag(t *testing.T) {
	t.Parallel()
	bothWays(t, func(_ *testing.T, w *world, strategy string) {
		inj := fault.New()
		w.managed(inj)
		w.beginStory(strategy)
		w.arrives("v1", noFault)
		release := inj.HoldWatches()
		w.roll("v2", "zone-a", "zone-b")
		w.roll("v3", "zone-b")
		release()
		w.roll("v4", "zone-a", "zone-b")
		w.arrives("v4", noFault)
		w.witness.testify()
	})
}

// TestFaultTheConnectionIsCut cuts the connection in the middle.
func TestFaultTheConnectionIsCut(t *testing.T) {
	t.Parallel()
	bothWays(t, func(_ *testing.T, w *world, strategy string) {
		inj := fault.New()
		w.managed(inj)
		w.beginStory(strategy)
		w.arrives("v1", noFault)
		w.roll("v2", "zone-a", "zone-b")
		w.eventually(func() error { return contains(w.images("zone-a"), "v2") })
		inj.Cut()
		w.roll("v3", "zone-a", "zone-b")
		inj.Restore()
		w.arrives("v3", noFault)
		w.witness.testify()
	})
}

// TestFaultAHumanInterferes deletes Pods and edits templates while a rollout runs.
func TestFaultAHumanInterferes(t *testing.T) {
	t.Parallel()
	for _, pod := range []string{"zone-a-0", "zone-a-1", "zone-b-0", "zone-b-1"} {
		bothWays(t, func(t *testing.T, w *world, strategy string) {
			t.Log("the human deletes", pod)
			w.manage()
			w.beginStory(strategy)
			w.arrives("v1", noFault)
			w.roll("v2", "zone-a", "zone-b")
			w.eventually(func() error { return contains(w.images("zone-a"), "v2") })
			w.eventually(func() error { return w.tryKill(pod) })
			w.roll("v3", "zone-b")
			w.eventually(func() error { return w.tryKill(pod) })
			w.roll("v3", "zone-a")
			w.arrives("v3", noFault)
			w.witness.testify()
		})
	}
}

// TestFaultTheAPIServerRestarts stops the API server in the middle of the story,
// and starts it again; on a control plane of its own.
func TestFaultTheAPIServerRestarts(t *testing.T) {
	t.Parallel()
	cp := testenv.Own(t, controlplane.Options{Nodes: 3})
	w := newWorldOn(t, cp, "default")
	w.manage()
	w.beginStory(rollingUpdate)
	w.create(zone("other-a", onDelete, inGroup("other"), replicas(2)))
	w.arrives("v1", noFault)
	for _, image := range []string{"v2", "v3"} {
		w.roll(image, "zone-a", "zone-b", "other-a")
		w.eventually(func() error { return contains(w.images("zone-a"), image) })
		cp.StopAPIServer()
		if err := cp.StartAPIServer(context.WithoutCancel(t.Context())); err != nil {
			t.Fatal(err)
		}
		w.arrives(image, noFault)
		w.runs("other-a: " + image + " " + image)
	}
	w.witness.testify()
}

// A set that is edited back by hand in its turn is held again, and rolled.
func TestFaultAHumanOpensZones(t *testing.T) {
	w := newWorld(t)
	w.manage()
	w.beginStory(rollingUpdate)
	w.arrives("v1", noFault)
	w.roll("v2", "zone-a")
	w.eventually(func() error { return contains(w.images("zone-a"), "v2") })
	w.patch(&appsv1.StatefulSet{}, "zone-b", `{"spec":{"updateStrategy":{"rollingUpdate":{"partition":0,"maxUnavailable":2}}}}`)
	w.roll("v2", "zone-b")
	w.arrives("v2", noFault)
}
