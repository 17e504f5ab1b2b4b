package manager_test

import (
	"context"
	"fmt"
	"log/slog"
	"strings"
	"testing"
	"time"

	"github.com/go-logr/logr"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/spillway-dev/spillway/api/spillway/v1alpha1"
	"github.com/spillway-dev/spillway/internal/lab/testenv"
	"github.com/spillway-dev/spillway/internal/manager"
	"github.com/spillway-dev/spillway/internal/manifests"
	"github.com/spillway-dev/spillway/internal/zones"
)

// Without the kind RolloutGroup the manager runs, and the other rings with it. The
// zones ring says what is missing, and starts once it is installed. So this test comes before
// those that install it: theirs are files that come later.
func TestTheZonesRingWaitsForItsKind(t *testing.T) {
	c, ns, log := newClient(t, testenv.Shared()), testenv.Namespace(t), &testenv.Buffer{}
	o := options(ns)
	o.LeaderElect, o.Rings, o.Zones = false, []string{manager.RingConfig, manager.RingZones}, zones.Options{Now: time.Now}
	o.Log = logr.FromSlogHandler(slog.NewTextHandler(log, nil))
	stop := run(t, testenv.Shared(), o)
	testenv.Eventually(t, func(context.Context) error {
		if said := log.String(); !strings.Contains(said, "the kind RolloutGroup is not installed; apply what") {
			return fmt.Errorf("it says %s", said)
		}
		return nil
	})
	d := web()
	d.Namespace = ns
	cm := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: ns, Name: "app"}}
	for _, obj := range []client.Object{cm, d, set(ns)} {
		if err := c.Create(t.Context(), obj); err != nil {
			t.Fatal(err)
		}
	}
	testenv.Eventually(t, func(ctx context.Context) error { // the config ring runs
		if err := c.Get(ctx, client.ObjectKeyFromObject(d), d); err != nil || d.Spec.Template.Annotations["spillway.dev/config-hash"] == "" {
			return fmt.Errorf("no hash: %w", err)
		}
		return nil
	})
	installZones(t, c)
	testenv.Eventually(t, func(ctx context.Context) error {
		group := &unstructured.Unstructured{}
		group.SetGroupVersionKind(v1alpha1.GroupVersion.WithKind("RolloutGroup"))
		if err := c.Get(ctx, client.ObjectKey{Namespace: ns, Name: "ingester"}, group); err != nil {
			return err
		}
		if phase, _, _ := unstructured.NestedString(group.Object, "status", "phase"); phase != "Complete" {
			return fmt.Errorf("its phase is %q", phase)
		}
		return nil
	})
	if err := stop(); err != nil {
		t.Error(err)
	}
}

// set is a zone without replicas.
func set(namespace string) *appsv1.StatefulSet {
	labels := map[string]string{"app": "zone-a"}
	s := &appsv1.StatefulSet{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "zone-a", Labels: map[string]string{"rollout-group": "ingester"}}}
	s.Spec.Replicas, s.Spec.ServiceName, s.Spec.Selector = new(int32), "x", &metav1.LabelSelector{MatchLabels: labels}
	s.Spec.Template.Labels = labels
	s.Spec.Template.Spec.Containers = []corev1.Container{{Name: "c", Image: "x"}}
	return s
}

// installZones applies the kinds of the zones ring as the manifests have them.
func installZones(t *testing.T, c client.Client) {
	t.Helper()
	objects, err := manifests.KindsOf([]string{manager.RingZones})
	if err != nil {
		t.Fatal(err)
	}
	for _, crd := range objects {
		if err := c.Apply(t.Context(), client.ApplyConfigurationFromUnstructured(crd), client.FieldOwner("user"), client.ForceOwnership); err != nil {
			t.Fatal(err)
		}
	}
}
