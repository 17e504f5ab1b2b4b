package fleet_test

import (
	"context"
	"fmt"
	"reflect"
	"strings"
	"testing"
	"time"

	helmv2 "github.com/fluxcd/helm-controller/api/v2"
	kustomizev1 "github.com/fluxcd/kustomize-controller/api/v1"
	"github.com/fluxcd/pkg/apis/meta"
	sourcev1 "github.com/fluxcd/source-controller/api/v1"
	"github.com/go-logr/logr"
	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	apimeta "k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	"github.com/spillway-dev/spillway/api/fleet/v1alpha1"
	"github.com/spillway-dev/spillway/internal/fleet/agent"
	"github.com/spillway-dev/spillway/internal/fleet/hub"
	"github.com/spillway-dev/spillway/internal/lab/testenv"
	"github.com/spillway-dev/spillway/internal/lab/testenv/fault"
	"github.com/spillway-dev/spillway/internal/manager"
)

// running is a cluster that is its own hub, on which Flux runs something that a module takes over.
type running struct {
	*testing.T

	client    client.Client
	namespace string
	// url is that of what Flux fetches from.
	url string
}

func newRunning(t *testing.T) *running {
	t.Helper()
	c := newClient(t)
	w := &running{T: t, client: c, namespace: testenv.Namespace(t)}
	w.url = "https://git.test/" + w.namespace
	secret := testenv.KubeconfigSecret(t, w.namespace, "c1", testenv.Shared())
	secret.Labels = map[string]string{"spillway.dev/cluster": "true", "env": "prod"}
	if err := c.Create(t.Context(), secret); err != nil {
		t.Fatal(err)
	}
	return w
}

// manage runs Spillway on it, as hub and as cluster.
func (w *running) manage() {
	w.Helper()
	testenv.Managed(w, fault.New(), func(ctx context.Context, log logr.Logger) error {
		return manager.Run(ctx, testenv.Shared().Config(), manager.Options{
			Rings: []string{manager.RingFleet, manager.RingAssemblage}, Namespaces: []string{w.namespace},
			Fleet: hub.Options{Now: time.Now}, Assemblage: agent.Options{Now: time.Now}, MetricsAddress: "0", ProbeAddress: "0", Version: "test", Log: log,
		})
	})
}

// create creates manifests in which NS and URL stand for the namespace and for what is fetched from.
func (w *running) create(manifests string) {
	w.Helper()
	for manifest := range strings.SplitSeq(strings.NewReplacer("NS", w.namespace, "URL", w.url).Replace(manifests), "\n---\n") {
		u := &unstructured.Unstructured{}
		if err := yaml.Unmarshal([]byte(manifest), &u.Object); err != nil {
			w.Fatal(err, manifest)
		}
		if u.SetNamespace(w.namespace); u.GetKind() == "ClusterRoleBinding" {
			u.SetNamespace("")
		}
		if err := w.client.Create(w.Context(), u); err != nil {
			w.Fatal(err)
		}
	}
}

func (w *running) get(obj client.Object, name string) {
	w.Helper()
	if err := w.client.Get(w.Context(), client.ObjectKey{Namespace: w.namespace, Name: name}, obj); err != nil {
		w.Fatal(err)
	}
}

// ready waits until Flux says that something is.
func (w *running) ready(obj interface {
	client.Object
	meta.ObjectWithConditions
}, name string) {
	w.Helper()
	testenv.Eventually(w.T, func(ctx context.Context) error {
		if err := w.client.Get(ctx, client.ObjectKey{Namespace: w.namespace, Name: name}, obj); err != nil {
			return err
		}
		if ready := apimeta.FindStatusCondition(obj.GetConditions(), meta.ReadyCondition); ready == nil || ready.Status != "True" || ready.ObservedGeneration != obj.GetGeneration() {
			return fmt.Errorf("%s: %+v", name, ready)
		}
		if r, ok := any(obj).(*helmv2.HelmRelease); ok && len(r.Status.History) == 0 { // Flux writes conditions before the rest of a status
			return fmt.Errorf("%s is ready, and has no release yet", name)
		}
		return nil
	})
}

