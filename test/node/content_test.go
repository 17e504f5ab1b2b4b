//go:build node

package node_test

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// pinned is a Deployment that keeps the config of its revisions.
func pinned(name, use, volumes string) string {
	return strings.Replace(app(name, use, volumes), "annotations: {", "annotations: {spillway.dev/pin-config: \"true\", ", 1)
}

// runPinned is [world.run] with pins.
func (w *world) runPinned(policy, use, volumes string, names []string) {
	w.t.Helper()
	w.pinnable()
	w.policy(policy)
	w.secret("good")
	w.manage()
	for _, name := range names {
		w.apply(pinned(name, use, volumes))
	}
	w.eventually(func() error {
		for _, name := range names {
			if w.deployment(name).Spec.Template.Annotations[native+"pins"] == "" {
				return fmt.Errorf("%s has no pins", name)
			}
		}
		return nil
	})
	w.reads("good", names...)
	w.complete()
}

// A Secret that is mounted changes in all running Pods, also of the workloads that a release keeps
// from being rolled, and a Pod that is evicted starts with the bad content.
func TestMountedContentChangesEverywhere(t *testing.T) {
	w := newWorld(t)
	w.run(staged, byMount, volume, three)
	same := w.untouched(three[1:]...)
	w.secret("bad")
	w.stopped("app1", three[1:]...)
	same()
	w.eventually(func() error { return errors.Join(w.answers("app2", "/now", "bad"), w.answers("app3", "/now", "bad")) })
	w.reads("good", three[1:]...) // what they had read at their start
	w.evict("app2")
	w.died("app2", "bad")
}

// With pins nothing of that happens.
func TestPinnedContentStays(t *testing.T) {
	w := newWorld(t)
	w.runPinned(staged, byMount, volume, three)
	w.secret("bad")
	w.died("app1", "bad")
	w.stopped("app1", three[1:]...)
	before := fmt.Sprint(w.uids("app2"))
	w.evict("app2")
	w.eventually(func() error {
		if now := w.uids("app2"); len(now) != 1 || fmt.Sprint(now) == before {
			return errors.New("the evicted Pod was not replaced")
		}
		return nil
	})
	w.reads("good", three[1:]...)
	for _, name := range three[1:] {
		if err := w.answers(name, "/now", "good"); err != nil {
			t.Error(err)
		}
	}
}

// All Pods are deleted after a change has failed that is returned: all come back as they were.
func TestAllPodsAreDeletedAfterAReturn(t *testing.T) {
	for name, use := range map[string][2]string{"env": {byEnv, ""}, "mounted": {byMount, volume}} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			w.runPinned("onFailure: Rollback, pinConfig: true, "+staged, use[0], use[1], three)
			w.secret("bad")
			w.says("app1", "ConfigRolledBack", "the previous config was restored")
			w.stopped("app1", three[1:]...)
			before := map[string]string{}
			for _, name := range three {
				before[name] = fmt.Sprint(w.uids(name))
			}
			if err := w.client.DeleteAllOf(t.Context(), &corev1.Pod{}, client.InNamespace(w.namespace)); err != nil {
				t.Fatal(err)
			}
			w.eventually(func() error {
				for _, name := range three {
					if now := w.uids(name); len(now) != 1 || fmt.Sprint(now) == before[name] {
						return fmt.Errorf("%s has the Pods %v", name, now)
					}
				}
				return nil
			})
			w.reads("good", three...)
		})
	}
}

// Whichever way a container uses a Secret, a Pod that is rolled has the new content, and bad content
// stops after the first.
func TestWaysToUseASecret(t *testing.T) {
	for name, use := range map[string][2]string{
		"envFrom": {byEnvFrom, ""}, "subPath": {bySubPath, volume}, "projected": {byMount, projected},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			names := three[:2]
			w.run(staged, use[0], use[1], names)
			w.goes("good2", names...)
			same := w.untouched("app2")
			w.secret("bad")
			w.died("app1", "bad")
			w.stopped("app1", "app2")
			same()
			if name == "subPath" { // what is mounted so never changes in a container that runs
				if err := w.answers("app2", "/now", "good2"); err != nil {
					t.Error(err)
				}
			}
		})
	}
}

// An immutable Secret cannot be changed. A workload that is pointed at the next one has its content.
func TestAnImmutableSecret(t *testing.T) {
	w := newWorld(t)
	w.run(staged, byEnv, "", three[:1])
	immutable := "apiVersion: v1\nkind: Secret\nmetadata: {name: db-2}\nimmutable: true\nstringData: {p: %s}"
	w.apply(fmt.Sprintf(immutable, "good2"), app("app1", strings.ReplaceAll(byEnv, "name: db,", "name: db-2,"), ""))
	w.reads("good2", "app1")
	s := &corev1.Secret{}
	if err := w.get(s, "db-2"); err != nil {
		t.Fatal(err)
	}
	s.Data["p"] = []byte("bad")
	if err := w.client.Update(t.Context(), s); err == nil {
		t.Error("the Secret was changed")
	}
}

// The node is drained in the middle of a release: all Pods come back with the content of their
// revision, no workload fails, and the release goes on.
func TestADrainInTheMiddle(t *testing.T) {
	w := newWorld(t)
	w.runPinned(staged, byEnv, "", three)
	w.secret("good2")
	w.reads("good2", "app1")
	w.says("app2", "Soaking", "soaking until")
	before := map[string]string{}
	for _, name := range three {
		before[name] = fmt.Sprint(w.uids(name))
	}
	w.evict(three...)
	w.eventually(func() error {
		for _, name := range three {
			if now := w.uids(name); len(now) != 1 || fmt.Sprint(now) == before[name] {
				return fmt.Errorf("%s has the Pods %v", name, now)
			}
		}
		return nil
	})
	w.reads("good2", "app1")
	w.reads("good", three[1:]...)
	w.step()
	w.reads("good2", three...)
	w.complete()
}

// While a release is stopped, a container of another workload is restarted by its liveness probe. It
// reads variables again, and so the bad value: with pins it does not.
func TestARestartDuringAStop(t *testing.T) {
	restart := func(w *world) {
		pod := w.live("app2")[0].Name
		w.tell(pod, "/fail")
		w.eventually(func() error {
			p := &corev1.Pod{}
			if err := w.get(p, pod); err != nil {
				return err
			}
			return want(true, len(p.Status.ContainerStatuses) > 0 && p.Status.ContainerStatuses[0].RestartCount > 0)
		})
	}
	t.Run("without pins", func(t *testing.T) {
		w := newWorld(t)
		w.run(staged, byEnv, "", three[:2])
		same := w.untouched("app2")
		w.secret("bad")
		w.stopped("app1", "app2")
		restart(w)
		w.died("app2", "bad")
		same()
	})
	t.Run("with pins", func(t *testing.T) {
		w := newWorld(t)
		w.runPinned(staged, byEnv, "", three[:2])
		w.secret("bad")
		w.stopped("app1", "app2")
		restart(w)
		w.reads("good", "app2")
	})
}
