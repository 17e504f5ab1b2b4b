package proxy_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	"github.com/spillway-dev/spillway/api/fleet/v1alpha1"
	"github.com/spillway-dev/spillway/internal/fleet/hub"
	"github.com/spillway-dev/spillway/internal/fleet/hub/model"
	"github.com/spillway-dev/spillway/internal/lab/testenv"
)

// joinBy makes a workload cluster known on the hub by a line, and runs Spillway there.
func (w *world) joinBy(i int) *testenv.Line {
	w.Helper()
	secret, l := testenv.KubeconfigByLine(w.T, w.namespace, fmt.Sprintf("c%d", i), testenv.Workload(i))
	secret.Labels = map[string]string{"spillway.dev/cluster": "true"}
	w.create(w.hub, secret)
	w.serve(i)
	return l
}

// silent is a module of which nothing becomes ready, so that its deadline passes.
const silent = `
selector: {}
strategy: Incremental
rollout: {progressDeadlineSeconds: 45}
template:
  spec: {sync: {source: {git: {url: %q, version: {tag: slow}}}, timeout: 10m}}
`

// slow publishes a Deployment that no controller makes ready.
func (w *world) slow() {
	w.Helper()
	w.publishText("slow", fmt.Sprintf("{apiVersion: apps/v1, kind: Deployment, metadata: {name: slow, namespace: %s}, spec: {selector: {matchLabels: {a: b}}, "+
		"template: {metadata: {labels: {a: b}}, spec: {containers: [{name: c, image: c}]}}}}", w.namespace))
}

// A cluster that is lost while it is updating, without a connection being closed or refused,
// is noticed, and the module says since when it does not answer. That is no evidence against the revision.
func TestAClusterThatFallsSilentIsNoticed(t *testing.T) {
	w := newWorld(t)
	w.manage()
	l := w.joinBy(2)
	w.slow()
	m := &v1alpha1.Module{ObjectMeta: metav1.ObjectMeta{Namespace: w.namespace, Name: "shop"}}
	w.write(m, func() {
		if err := yaml.UnmarshalStrict(fmt.Appendf(nil, silent, w.url), &m.Spec); err != nil {
			w.Fatal(err)
		}
	})
	testenv.Eventually(t, func(ctx context.Context) error { return w.hub.Get(ctx, w.key("c2"), proxied()) })
	w.becomes(proxied(), "c2", w.target(), v1alpha1.StateUpdating, "Flux is applying")
	l.Cut()
	said, explained := "", ""
	testenv.Eventually(t, func(ctx context.Context) error {
		if err := w.hub.Get(ctx, w.key("shop"), m); err != nil {
			return err
		}
		if ready := m.Status.Conditions[0]; ready.Reason == "ClusterUnreachable" {
			e, err := hub.ExplainCluster(ctx, w.hub, model.KindModule, w.key("shop"), "c2")
			if err != nil {
				return err
			}
			said, explained = ready.Message, string(e.Reason)+": "+e.Sentence
			return nil
		}
		return errors.New(m.Status.Phase + ": " + m.Status.WaitingFor)
	})
	if want := "c2 is up to date but not reachable: cluster c2 does not answer since "; !strings.HasPrefix(said, want) || explained != "ClusterUnreachable: "+said {
		t.Errorf("it said %q, explained as %q", said, explained)
	}
	testenv.Eventually(t, func(ctx context.Context) error {
		events := &corev1.EventList{}
		if err := w.hub.List(ctx, events, client.InNamespace(w.namespace)); err != nil {
			return err
		}
		for i := range events.Items {
			if e := &events.Items[i]; e.Reason == "ClusterUnreachable" && e.Type == corev1.EventTypeWarning && e.InvolvedObject.Kind == "Module" && e.Message == said {
				return nil
			}
		}
		return errors.New("no Event says so")
	})
}

// target is the revision that the module is to get to.
func (w *world) target() string {
	w.Helper()
	m := &v1alpha1.Module{}
	testenv.Eventually(w.T, func(ctx context.Context) error { // clusters are looked at before there is a revision
		if err := w.hub.Get(ctx, w.key("shop"), m); err != nil {
			return err
		}
		if m.Status.TargetRevision == "" {
			return errors.New("there is no revision yet")
		}
		return nil
	})
	return m.Status.TargetRevision
}

// So is one that the Flux of the hub applies to, before Flux has given up.
func TestAClusterThatFluxAppliesToFallsSilent(t *testing.T) {
	w := newWorld(t)
	w.manage()
	l := w.joinBy(2)
	w.create(w.on(2), namespaceOf(w))
	w.slow()
	w.bootstrap("c2", w.sync("flux", "slow", "timeout: 10m"))
	w.becomes(remote(), "c2", "flux-slow", v1alpha1.StateUpdating, "Flux is applying")
	l.Cut()
	w.becomes(remote(), "c2", "flux-slow", v1alpha1.StateUnreachable, "the cluster does not answer: no answer in time")
}
