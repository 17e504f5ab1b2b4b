package guard_test

import (
	"context"
	"errors"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/spillway-dev/spillway/internal/lab/testenv"
	"github.com/spillway-dev/spillway/internal/zones/guard"
)

// policies installs the admission policies, and waits until the API server heeds them.
func (w *world) policies() {
	w.t.Helper()
	for _, obj := range guard.Declared().Policies {
		if err := w.client.Create(w.t.Context(), obj); err != nil {
			w.t.Fatal(err)
		}
		w.t.Cleanup(func() { _ = w.client.Delete(context.Background(), obj) })
	}
	w.create(deployment("probe", "grafana.com/no-downscale"))
	testenv.Eventually(w.t, func(ctx context.Context) error {
		if err := w.lower(ctx, "probe", client.DryRunAll); err == nil {
			return errors.New("the policy is not heeded yet")
		}
		return nil
	})
}

func deployment(name, label string) *appsv1.Deployment {
	two, labels := int32(2), map[string]string{"app": name}
	d := &appsv1.Deployment{ObjectMeta: metav1.ObjectMeta{Name: name, Labels: map[string]string{label: "true"}}}
	d.Spec = appsv1.DeploymentSpec{Replicas: &two, Selector: &metav1.LabelSelector{MatchLabels: labels}}
	d.Spec.Template.Labels = labels
	d.Spec.Template.Spec.Containers = []corev1.Container{{Name: "c", Image: "x"}}
	return d
}

// lower removes a replica of a Deployment.
func (w *world) lower(ctx context.Context, name string, options ...client.PatchOption) error {
	d := &appsv1.Deployment{}
	w.get(name, d)
	changed, one := d.DeepCopy(), int32(1)
	changed.Spec.Replicas = &one
	return w.client.Patch(ctx, changed, client.MergeFrom(d), options...)
}

// With the manager down the policy holds; a Scale, which does not say what labels its
// object has, is for the webhook.
func TestNoDownscale(t *testing.T) {
	w := newWorld(t)
	w.policies()
	w.create(deployment("web", "spillway.dev/no-downscale"), zone("zone-a", 2, labeled("grafana.com/no-downscale", "true")), zone("zone-b", 2))
	wantError(t, w.lower(t.Context(), "web"), "downscale of deployments/web in "+w.namespace+
		" from 2 to 1 replicas is not allowed because it has the label 'spillway.dev/no-downscale=true'")
	wantError(t, w.patch("zone-a", 0), "downscale of statefulsets/zone-a in "+w.namespace+
		" from 2 to 0 replicas is not allowed because it has the label 'grafana.com/no-downscale=true'")
	wantNo(t, w.patch("zone-a", 3))
	wantNo(t, w.patch("zone-b", 1))
	w.guarded()
	wantError(t, w.scale("zone-a", 0, client.DryRunAll), "downscale of statefulsets/zone-a in "+w.namespace+
		" from 3 to 0 replicas is not allowed because it has the label 'grafana.com/no-downscale=true'")
	wantNo(t, w.scale("zone-b", 0))
	wantNo(t, w.scale("zone-a", 4))
}