// takeOver does what the command says, and returns the manifests that it has printed and its notes.
func (w *running) takeOver(name string, flags ...string) (notes []string) {
	w.Helper()
	out, said := runImport(w.T, append([]string{name, "-n", w.namespace, "--select", "env=prod"}, flags...)...)
	module := &v1alpha1.Module{}
	if err := yaml.UnmarshalStrict([]byte(out), module); err != nil {
		w.Fatal(err, out, said)
	}
	for line := range strings.Lines(said) {
		line = strings.TrimSpace(line)
		switch verb := strings.Fields(line + " x x"); {
		case verb[0] == "note:":
			notes = append(notes, line)
		case verb[1] == "kubectl" && verb[2] == "patch":
			patch := line[strings.Index(line, "'")+1 : strings.LastIndex(line, "'")]
			if err := w.client.Patch(w.Context(), w.named(verb[3]), client.RawPatch(types.MergePatchType, []byte(patch))); err != nil {
				w.Fatal(err)
			}
		case strings.Contains(line, "apply the module"):
			if err := w.client.Create(w.Context(), module); err != nil {
				w.Fatal(err)
			}
			w.completes(name)
		case verb[1] == "kubectl" && verb[2] == "delete":
			w.deletes(w.named(verb[3]))
		}
	}
	return notes
}

// named is what kubectl calls KIND/NAME.
func (w *running) named(arg string) client.Object {
	kind, name, _ := strings.Cut(arg, "/")
	obj := map[string]client.Object{"kustomization": &kustomizev1.Kustomization{}, "helmrelease": &helmv2.HelmRelease{}, "helmchart": &sourcev1.HelmChart{}}[kind]
	obj.SetNamespace(w.namespace)
	obj.SetName(name)
	return obj
}

func (w *running) completes(module string) {
	w.Helper()
	testenv.Eventually(w.T, func(ctx context.Context) error {
		m := &v1alpha1.Module{}
		if err := w.client.Get(ctx, client.ObjectKey{Namespace: w.namespace, Name: module}, m); err != nil {
			return err
		}
		if m.Status.Phase != "Complete" || m.Status.ObservedGeneration != m.Generation || m.Status.Summary.Succeeded != 1 {
			return fmt.Errorf("%s: %s", m.Status.Phase, m.Status.WaitingFor)
		}
		return nil
	})
}

func (w *running) deletes(obj client.Object) {
	w.Helper()
	if err := w.client.Delete(w.Context(), obj); err != nil {
		w.Fatal(err)
	}
	testenv.Eventually(w.T, func(ctx context.Context) error {
		if err := w.client.Get(ctx, client.ObjectKeyFromObject(obj), obj); !apierrors.IsNotFound(err) {
			return fmt.Errorf("%s still exists: %w", obj.GetName(), err)
		}
		return nil
	})
}

// identity is what tells whether something was replaced, or Pods restarted.
func (w *running) identity() string {
	w.Helper()
	d, cm := &appsv1.Deployment{}, &corev1.ConfigMap{}
	w.get(d, "app")
	w.get(cm, "app")
	return fmt.Sprintf("%s of %d, %s %v", d.UID, d.Generation, cm.UID, cm.Data)
}

const workload = `apiVersion: apps/v1
kind: Deployment
metadata: {name: app, namespace: NS}
spec:
  selector: {matchLabels: {app: shop}}
  template: {metadata: {labels: {app: shop}}, spec: {containers: [{name: app, image: "registry.test/shop:1"}]}}
`

