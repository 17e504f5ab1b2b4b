package simulate_test

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
	"sigs.k8s.io/yaml"

	"github.com/spillway-dev/spillway/internal/config"
	"github.com/spillway-dev/spillway/internal/config/decision"
	"github.com/spillway-dev/spillway/internal/kube"
	"github.com/spillway-dev/spillway/internal/lab/testenv"
	"github.com/spillway-dev/spillway/internal/simulate"
	"github.com/spillway-dev/spillway/internal/simulate/record"
)

// driver is the kind by which the secrets store CSI driver tells what it has mounted.
const driver = `apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: secretproviderclasspodstatuses.secrets-store.csi.x-k8s.io}
spec:
  group: secrets-store.csi.x-k8s.io
  scope: Namespaced
  names: {kind: SecretProviderClassPodStatus, listKind: SecretProviderClassPodStatusList, plural: secretproviderclasspodstatuses, singular: secretproviderclasspodstatus}
  versions:
  - name: v1
    served: true
    storage: true
    schema: {openAPIV3Schema: {type: object, x-kubernetes-preserve-unknown-fields: true}}
`

// elsewhere is what a workload and an Instance in HERE name in THERE, and what the driver
// has mounted.
const elsewhere = `
apiVersion: v1
kind: ConfigMap
metadata: {namespace: THERE, name: app, annotations: {spillway.dev/shared-with: "*"}}
data: {color: red}
---
apiVersion: secrets-store.csi.x-k8s.io/v1
kind: SecretProviderClassPodStatus
metadata: {namespace: HERE, name: web-vault}
status: {podName: web, secretProviderClassName: vault, mounted: true, objects: [{id: secret/db, version: v1}]}
---
apiVersion: apps/v1
kind: Deployment
metadata:
  namespace: HERE
  name: web
  annotations: {spillway.dev/update-on-config-change: "true", spillway.dev/extra-configmaps: THERE/app}
spec:
  replicas: 0
  selector: {matchLabels: {app: web}}
  template:
    metadata: {labels: {app: web}}
    spec:
      containers: [{name: c, image: c}]
      volumes:
      - name: vault
        csi: {driver: secrets-store.csi.k8s.io, readOnly: true, volumeAttributes: {secretProviderClass: vault}}
---
apiVersion: kudo.dev/v1beta1
kind: OperatorVersion
metadata: {namespace: THERE, name: app-1, annotations: {spillway.dev/shared-with: HERE}}
spec:
  version: "1"
  operator: {name: app, kind: Operator}
  parameters: [{name: color, default: red}]
  templates: {a.yaml: "{apiVersion: v1, kind: ConfigMap, metadata: {name: a}, data: {color: '{{ .Params.color }}'}}"}
  tasks: [{name: a, kind: Apply, spec: {resources: [a.yaml]}}]
  plans: {deploy: {strategy: serial, phases: [{name: p, strategy: serial, steps: [{name: a, tasks: [a]}]}]}}
---
apiVersion: kudo.dev/v1beta1
kind: Instance
metadata: {namespace: HERE, name: shop}
spec: {operatorVersion: {name: app-1, namespace: THERE}}
`

// What lies in another namespace, and what the secrets store driver has mounted, count
// as they do for the manager.
func TestThePresentStateOfOtherNamespaces(t *testing.T) {
	t.Parallel()
	c := newClient(t)
	installKinds(t, c)
	kind := &unstructured.Unstructured{}
	if err := yaml.Unmarshal([]byte(driver), &kind.Object); err != nil {
		t.Fatal(err)
	}
	testenv.Kinds(t, c, []client.Object{kind})
	here, there := testenv.Namespace(t), testenv.Namespace(t)
	for _, d := range parse(t, strings.NewReplacer("HERE", here, "THERE", there).Replace(elsewhere)) {
		testenv.Apply(t, c, d.Object)
	}
	hashed(t, c, here, there)

	o := benchOptions()
	o.Now, o.Namespace, o.Installed = time.Now(), here, c.RESTMapper()
	for change, want := range map[string]string{
		"{apiVersion: v1, kind: ConfigMap, metadata: {name: unused}}":                                                                                           "plans instance/shop",
		"{apiVersion: v1, kind: ConfigMap, metadata: {namespace: " + there + ", name: app, annotations: {spillway.dev/shared-with: '*'}}, data: {color: blue}}": "config deployment/web",
	} {
		documents := objects(parse(t, change))
		present, err := simulate.Present(t.Context(), c, here, documents...)
		if err != nil {
			t.Fatal(err)
		}
		for _, o.Config.AllowCrossNamespace = range []bool{false, true} {
			o.Present = present
			r, err := simulate.Run(t.Context(), nil, documents, o)
			if err != nil {
				t.Fatal(err)
			}
			for _, s := range r.Steps {
				if got := s.Ring + " " + s.Object; s.Ring == record.RingConfig && got != want {
					t.Errorf("%s: %s", change, s)
				}
			}
			if !r.Settled || len(r.Stuck) > 0 || !strings.Contains(strings.Join(lines(r.Steps), "\n"), want) {
				t.Errorf("%s: settled: %t, stuck: %v, steps: %q", change, r.Settled, r.Stuck, lines(r.Steps))
			}
		}
	}
}

// hashed lets the config ring look at the cluster until the workload has its hash.
func hashed(t *testing.T, c client.Client, namespaces ...string) {
	t.Helper()
	ring := config.NewOffline(kube.Offline{Client: c}, config.Options{Now: time.Now, Namespaces: namespaces, Options: decision.Options{UpdateBurst: 10}})
	testenv.Eventually(t, func(ctx context.Context) error {
		if _, err := ring.Reconcile(ctx, reconcile.Request{}); err != nil {
			return err
		}
		d := &appsv1.Deployment{}
		err := c.Get(ctx, client.ObjectKey{Namespace: namespaces[0], Name: "web"}, d)
		if err == nil && d.Spec.Template.Annotations["spillway.dev/config-hash"] == "" {
			err = errors.New("it has no hash yet")
		}
		return err
	})
}
