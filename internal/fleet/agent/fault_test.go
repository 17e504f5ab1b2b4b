package agent_test

import (
	"fmt"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/spillway-dev/spillway/api/fleet/v1alpha1"
	"github.com/spillway-dev/spillway/internal/lab/testenv/fault"
)

// tell tells the life of an assemblage: two syncs, one of them bound; another revision
// of the one, the end of the other; and the end of all. The result is checked after
// each chapter. Meanwhile is called before each chapter.
func tell(w *world, meanwhile func()) {
	w.Helper()
	w.publish("v1")
	w.publish("v2")
	w.publishFiles("other", map[string]string{"cm.yaml": w.configMap("other", "{version: other}")})
	w.create(&corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: w.namespace, Name: "region"}, Data: map[string]string{"name": "eu"}})
	bound := "bindings: [{name: A, objectFieldRef: {kind: ConfigMap, name: region, fieldPath: /data/name}}]\npackage: {kustomize: {substitute: {region: $(A)}}}"
	meanwhile()
	w.assign("c1", w.sync("shop", "v1", bound), w.sync("other", "other", ""))
	meanwhile()
	w.becomes("c1", "shop", "shop-v1", v1alpha1.StateSucceeded, "")
	w.becomes("c1", "other", "other-other", v1alpha1.StateSucceeded, "")
	w.data("app", map[string]string{"version": "v1", "region": "eu"})
	w.assign("c1", w.sync("shop", "v2", bound))
	meanwhile()
	w.becomes("c1", "shop", "shop-v2", v1alpha1.StateSucceeded, "")
	w.data("app", map[string]string{"version": "v2", "region": "eu"})
	w.data("other", nil)
	w.has(1, 1)
	w.remove(&v1alpha1.Assemblage{}, "c1")
	meanwhile()
	w.gone(&v1alpha1.Assemblage{}, "c1")
	w.data("app", nil)
	w.has(0, 0)
}

// TestFaultTheManagerStops tells the story once without a fault, and then stops the manager before
// and after the first, the middle and the last write of it, and starts another. Each other write
// is tried in memory.
func TestFaultTheManagerStops(t *testing.T) {
	var writes []fault.Request
	t.Run("without a fault", func(t *testing.T) {
		w := newQuietWorld(t)
		w.manage()
		tell(w, func() {})
		writes = w.faults.Writes()
	})
	for _, r := range writes {
		t.Log(r)
	}
	for _, n := range []int{1, len(writes) / 2, len(writes)} {
		for _, when := range []fault.When{fault.Before, fault.After} {
			t.Run(fmt.Sprintf("%s write %d", when, n), func(t *testing.T) {
				w, faults := newWorld(t), fault.New()
				faults.StopAt(n, when)
				w.manageWith(faults)
				go w.succeed(faults)
				tell(w, func() {})
			})
		}
	}
}

// succeed starts another manager once the first has stopped.
func (w *world) succeed(first *fault.Injector) {
	stop := w.stop
	select {
	case <-first.Stopped():
		stop()
		w.manage()
	case <-w.Context().Done():
	}
}

// TestFaultTwoManagersParallel has two managers that know nothing of each other.
func TestFaultTwoManagersParallel(t *testing.T) {
	w := newWorld(t)
	w.manage()
	w.manage()
	tell(w, func() {})
}

// TestFaultConflicts refuses every third write.
func TestFaultConflicts(t *testing.T) {
	w, faults, n := newWorld(t), fault.New(), 0
	faults.Conflict(func(fault.Request) bool { n++; return n%3 == 1 })
	w.manageWith(faults)
	tell(w, func() {})
}

// TestFaultTheConnectionIsCut cuts the connection in the middle of each chapter.
func TestFaultTheConnectionIsCut(t *testing.T) {
	w := newWorld(t)
	w.manage()
	tell(w, func() {
		w.faults.Cut()
		w.faults.Restore()
	})
}
