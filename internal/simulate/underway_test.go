package simulate_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/spillway-dev/spillway/internal/lab/testenv"
)

// From the middle of a rollout, what is simulated is what then happens: Pods that run
// and are not ready yet become ready, and those that crash do not.
func TestARolloutUnderWayGoesOnAsSimulated(t *testing.T) {
	installKinds(t, newClient(t))
	t.Parallel()
	w := newScene(t, "under-way", rolling(1))
	w.apply(read(t, w.scenario, "running.yaml"))
	testenv.Eventually(t, func(ctx context.Context) error { return errors.Join(w.bringUp(ctx), w.restsAs(ctx, nil)) })
	w.apply(read(t, w.scenario, "begun.yaml"))
	testenv.Eventually(t, w.isUnderWay)
	change := read(t, w.scenario, "change.yaml")
	said := w.simulatePresent(change)
	if len(said.Steps) != 4 || !said.Settled {
		t.Errorf("it is settled: %t, after %q; stuck is %v", said.Settled, lines(said.Steps), said.Stuck)
	}
	if len(said.Stuck) != 1 || said.Stuck[0].Object != "deployment/broken" {
		t.Errorf("what crashes is not all that is stuck: %v", said.Stuck)
	}
	w.witness()
	w.apply(change)
	testenv.Eventually(t, func(ctx context.Context) error { return errors.Join(w.bringUp(ctx), w.restsAs(ctx, said.Stuck)) })
	testenv.Eventually(t, func(context.Context) error { return same(said.Steps, w.steps()) })
}

// unready are the Pods that run and are not ready; those that crash, if that is asked for.
func (w *scene) unready(ctx context.Context, behavior string) ([]corev1.Pod, error) {
	pods := &corev1.PodList{}
	if err := w.client.List(ctx, pods, client.InNamespace(w.namespace)); err != nil {
		return nil, err
	}
	return slices.DeleteFunc(pods.Items, func(p corev1.Pod) bool {
		return p.Annotations["testenv.spillway.dev/behavior"] != behavior || p.Status.Phase != corev1.PodRunning ||
			p.DeletionTimestamp != nil || slices.ContainsFunc(p.Status.Conditions, isReadyCondition)
	}), nil
}

func isReadyCondition(c corev1.PodCondition) bool {
	return c.Type == corev1.PodReady && c.Status == corev1.ConditionTrue
}

// bringUp makes the Pods ready that kwok leaves running.
func (w *scene) bringUp(ctx context.Context) error {
	pods, err := w.unready(ctx, "never-ready")
	if err != nil {
		return err
	}
	for i := range pods {
		p := &pods[i]
		for j := range p.Status.Conditions {
			p.Status.Conditions[j].Status, p.Status.Conditions[j].LastTransitionTime = corev1.ConditionTrue, metav1.Now()
		}
		if err := w.client.Status().Update(ctx, p); err != nil {
			return err
		}
	}
	return nil
}

// isUnderWay is nil once a Pod of each ring is being replaced, and another one crashes.
func (w *scene) isUnderWay(ctx context.Context) error {
	coming, err := w.unready(ctx, "never-ready")
	if err != nil {
		return err
	}
	crashing, err := w.unready(ctx, "crash")
	if len(coming) != 2 || len(crashing) != 1 {
		return fmt.Errorf("%d Pods are being replaced, %d crash", len(coming), len(crashing))
	}
	return err
}
