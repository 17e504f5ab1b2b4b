package fleet_test

import (
	"context"
	"encoding/json"
	"hash/fnv"
	"sync"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/watch"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/spillway-dev/spillway/api/fleet/v1alpha1"
)

// follow has f called with what happens to objects of a kind, until the test ends.
func follow(t *testing.T, c client.WithWatch, namespace string, list client.ObjectList, f func(watch.Event)) {
	t.Helper()
	events, err := c.Watch(context.Background(), list, client.InNamespace(namespace))
	if err != nil {
		t.Fatal(err)
	}
	done := make(chan struct{})
	go func() {
		defer close(done)
		for e := range events.ResultChan() {
			f(e)
		}
	}()
	t.Cleanup(func() { events.Stop(); <-done })
}

// bad is a tag with which each cluster fails.
const bad = "bad"

// play answers every assignment but that with success, after a while that is the cluster's own.
func play(t *testing.T, c client.WithWatch, namespace string) {
	t.Helper()
	ctx, cancel := context.WithCancel(context.Background())
	var answers sync.WaitGroup
	turn := make(chan struct{}, atOnce)
	t.Cleanup(func() { cancel(); answers.Wait() })
	follow(t, c, namespace, &v1alpha1.ProxyAssemblageList{}, func(e watch.Event) {
		a, ok := e.Object.(*v1alpha1.ProxyAssemblage)
		if !ok || a.Status.ObservedGeneration == a.Generation || ctx.Err() != nil {
			return
		}
		if len(a.Spec.Assemblage.Syncs) == 0 { // there is nothing to answer, and an answer could refuse the write that assigns something
			return
		}
		answers.Go(func() {
			select {
			case <-ctx.Done():
			case <-time.After(latency(a.Name)):
				turn <- struct{}{}
				_ = c.Status().Update(ctx, answered(a)) // who was faster is answered in turn
				<-turn
			}
		})
	})
}

// latency is between nothing and the slowest, the same for a cluster each time.
func latency(name string) time.Duration {
	h := fnv.New32a()
	_, _ = h.Write([]byte(name)) // it never fails
	return slowest * time.Duration(h.Sum32()%100) / 100
}

// answered is an assemblage of which everything has succeeded, or has failed as it must.
func answered(a *v1alpha1.ProxyAssemblage) *v1alpha1.ProxyAssemblage {
	now := metav1.NowMicro()
	a.Status = v1alpha1.AssemblageStatus{ObservedGeneration: a.Generation}
	for i := range a.Spec.Assemblage.Syncs {
		s := &a.Spec.Assemblage.Syncs[i]
		is := v1alpha1.SyncStatus{
			Name: s.Name, Revision: s.Revision, AssignedAt: s.AssignedAt, State: v1alpha1.StateSucceeded, LastTransitionTime: &now, LastSucceededRevision: s.Revision,
		}
		if s.Source.Git.Version.Tag == bad {
			is.State, is.Message, is.LastSucceededRevision = v1alpha1.StateFailed, "Deployment web is not ready", ""
		}
		a.Status.Syncs = append(a.Status.Syncs, is)
	}
	return a
}

// witness sees what becomes of the objects of a world.
type witness struct {
	mu          sync.Mutex
	module      v1alpha1.ModuleStatus
	moved       map[v1alpha1.Move]bool
	permitted   map[metav1.MicroTime]bool
	largestMade struct{ module, assemblage int }
}

func watched(t *testing.T, c client.WithWatch, namespace string) *witness {
	t.Helper()
	w := &witness{moved: map[v1alpha1.Move]bool{}, permitted: map[metav1.MicroTime]bool{}}
	for _, list := range []client.ObjectList{&v1alpha1.ModuleList{}, &v1alpha1.ProxyAssemblageList{}} {
		follow(t, c, namespace, list, func(e watch.Event) { w.see(t, e) })
	}
	return w
}

func (w *witness) see(t *testing.T, e watch.Event) {
	raw, err := json.Marshal(e.Object)
	if err != nil {
		t.Error(err)
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	switch o := e.Object.(type) {
	case *v1alpha1.Module:
		w.module = o.Status
		w.largestMade.module = max(w.largestMade.module, len(raw))
		for _, m := range o.Status.Moves {
			w.permitted[m.At], w.moved[m] = true, true
		}
	case *v1alpha1.ProxyAssemblage:
		w.largestMade.assemblage = max(w.largestMade.assemblage, len(raw))
	}
}

func (w *witness) status() v1alpha1.ModuleStatus {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.module
}

func (w *witness) largest() (module, assemblage int) {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.largestMade.module, w.largestMade.assemblage
}

// steps are how many writes have permitted something since the last call, and how
// many moves were permitted.
func (w *witness) steps() (permits, moves int) {
	w.mu.Lock()
	defer w.mu.Unlock()
	permits, moves = len(w.permitted), len(w.moved)
	clear(w.permitted)
	clear(w.moved)
	return permits, moves
}
