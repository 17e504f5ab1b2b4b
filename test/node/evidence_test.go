//go:build node

package node_test

import (
	"errors"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// A bad Secret makes the first workload crash, and an undo of that one does not let the others
// have it. A good one gets to all.
func TestNoUndoReleasesABadSecret(t *testing.T) {
	w := newWorld(t)
	w.run(staged, byEnv, "", five)
	before, same := w.deployment("app1"), w.untouched(five[1:]...)
	w.secret("bad")
	w.died("app1", "bad")
	w.stopped("app1", five[1:]...)
	w.undo("app1", before)
	w.reads("good", "app1") // its old Pod was never replaced
	w.stopped("app1", five[1:]...)
	same()
	w.goes("good2", five...)
}

// One Pod of each workload is not ready when the value changes. New Pods that crash say that the
// value is bad all the same.
func TestPodsAreNotReadyBefore(t *testing.T) {
	w := newWorld(t)
	w.run(staged, byEnv, "", three, "replicas: 2")
	for _, name := range three {
		w.tell(w.live(name)[0].Name, "/sick")
	}
	w.eventually(func() error {
		for _, name := range three {
			if err := want(1, w.deployment(name).Status.ReadyReplicas); err != nil {
				return err
			}
		}
		return nil
	})
	same := w.untouched(three[1:]...)
	w.secret("bad")
	w.stopped("app1", three[1:]...)
	same()
	w.goes("good2", three...)
}

// The first has no Pods, so that it cannot tell: the next one is the first to try.
func TestWithoutPodsNothingIsShown(t *testing.T) {
	w := newWorld(t)
	w.run(staged, byEnv, "", three)
	w.patch("app1", `{"metadata":{"annotations":{"spillway.dev/priority":"9"}},"spec":{"replicas":0}}`)
	w.reads("good", three...)
	w.barrier.Wait(t)
	same := w.untouched("app3")
	w.secret("bad")
	w.stopped("app2", "app3")
	same()
	w.goes("good2", three...)
}

// Another client rolls a workload, and admission writes the hash of the bad value: its crash keeps
// that from the others.
func TestTheRollOfAnotherClientIsJudged(t *testing.T) {
	w := newWorld(t)
	w.policy("pause: {by: alice}, " + staged)
	w.secret("good")
	w.admit()
	for _, name := range three {
		w.apply(app(name, byEnv, ""))
	}
	w.reads("good", three...)
	w.secret("bad")
	w.says("app1", "Paused", "alice")
	same := w.untouched("app1", "app3")
	w.patch("app2", `{"spec":{"template":{"metadata":{"annotations":{"kubectl.kubernetes.io/restartedAt":"now"}}}}}`)
	w.died("app2", "bad")
	w.stopped("app2", "app1", "app3")
	w.policy(staged)
	w.stopped("app2", "app1", "app3")
	same()
}

// A quota leaves no room for the new Pod of the first workload. That says nothing of the value,
// which gets to the others, and to it once there is room.
func TestThereIsNoRoom(t *testing.T) {
	w := newWorld(t)
	w.run(staged, byEnv, "", three[1:])
	w.apply(app("app1", byEnv+"\n  resources: {requests: {cpu: 1m}}", ""))
	w.reads("good", three...)
	w.complete()
	w.apply("apiVersion: v1\nkind: ResourceQuota\nmetadata: {name: full}\nspec: {scopes: [NotBestEffort], hard: {pods: 1}}")
	w.eventually(func() error {
		q := &corev1.ResourceQuota{}
		if err := w.get(q, "full"); err != nil {
			return err
		}
		return want("1", q.Status.Used.Pods().String())
	})
	w.goes("good2", three[1:]...)
	w.says("app1", "Progressing", "app1 is updating: no room for new Pods: exceeded quota: full")
	if err := w.client.Delete(t.Context(), &corev1.ResourceQuota{ObjectMeta: metav1.ObjectMeta{Namespace: w.namespace, Name: "full"}}); err != nil {
		t.Fatal(err)
	}
	w.reads("good2", three...)
}

// However the first workload fails, the others keep what they have.
func TestHowTheFirstFails(t *testing.T) {
	for name, test := range map[string]struct{ value, more string }{
		"crash": {"bad", ""},
		// It was ready, and would have been the evidence without a soak.
		"late crash":    {"late", ""},
		"failing probe": {"unready", "progressDeadlineSeconds: 5"},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			w.run(staged, byEnv, "", three, test.more)
			same := w.untouched(three[1:]...)
			w.secret(test.value)
			w.stopped("app1", three[1:]...)
			same()
			w.goes("good2", three...)
		})
	}
}

// A key is removed that containers need. Nothing is rolled, but a Pod that is evicted cannot start:
// CreateContainerConfigError. That ends when the key is back.
func TestAKeyIsMissing(t *testing.T) {
	w := newWorld(t)
	w.run(staged, byEnv, "", three)
	same := w.untouched(three[1:]...)
	s := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: w.namespace, Name: "db"}}
	if err := w.get(s, "db"); err != nil {
		t.Fatal(err)
	}
	s.Data = map[string][]byte{"other": []byte("x")}
	if err := w.client.Update(t.Context(), s); err != nil {
		t.Fatal(err)
	}
	w.eventually(func() error {
		if e := w.explain("app1"); !strings.Contains(e.Sentence, "Secret db has no key p") {
			return errors.New(e.Sentence)
		}
		return nil
	})
	w.evict("app1")
	w.eventually(func() error {
		for _, p := range w.live("app1") {
			if s := p.Status.ContainerStatuses; len(s) > 0 && s[0].State.Waiting != nil && s[0].State.Waiting.Reason == "CreateContainerConfigError" {
				return nil
			}
		}
		return errors.New("no Pod of app1 fails")
	})
	w.barrier.Wait(t)
	same()
	w.secret("good")
	w.reads("good", three...)
}