// A Kustomization that prunes is taken over with the commands that import prints: nothing is replaced, and no Pod restarts.
func TestAKustomizationIsTakenOver(t *testing.T) {
	w := newRunning(t)
	testenv.Publish(t, w.url, "v1", map[string]string{"deploy/all.yaml": strings.ReplaceAll(workload, "NS", w.namespace) + "---\n" +
		"apiVersion: v1\nkind: ConfigMap\nmetadata: {name: app, namespace: " + w.namespace + "}\ndata: {price: '${price}'}\n"})
	w.create(`
apiVersion: source.toolkit.fluxcd.io/v1
kind: GitRepository
metadata: {name: shop}
spec: {url: "URL", interval: 10m, ref: {tag: v1}, ignore: "*.md"}
---
apiVersion: kustomize.toolkit.fluxcd.io/v1
kind: Kustomization
metadata: {name: shop}
spec:
  {interval: 10m, prune: true, path: deploy, sourceRef: {kind: GitRepository, name: shop}, postBuild: {substitute: {price: $(10)}}, force: true}
`)
	w.ready(&kustomizev1.Kustomization{}, "shop")
	before, old := w.identity(), &kustomizev1.Kustomization{}
	w.get(old, "shop")
	w.manage()
	if notes := w.takeOver("shop"); len(notes) > 0 {
		t.Error(notes)
	}
	taken := &kustomizev1.Kustomization{}
	w.ready(taken, "c1-shop")
	if after := w.identity(); after != before {
		t.Errorf("it was %s, and is %s", before, after)
	}
	if diff := cmp.Diff(old.Spec, taken.Spec, cmpopts.IgnoreFields(kustomizev1.KustomizationSpec{}, "SourceRef", "RetryInterval", "Timeout", "DeletionPolicy")); diff != "" {
		t.Errorf("(-was +is):\n%s", diff)
	}
}

// everyField is a HelmRelease that says whatever one can say, besides what has no place in a module.
const everyField = `
apiVersion: v1
kind: ServiceAccount
metadata: {name: helm}
---
apiVersion: rbac.authorization.k8s.io/v1
kind: RoleBinding
metadata: {name: helm}
roleRef: {apiGroup: rbac.authorization.k8s.io, kind: ClusterRole, name: cluster-admin}
subjects: [{kind: ServiceAccount, name: helm, namespace: NS}]
---
apiVersion: v1
kind: ConfigMap
metadata: {name: values}
data: {values.yaml: "region: eu"}
---
apiVersion: source.toolkit.fluxcd.io/v1
kind: HelmRepository
metadata: {name: shop}
spec: {url: "URL", interval: 10m, passCredentials: true}
---
apiVersion: helm.toolkit.fluxcd.io/v2
kind: HelmRelease
metadata: {name: base}
spec: {interval: 10m, releaseName: base, chart: {spec: {chart: base, version: 1.0.0, sourceRef: {kind: HelmRepository, name: shop}}}}
---
apiVersion: helm.toolkit.fluxcd.io/v2
kind: HelmRelease
metadata: {name: shop}
spec:
  chart:
    spec: {chart: shop, version: 1.x, sourceRef: {kind: HelmRepository, name: shop}, interval: 7m, valuesFiles: [values.yaml, values-prod.yaml], ignoreMissingValuesFiles: true}
  interval: 11m
  timeout: 4m
  targetNamespace: NS
  storageNamespace: NS
  dependsOn: [{name: base, readyExpr: "dep.status.conditions.exists(c, c.type == 'Ready' && c.status == 'True')"}]
  maxHistory: 7
  serviceAccountName: helm
  persistentClient: false
  driftDetection: {mode: warn, ignore: [{paths: [/spec/replicas], target: {kind: Deployment}}]}
  install:
    {timeout: 3m, disableWait: true, disableWaitForJobs: true, disableHooks: true, disableOpenAPIValidation: true, disableSchemaValidation: true, replace: true, crds: CreateReplace,
     createNamespace: true, serverSideApply: true, disableTakeOwnership: true, strategy: {name: RetryOnFailure, retryInterval: 2m}}
  upgrade:
    {timeout: 3m, disableWait: true, disableWaitForJobs: true, disableHooks: true, disableOpenAPIValidation: true, disableSchemaValidation: true, force: false, preserveValues: true,
     cleanupOnFail: true, crds: Skip, serverSideApply: enabled, disableTakeOwnership: true, remediation: {retries: 3, ignoreTestFailures: true, remediateLastFailure: true, strategy: rollback}}
  test: {enable: true, timeout: 1m, ignoreFailures: true, filters: [{name: smoke, exclude: true}]}
  rollback: {timeout: 3m, disableWait: true, disableWaitForJobs: true, disableHooks: true, cleanupOnFail: true, serverSideApply: auto}
  uninstall: {timeout: 3m, disableHooks: true, keepHistory: true, disableWait: true, deletionPropagation: foreground}
  valuesFrom: [{kind: ConfigMap, name: values, valuesKey: values.yaml}, {kind: ConfigMap, name: absent, targetPath: a.b, optional: true}]
  values: {price: $(10), replicas: 0, nested: [{ratio: 0.5, text: $$}]}
  commonMetadata: {labels: {team: shop}, annotations: {owner: shop}}
  postRenderers: [{kustomize: {patches: [{target: {kind: ConfigMap}, patch: '[{"op": "add", "path": "/data/patched", "value": "yes"}]'}], images: [{name: registry.test/shop, newTag: "2"}]}}]
  postRenderStrategy: nohooks
  waitStrategy: {name: poller}
  healthCheckExprs: [{apiVersion: example.com/v1, kind: Database, current: "status.ready", inProgress: "!status.ready", failed: "false"}]
`

