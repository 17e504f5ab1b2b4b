package bench_test

import (
	"context"
	"fmt"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/go-logr/logr"
	"golang.org/x/sync/errgroup"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/spillway-dev/spillway/internal/config"
	"github.com/spillway-dev/spillway/internal/config/decision"
	"github.com/spillway-dev/spillway/internal/lab/testenv"
	"github.com/spillway-dev/spillway/internal/manager"
)

const (
	tracked     = "spillway.dev/update-on-config-change"
	hash        = "spillway.dev/config-hash"
	concurrency = 16 // as many as the manager writes at a time
)

func TestMain(m *testing.M) {
	if os.Getenv(childVariable) != "" {
		os.Exit(child())
	}
	// No nodes: the workloads have no replicas, so that the controllers of
	// Kubernetes cost as little as they can.
	testenv.Main(m, testenv.Options{})
}

func options(namespace string) manager.Options {
	o := manager.Options{
		Rings: []string{manager.RingConfig}, Config: config.Options{Now: time.Now, Options: decision.Options{RecordEvery: decision.RecordEvery}}, MetricsAddress: "0", ProbeAddress: "0",
		Log: logr.Discard(),
	}
	if namespace != "" {
		o.Namespaces = []string{namespace}
	}
	return o
}

// manage runs a manager until the end of the test.
func manage(t *testing.T, cfg *rest.Config, o manager.Options) {
	t.Helper()
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() { done <- manager.Run(ctx, cfg, o) }()
	t.Cleanup(func() {
		cancel()
		if err := <-done; err != nil {
			t.Error(err)
		}
	})
}

func newClient(t testing.TB) client.Client {
	t.Helper()
	c, err := client.New(testenv.Shared().Config(), client.Options{})
	if err != nil {
		t.Fatal(err)
	}
	return c
}

// deployment has no replicas and uses one object.
func deployment(namespace, name string, from corev1.EnvFromSource, annotations map[string]string) *appsv1.Deployment {
	labels := map[string]string{"app": name}
	return &appsv1.Deployment{
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name, Annotations: annotations},
		Spec: appsv1.DeploymentSpec{
			Replicas: new(int32), Selector: &metav1.LabelSelector{MatchLabels: labels},
			Template: corev1.PodTemplateSpec{
				ObjectMeta: metav1.ObjectMeta{Labels: labels},
				Spec: corev1.PodSpec{Containers: []corev1.Container{{
					Name: "c", Image: "x", EnvFrom: []corev1.EnvFromSource{from},
				}}},
			},
		},
	}
}

func useConfigMap(name string) corev1.EnvFromSource {
	return corev1.EnvFromSource{ConfigMapRef: &corev1.ConfigMapEnvSource{LocalObjectReference: corev1.LocalObjectReference{Name: name}}}
}

func useSecret(name string) corev1.EnvFromSource {
	return corev1.EnvFromSource{SecretRef: &corev1.SecretEnvSource{LocalObjectReference: corev1.LocalObjectReference{Name: name}}}
}

// each calls f for 0 to n-1, several at a time.
func each(t testing.TB, n int, f func(i int) error) {
	t.Helper()
	var group errgroup.Group
	group.SetLimit(concurrency)
	for i := range n {
		group.Go(func() error { return f(i) })
	}
	if err := group.Wait(); err != nil {
		t.Fatal(err)
	}
}

func name(prefix string, i int) string { return fmt.Sprintf("%s-%04d", prefix, i) }

func edit(t testing.TB, c client.Client, namespace, configMap, value string) {
	t.Helper()
	cm := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: configMap}}
	patch := fmt.Sprintf(`{"data":{"k":%q}}`, value)
	if err := c.Patch(t.Context(), cm, client.RawPatch(types.MergePatchType, []byte(patch))); err != nil {
		t.Fatal(err)
	}
}

// atRest waits until the controllers of Kubernetes have seen every Deployment,
// and returns them.
func atRest(t testing.TB, c client.Client, namespace string) []appsv1.Deployment {
	t.Helper()
	list := &appsv1.DeploymentList{}
	testenv.Eventually(t, func(ctx context.Context) error {
		if err := c.List(ctx, list, client.InNamespace(namespace)); err != nil {
			return err
		}
		for i := range list.Items {
			if d := &list.Items[i]; d.Status.ObservedGeneration != d.Generation {
				return fmt.Errorf("%s is not at rest", d.Name)
			}
		}
		return nil
	})
	return list.Items
}

// hashes is how many Deployments whose name begins so carry which hash.
func hashes(deployments []appsv1.Deployment, prefix string) map[string]int {
	n := map[string]int{}
	for i := range deployments {
		if d := &deployments[i]; strings.HasPrefix(d.Name, prefix) {
			n[d.Spec.Template.Annotations[hash]]++
		}
	}
	return n
}
