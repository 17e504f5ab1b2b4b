package hub_test

import (
	"fmt"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"

	"github.com/spillway-dev/spillway/api/fleet/v1alpha1"
)

// A cluster whose Secret is replaced while it is updating keeps its place in the budget, and
// no other cluster is assigned the revision meanwhile.
func TestAClusterThatIsUnknownKeepsItsPlace(t *testing.T) {
	w := oneOfTwoUpdating(t)
	moved := w.movedTo("v2")
	w.remove(&corev1.Secret{}, moved+"-kubeconfig")
	w.waits("Waiting", moved+" is waiting: neither a Cluster nor a labeled Secret "+moved+"-kubeconfig found")
	w.bystander()
	if names := w.movedTo("v2"); names != moved {
		t.Fatalf("%s is unknown, and these are at v2: %s", moved, names)
	}
	w.clusters(moved)
	w.waits("Progressing", moved+" is updating: updating")
	w.player.decree(v1alpha1.StateSucceeded, "v2")
	w.complete("a:v2 b:v2")
}

// While its assemblage exists and does not say that it is ready, it keeps the place; once
// that was deleted the rollout goes on.
func TestAClusterThatIsGoneForGoodIsLetGoWithItsAssemblage(t *testing.T) {
	w := oneOfTwoUpdating(t)
	moved := w.movedTo("v2")
	w.remove(&corev1.Secret{}, moved+"-kubeconfig")
	w.waits("Waiting", "neither a Cluster nor a labeled Secret")
	w.remove(&v1alpha1.ProxyAssemblage{}, moved)
	w.player.decree(v1alpha1.StateSucceeded, "v2")
	other := strings.Trim("ab", moved)
	w.complete(fmt.Sprintf("%s:v2", other))
}

// movedTo are the clusters that are assigned a tag.
func (w *world) movedTo(tag string) string {
	w.t.Helper()
	var names []string
	for word := range strings.FieldsSeq(w.runs()) {
		if name, at, _ := strings.Cut(strings.TrimSuffix(word, "!"), ":"); at == tag {
			names = append(names, name)
		}
	}
	return strings.Join(names, " ")
}

// Failures that maxFailures tolerates take no place in the budget, so that one more can be
// found out, and is answered as the module says.
func TestMoreFailuresThanAreToleratedAreFoundOutAndRolledBack(t *testing.T) {
	w := newWorld(t)
	w.manage()
	w.clusters("a", "b", "c", "d")
	spec := `selector: {}, strategy: Incremental, rollout: {progressDeadlineSeconds: 3600, maxFailures: 2, maxUnreadyClusters: 1, onFailure: Rollback}`
	w.module("v1", spec)
	w.complete("a:v1 b:v1 c:v1 d:v1")
	w.player.decree(v1alpha1.StateFailed, "v2")
	w.module("v2", spec)
	w.waits("RolledBack", "failed and was rolled back")
	w.comes("a:v1 b:v1 c:v1 d:v1")
	w.player.mu.Lock()
	defer w.player.mu.Unlock()
	n := 0
	for _, word := range w.player.story {
		if strings.HasSuffix(word, ":v2") {
			n++
		}
	}
	if n != 3 {
		t.Errorf("%d clusters were assigned what fails, and 2 may fail: %v", n, w.player.story)
	}
}
