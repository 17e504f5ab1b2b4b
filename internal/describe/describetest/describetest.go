// Package describetest has what the tests of several packages of describe need.
package describetest

import (
	"fmt"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/spillway-dev/spillway/internal/config"
	"github.com/spillway-dev/spillway/internal/kube"
	"github.com/spillway-dev/spillway/internal/lab/testenv"
	"github.com/spillway-dev/spillway/internal/lab/testenv/fault"
)

// ClientAs is a client of which the requests are counted, for a user if one is named.
func ClientAs(t *testing.T, user string) (client.Client, *fault.Injector) {
	t.Helper()
	scheme, err := kube.NewScheme()
	if err != nil {
		t.Fatal(err)
	}
	requests, cfg := fault.New(), rest.CopyConfig(testenv.Shared().Config())
	cfg.QPS, cfg.Impersonate.UserName = -1, user
	c, err := client.New(requests.Wrap(cfg), client.Options{Scheme: scheme})
	if err != nil {
		t.Fatal(err)
	}
	return c, requests
}

// SomeConfig makes n ConfigMaps, every other of them with a label.
func SomeConfig(t *testing.T, c client.Client, n int) (namespace string) {
	t.Helper()
	namespace = testenv.Namespace(t)
	for i := range n {
		obj := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: fmt.Sprintf("c%d", i)}, Data: map[string]string{"k": "v"}}
		if i%2 == 0 {
			obj.Labels = map[string]string{"even": "true"}
		}
		if err := c.Create(t.Context(), obj); err != nil { //nolint:forbidigo // as a user does
			t.Fatal(err)
		}
	}
	return namespace
}

// Pass makes one pass of the config ring, as a manager does, so that what it decides is recorded.
func Pass(t *testing.T, c client.Client, o config.Options) {
	t.Helper()
	testenv.InstallKinds(t, c, "../../../charts/spillway/generated/config/*_*.yaml")
	if _, err := config.NewOffline(kube.Offline{Client: c}, o).Reconcile(t.Context(), reconcile.Request{}); err != nil {
		t.Fatal(err)
	}
}

// Tracked is a Deployment whose config is tracked, and which uses Secret db.
func Tracked(namespace, name string) *appsv1.Deployment {
	labels := map[string]string{"app": name}
	return &appsv1.Deployment{
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name, Annotations: map[string]string{"spillway.dev/update-on-config-change": "true"}},
		Spec: appsv1.DeploymentSpec{
			Selector: &metav1.LabelSelector{MatchLabels: labels},
			Template: corev1.PodTemplateSpec{ObjectMeta: metav1.ObjectMeta{Labels: labels}, Spec: corev1.PodSpec{Containers: []corev1.Container{{
				Name: "c", Image: "x", EnvFrom: []corev1.EnvFromSource{{SecretRef: &corev1.SecretEnvSource{LocalObjectReference: corev1.LocalObjectReference{Name: "db"}}}},
			}}}},
		},
	}
}
