package simulate_test

import (
	"context"
	"fmt"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	fleetv1 "github.com/spillway-dev/spillway/api/fleet/v1alpha1"
	"github.com/spillway-dev/spillway/internal/fleet/cluster"
	"github.com/spillway-dev/spillway/internal/fleet/hub"
	"github.com/spillway-dev/spillway/rollout"
)

func (w *scene) fleetOptions() hub.Options {
	return hub.Options{
		Now: time.Now, StatusDelay: 200 * time.Millisecond, Namespaces: []string{w.namespace},
		Assemblages: func(context.Context, ctrl.Manager, *cluster.Directory) error { return nil }, // the player does
	}
}

// play does with ProxyAssemblages what their controller does, for clusters on which
// everything succeeds at once.
func (w *scene) play() {
	w.t.Helper()
	ctx, cancel := context.WithCancel(context.Background())
	events, err := w.client.Watch(ctx, &fleetv1.ProxyAssemblageList{}, client.InNamespace(w.namespace))
	if err != nil {
		w.t.Fatal(err)
	}
	done := make(chan struct{})
	go func() {
		defer close(done)
		for e := range events.ResultChan() {
			if a, ok := e.Object.(*fleetv1.ProxyAssemblage); ok {
				w.succeed(ctx, a)
			}
		}
	}()
	w.t.Cleanup(func() { cancel(); events.Stop(); <-done })
}

// succeed reports that everything has succeeded. What somebody was faster with is seen
// again.
func (w *scene) succeed(ctx context.Context, a *fleetv1.ProxyAssemblage) {
	status := fleetv1.AssemblageStatus{ObservedGeneration: a.Generation}
	for i := range a.Spec.Assemblage.Syncs {
		s := &a.Spec.Assemblage.Syncs[i]
		now := metav1.NowMicro()
		report := fleetv1.SyncStatus{
			Name: s.Name, Revision: s.Revision, AssignedAt: s.AssignedAt, State: fleetv1.StateSucceeded, ObservedGeneration: a.Generation,
			LastTransitionTime: &now, LastSucceededRevision: s.Revision,
		}
		for _, old := range a.Status.Syncs {
			if old.Name == s.Name && old.Revision == s.Revision && old.AssignedAt.Equal(s.AssignedAt) {
				report.LastTransitionTime = old.LastTransitionTime
			}
		}
		status.Syncs = append(status.Syncs, report)
	}
	if equality.Semantic.DeepEqual(status, a.Status) {
		return
	}
	a.Status = status
	_ = w.client.Status().Update(ctx, a)
}

func (w *scene) fleetWaits(ctx context.Context) ([]string, error) {
	modules, err := hub.Status(ctx, w.client, hub.Options{Now: time.Now}, w.namespace)
	if err != nil {
		return nil, err
	}
	var waits []string
	for i := range modules {
		if e := &modules[i]; e.Phase != string(rollout.PhaseComplete) {
			waits = append(waits, fmt.Sprintf("%s/%s %s", strings.ToLower(e.Kind), e.Name, e.Reason))
		}
	}
	return waits, nil
}
