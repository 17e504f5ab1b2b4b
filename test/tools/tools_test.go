//go:build tools

package tools_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	"github.com/spillway-dev/spillway/internal/config"
	"github.com/spillway-dev/spillway/internal/lab/testenv"
	"github.com/spillway-dev/spillway/internal/lab/testenv/barrier"
	"github.com/spillway-dev/spillway/internal/lab/testenv/fault"
	"github.com/spillway-dev/spillway/internal/manager"
	"github.com/spillway-dev/spillway/internal/manifests"
)

func TestMain(m *testing.M) { testenv.MainFlux(m, testenv.Options{Nodes: 2}) }

const hash = "spillway.dev/config-hash"

// web is a tracked Deployment as a chart has it, and a repository with another image.
const web = `apiVersion: apps/v1
kind: Deployment
metadata: {name: web, annotations: {spillway.dev/update-on-config-change: "true"}}
spec:
  replicas: 1
  selector: {matchLabels: {app: web}}
  template:
    metadata: {labels: {app: web}, annotations: {team: shop}}
    spec: {terminationGracePeriodSeconds: 0, containers: [{name: c, image: "{{ .Values.image }}", envFrom: [{configMapRef: {name: app}}]}]}
`

// world is a namespace with a manager that tracks config.
type world struct {
	t         *testing.T
	client    client.Client
	namespace string
	barrier   *barrier.Barrier
}

func newWorld(t *testing.T) *world {
	t.Helper()
	w := &world{t: t, client: testenv.Client(t), namespace: testenv.Namespace(t)}
	kinds, err := manifests.KindsOf([]string{manager.RingConfig})
	if err != nil {
		t.Fatal(err)
	}
	testenv.Kinds(t, w.client, kinds)
	clock := &barrier.Clock{}
	w.barrier = barrier.New(w.client, clock)
	w.barrier.Run(t, testenv.Shared().Config(), fault.New(), manager.Options{
		Rings: []string{manager.RingConfig}, Namespaces: []string{w.namespace}, LeaseNamespace: w.namespace, LeaseName: manager.LeaseName,
		Config: config.Options{Namespaces: []string{w.namespace}, LeaseNamespace: w.namespace, LeaseName: manager.LeaseName, Now: clock.Now},
	})
	return w
}

// edit writes the config of the workload.
func (w *world) edit(value string) {
	w.t.Helper()
	cm := &unstructured.Unstructured{Object: map[string]any{"apiVersion": "v1", "kind": "ConfigMap", "data": map[string]any{"a": value}}}
	cm.SetNamespace(w.namespace)
	cm.SetName("app")
	if err := w.client.Apply(w.t.Context(), client.ApplyConfigurationFromUnstructured(cm), client.FieldOwner("user")); err != nil {
		w.t.Fatal(err)
	}
}

// rolled waits until the workload runs with an image, so many revisions after the first and with
// another hash than before, and until no controller has more to write.
func (w *world) rolled(image, before string, revisions int) *appsv1.Deployment {
	w.t.Helper()
	d, sets := &appsv1.Deployment{}, &appsv1.ReplicaSetList{}
	testenv.Eventually(w.t, func(ctx context.Context) error {
		if err := errors.Join(w.client.Get(ctx, client.ObjectKey{Namespace: w.namespace, Name: "web"}, d), w.client.List(ctx, sets, client.InNamespace(w.namespace))); err != nil {
			return err
		}
		is := d.Spec.Template
		complete := slices.ContainsFunc(d.Status.Conditions, func(c appsv1.DeploymentCondition) bool { return c.Reason == "NewReplicaSetAvailable" })
		if is.Annotations[hash] == "" || is.Annotations[hash] == before || is.Spec.Containers[0].Image != image || d.Status.ObservedGeneration != d.Generation || d.Status.UpdatedReplicas != 1 || d.Status.Replicas != 1 || d.Status.AvailableReplicas != 1 || !complete {
			return fmt.Errorf("hash %q, image %s, %+v", is.Annotations[hash], is.Spec.Containers[0].Image, d.Status)
		}
		return nil
	})
	w.barrier.Wait(w.t)
	if len(sets.Items) != revisions {
		w.t.Errorf("%d revisions, want %d", len(sets.Items), revisions)
	}
	return d
}

// isUntouched fails if anybody has written the workload.
func (w *world) isUntouched(was *appsv1.Deployment) {
	w.t.Helper()
	w.barrier.Wait(w.t)
	d := &appsv1.Deployment{}
	if err := w.client.Get(w.t.Context(), client.ObjectKeyFromObject(was), d); err != nil {
		w.t.Fatal(err)
	}
	if d.ResourceVersion != was.ResourceVersion {
		w.t.Errorf("the same manifest was a write: %+v", d.ManagedFields)
	}
}

// tools bring the workload to the cluster with an image.
var tools = map[string]func(w *world) func(image string){
	"Helm, by server-side apply":     func(w *world) func(string) { return w.helm("--server-side=true") },
	"Helm, by a three-way merge":     func(w *world) func(string) { return w.helm("--server-side=false") },
	"kustomize-controller of Flux 2": (*world).flux,
}

