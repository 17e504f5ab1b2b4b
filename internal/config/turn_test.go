package config

import (
	"slices"
	"strings"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/spillway-dev/spillway/internal/config/workload"
)

// The config of a namespace is read in its turn, however much of others must be read and
// whatever priority they give themselves.
func TestNamespacesTakeTurns(t *testing.T) {
	now := time.Now()
	due := func(namespace, name string, priority int, since time.Duration) *entry {
		e := &entry{workload: workload.Workload{
			Name: workload.Name{Kind: "Deployment", Namespace: namespace, Name: name}, Settings: workload.Settings{Priority: priority},
			Object: &appsv1.Deployment{ObjectMeta: metav1.ObjectMeta{CreationTimestamp: metav1.NewTime(now.Add(-time.Hour))}},
		}}
		e.changes.pending.First = now.Add(-since)
		return e
	}
	entries := []*entry{
		due("greedy", "a", 1<<30, time.Second), due("greedy", "b", 1<<30, time.Minute), due("greedy", "c", 1<<31, 0),
		due("shop", "x", 0, 2*time.Second), due("shop", "y", 5, time.Second), due("shop", "z", 0, time.Minute),
	}
	entries[5].changes.pending.First = time.Time{} // it has no hash yet: due since it exists
	var got []string
	for _, e := range inTurn(slices.Clone(entries)) {
		got = append(got, e.workload.Name.Name)
	}
	if want := "y c z b x a"; strings.Join(got, " ") != want {
		t.Errorf("the order is %v, want %s", got, want)
	}
}
