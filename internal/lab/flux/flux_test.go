package flux_test

import (
	"context"
	"errors"
	"fmt"
	"testing"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	"github.com/spillway-dev/spillway/internal/lab/controlplane"
	"github.com/spillway-dev/spillway/internal/lab/testenv"
)

func TestMain(m *testing.M) { testenv.MainFleet(m, 2) }

const repository = "https://git.test/shop"

// files are a repository with one ConfigMap.
func files(text string) map[string]string {
	return map[string]string{"deploy/cm.yaml": `{apiVersion: v1, kind: ConfigMap, metadata: {name: flux-test, namespace: default}, data: {text: "` + text + `"}}`}
}

const source = `
apiVersion: source.toolkit.fluxcd.io/v1
kind: GitRepository
metadata: {name: shop, namespace: default}
spec: {url: "https://git.test/shop", interval: 10m, ref: {tag: v1}}
`

const kustomization = `
apiVersion: kustomize.toolkit.fluxcd.io/v1
kind: Kustomization
metadata: {name: shop, namespace: default}
spec:
  interval: 10m
  prune: true
  path: deploy
  sourceRef: {kind: GitRepository, name: shop}
  kubeConfig: {secretRef: {name: c1-kubeconfig}}
`

func newClient(t *testing.T, cp *controlplane.ControlPlane) client.Client {
	t.Helper()
	c, err := client.New(cp.Config(), client.Options{})
	if err != nil {
		t.Fatal(err)
	}
	return c
}

func apply(t *testing.T, c client.Client, manifest string) *unstructured.Unstructured {
	t.Helper()
	u := &unstructured.Unstructured{}
	if err := yaml.Unmarshal([]byte(manifest), &u.Object); err != nil {
		t.Fatal(err)
	}
	if err := c.Apply(t.Context(), client.ApplyConfigurationFromUnstructured(u.DeepCopy()), client.FieldOwner("test")); err != nil {
		t.Fatal(err)
	}
	return u
}

// text is what the ConfigMap says, empty if it does not exist.
func text(ctx context.Context, c client.Client) (string, error) {
	cm := &corev1.ConfigMap{}
	err := c.Get(ctx, client.ObjectKey{Namespace: "default", Name: "flux-test"}, cm)
	return cm.Data["text"], client.IgnoreNotFound(err)
}

// says waits until the ConfigMap says this.
func says(t *testing.T, c client.Client, want string) {
	t.Helper()
	testenv.Eventually(t, func(ctx context.Context) error {
		got, err := text(ctx, c)
		if err != nil || got != want {
			return fmt.Errorf("it says %q: %w", got, err)
		}
		return nil
	})
}

// The real kustomize-controller of the hub applies to another API server what is
// served here, follows a tag that moves, and takes away what it has applied.
func TestTheHubAppliesToAnotherCluster(t *testing.T) {
	hub, one, two := newClient(t, testenv.Shared()), newClient(t, testenv.Workload(0)), newClient(t, testenv.Workload(1))
	testenv.Publish(t, repository, "v1", files("first"))
	if err := hub.Create(t.Context(), testenv.KubeconfigSecret(t, "default", "c1", testenv.Workload(0))); err != nil {
		t.Fatal(err)
	}
	apply(t, hub, source)
	k := apply(t, hub, kustomization)
	says(t, one, "first")
	for name, c := range map[string]client.Client{"the hub": hub, "the other cluster": two} {
		if got, err := text(t.Context(), c); err != nil || got != "" {
			t.Errorf("%s has it as well: %q, %v", name, got, err)
		}
	}
	testenv.Publish(t, repository, "v1", files("second"))
	says(t, one, "second")
	if err := hub.Delete(t.Context(), k); err != nil {
		t.Fatal(err)
	}
	says(t, one, "")
}

// A cluster that is away is away alone, and is what it was when it is back.
func TestOneClusterGoesAway(t *testing.T) {
	cp := testenv.Workload(1)
	c := newClient(t, cp)
	cm := &corev1.ConfigMap{}
	cm.Namespace, cm.Name = "default", "stays"
	if err := c.Create(t.Context(), cm); err != nil {
		t.Fatal(err)
	}
	cp.StopAPIServer()
	if err := c.Get(t.Context(), client.ObjectKeyFromObject(cm), cm); err == nil || apierrors.IsNotFound(err) {
		t.Error("it answers, so it was not away")
	}
	if err := newClient(t, testenv.Workload(0)).Get(t.Context(), client.ObjectKeyFromObject(cm), cm); !apierrors.IsNotFound(err) {
		t.Errorf("the other cluster: %v", err)
	}
	if err := cp.StartAPIServer(t.Context()); err != nil {
		t.Fatal(err)
	}
	testenv.Eventually(t, func(ctx context.Context) error {
		if err := c.Get(ctx, client.ObjectKeyFromObject(cm), cm); err != nil {
			return errors.Join(errors.New("it is not what it was"), err)
		}
		return nil
	})
}