// A HelmRelease that says everything is taken over with the commands that import prints: the module makes one that says the
// same of the same release of Helm, which is upgraded to what it is; nothing is uninstalled or replaced, and no Pod restarts.
func TestAHelmReleaseIsTakenOver(t *testing.T) {
	w := newRunning(t)
	for _, version := range []string{"shop:1.x", "shop:1.2.0"} {
		testenv.Publish(t, w.url, version, map[string]string{
			"shop/Chart.yaml":         "apiVersion: v2\nname: shop\nversion: 1.2.0\n",
			"shop/templates/app.yaml": strings.ReplaceAll(workload, "NS", "{{ .Release.Namespace }}"),
			"shop/templates/cm.yaml": "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: app}\n" +
				"data: {price: '{{ .Values.price }}', region: '{{ .Values.region }}', text: '{{ (index .Values.nested 0).text }}'}\n",
		})
	}
	testenv.Publish(t, w.url, "base:1.0.0", map[string]string{"base/Chart.yaml": "apiVersion: v2\nname: base\nversion: 1.0.0\n", "base/templates/cm.yaml": "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: base}\n"})
	w.create(everyField)
	old := &helmv2.HelmRelease{}
	w.ready(old, "shop")
	before := w.identity()
	for field, value := range reflect.ValueOf(old.Spec).Fields() {
		if without := field.Name == "ChartRef" || field.Name == "KubeConfig" || field.Name == "Suspend" || field.Name == "ReleaseName"; value.IsZero() != without {
			t.Errorf("%s is not said, or must not be", field.Name)
		}
	}
	w.manage()
	notes := w.takeOver("shop", "--release")
	for i, want := range []string{"spec.dependsOn: ", "chart interval: ", "source version 1.x: it followed what moves; the module is at the version 1.2.0"} {
		if len(notes) != 3 || !strings.HasPrefix(notes[i], "note: helmrelease/shop: "+want) {
			t.Errorf("%q", notes)
		}
	}
	taken := &helmv2.HelmRelease{}
	w.ready(taken, "c1-shop")
	if after := w.identity(); after != before {
		t.Errorf("it was %s, and is %s", before, after)
	}
	ignored := cmpopts.IgnoreFields(helmv2.HelmReleaseSpec{}, "Chart", "ChartRef", "ReleaseName")
	if diff := cmp.Diff(old.Spec, taken.Spec, ignored); diff != "" {
		t.Errorf("(-was +is):\n%s", diff)
	}
	chart := &sourcev1.HelmChart{}
	w.get(chart, taken.Spec.ChartRef.Name)
	if taken.Spec.ReleaseName != w.namespace+"-shop" || chart.Spec.Chart != "shop" || chart.Spec.Version != "1.2.0" || !chart.Spec.IgnoreMissingValuesFiles || len(chart.Spec.ValuesFiles) != 2 {
		t.Errorf("%s of %+v", taken.Spec.ReleaseName, chart.Spec)
	}
	if h := taken.Status.History; len(h) != 1 || h[0].Version != 2 || h[0].ChartVersion != "1.2.0" || h[0].ConfigDigest != old.Status.History[0].ConfigDigest {
		t.Errorf("the releases of Helm are %+v", h)
	}
}