// TestToolsLeaveTheHash: the same manifests again and again are no write of anybody; a new image and
// a new config roll the workload once each, and keep the other.
func TestToolsLeaveTheHash(t *testing.T) {
	for name, newTool := range tools {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			apply := newTool(w)
			w.edit("1")
			apply("x")
			first := w.rolled("x", "", 2) // without a hash, and with it
			for range 3 {
				apply("x")
			}
			w.isUntouched(first)

			apply("y")
			second := w.rolled("y", "", 3)
			if was, is := first.Spec.Template.Annotations[hash], second.Spec.Template.Annotations[hash]; was != is {
				t.Errorf("a new image has changed the hash from %s to %s", was, is)
			}

			w.edit("2")
			third := w.rolled("y", second.Spec.Template.Annotations[hash], 4)
			apply("y")
			w.isUntouched(third)
		})
	}
}

// TestReplacedByHelm: a tool that replaces objects removes the hash, which is written again.
func TestReplacedByHelm(t *testing.T) {
	w := newWorld(t)
	w.edit("1")
	w.helm("--server-side=false")("x")
	first := w.rolled("x", "", 2)
	w.helm("--server-side=false", "--force-replace")("x")
	if second := w.rolled("x", "", 2); second.Generation == first.Generation || second.Spec.Template.Annotations[hash] != first.Spec.Template.Annotations[hash] {
		t.Errorf("generation %d, hash %v", second.Generation, second.Spec.Template.Annotations)
	}
}

// helm installs and upgrades a chart with the real Helm, of the module in which releases are made.
func (w *world) helm(flags ...string) func(image string) {
	w.t.Helper()
	home := w.t.TempDir()
	program, chart := filepath.Join(home, "helm"), filepath.Join(home, "web")
	build := exec.Command("go", "build", "-trimpath", "-buildvcs=false", "-o", program, "helm.sh/helm/v4/cmd/helm")
	build.Dir, build.Env = filepath.Join("..", "..", "hack", "release"), append(os.Environ(), "CGO_ENABLED=0")
	if out, err := build.CombinedOutput(); err != nil {
		w.t.Fatalf("compile Helm: %v: %s", err, out)
	}
	if err := os.MkdirAll(filepath.Join(chart, "templates"), 0o700); err != nil {
		w.t.Fatal(err)
	}
	for name, content := range map[string]string{"Chart.yaml": "{apiVersion: v2, name: web, version: 0.1.0}", "templates/web.yaml": web} {
		if err := os.WriteFile(filepath.Join(chart, name), []byte(content), 0o600); err != nil {
			w.t.Fatal(err)
		}
	}
	return func(image string) {
		w.t.Helper()
		cmd := exec.Command(program, append([]string{"upgrade", "--install", "web", chart, "--namespace=" + w.namespace, "--set=image=" + image}, flags...)...)
		cmd.Env = append(os.Environ(), "KUBECONFIG="+testenv.Shared().Kubeconfig(), "HELM_CACHE_HOME="+home, "HELM_CONFIG_HOME="+home, "HELM_DATA_HOME="+home)
		if out, err := cmd.CombinedOutput(); err != nil {
			w.t.Fatalf("%v: %s", err, out)
		}
	}
}

// flux publishes a repository, and has the real kustomize-controller apply it.
func (w *world) flux() func(image string) {
	w.t.Helper()
	repository := "https://git.test/" + w.namespace
	objects := fmt.Sprintf(`{apiVersion: source.toolkit.fluxcd.io/v1, kind: GitRepository, metadata: {name: web}, spec: {url: %q, interval: 10m, ref: {tag: v1}}}
---
{apiVersion: kustomize.toolkit.fluxcd.io/v1, kind: Kustomization, metadata: {name: web}, spec: {interval: 10m, prune: true, path: ., targetNamespace: %s, sourceRef: {kind: GitRepository, name: web}}}`, repository, w.namespace)
	times := 0
	return func(image string) {
		w.t.Helper()
		times++
		revision := testenv.Publish(w.t, repository, "v1", map[string]string{"web.yaml": strings.ReplaceAll(web, "{{ .Values.image }}", image)})
		asked := fmt.Sprint(times)
		for _, manifest := range strings.Split(objects, "---\n") {
			obj := &unstructured.Unstructured{}
			if err := yaml.Unmarshal([]byte(manifest), &obj.Object); err != nil {
				w.t.Fatal(err)
			}
			obj.SetNamespace(w.namespace)
			obj.SetAnnotations(map[string]string{"reconcile.fluxcd.io/requestedAt": asked})
			if err := w.client.Apply(w.t.Context(), client.ApplyConfigurationFromUnstructured(obj), client.FieldOwner("user"), client.ForceOwnership); err != nil {
				w.t.Fatal(err)
			}
		}
		testenv.Eventually(w.t, func(ctx context.Context) error {
			k := &unstructured.Unstructured{}
			k.SetAPIVersion("kustomize.toolkit.fluxcd.io/v1")
			k.SetKind("Kustomization")
			if err := w.client.Get(ctx, client.ObjectKey{Namespace: w.namespace, Name: "web"}, k); err != nil {
				return err
			}
			handled, _, _ := unstructured.NestedString(k.Object, "status", "lastHandledReconcileAt")
			applied, _, _ := unstructured.NestedString(k.Object, "status", "lastAppliedRevision")
			if handled != asked || applied != revision {
				return fmt.Errorf("Flux has applied %s, asked for %s: %v", applied, revision, k.Object["status"])
			}
			return nil
		})
	}
}
