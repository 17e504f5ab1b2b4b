package plans_test

import (
	"strings"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/spillway-dev/spillway/api/kudo/v1beta1"
	"github.com/spillway-dev/spillway/internal/lab/testenv"
	"github.com/spillway-dev/spillway/internal/vocabulary"
)

// inherited is a package of which the second version has lost a container, an
// environment variable, a port and a key.
const inherited = `
version: "1"
parameters: [{name: NODES, default: "1"}, {name: LEVEL, default: info}]
tasks: [{name: app, kind: Apply, spec: {resources: [app.yaml]}}]
templates:
  app.yaml: |
    {apiVersion: v1, kind: ConfigMap, metadata: {name: app}, data: {level: "{{ .Params.LEVEL }}", old: x}}
    ---
    apiVersion: apps/v1
    kind: Deployment
    metadata: {name: app}
    spec:
      replicas: {{ .Params.NODES }}
      selector: {matchLabels: {app: app}}
      template:
        metadata: {labels: {app: app}}
        spec:
          containers:
          - {name: c, image: x, ports: [{containerPort: 80}, {containerPort: 81}], env: [{name: A, value: "1"}, {name: OLD, value: "1"}]}
          - {name: side, image: x}
plans:
  deploy: &p {phases: [{name: main, steps: [{name: app, tasks: [app]}]}]}
  update: *p
`

var heir = strings.NewReplacer(
	`version: "1"`, `version: "2"`, ", old: x", "", ", {containerPort: 81}", "", `, {name: OLD, value: "1"}`, "", "          - {name: side, image: x}\n", "",
).Replace(inherited)

// applyAsKUDO applies an object as KUDO did for Instance web.
func (c *cluster) applyAsKUDO(manifest string, version string) {
	c.t.Helper()
	u, err := testenv.AppliedByKUDO(c.now("web"), "app", "deploy", version, manifest)
	if err != nil {
		c.t.Fatal(err)
	}
	if err := c.client.Create(c.t.Context(), u, client.FieldOwner(vocabulary.KUDOManager)); err != nil {
		c.t.Fatal(err)
	}
}

// inherits returns a namespace with an Instance that KUDO has deployed.
func inherits(t *testing.T) *cluster {
	t.Helper()
	c := newCluster(t)
	c.inherit()
	return c
}

func (c *cluster) inherit() {
	c.t.Helper()
	c.operator("app-1", inherited)
	c.operator("app-2", heir)
	c.instance("web", "app-1")
	template := inherited[strings.Index(inherited, "    {apiVersion"):strings.Index(inherited, "plans:")]
	template = strings.NewReplacer("{{ .Params.NODES }}", "1", "{{ .Params.LEVEL }}", "info").Replace(template)
	for doc := range strings.SplitSeq(template, "    ---\n") {
		c.applyAsKUDO(doc, "1")
	}
	i := c.now("web")
	i.Status.PlanStatus = map[string]v1beta1.PlanStatus{"deploy": {Name: "deploy", Status: v1beta1.Complete, UID: "gone"}, "update": {Name: "update", Status: v1beta1.NeverRun}}
	if err := c.client.Status().Update(c.t.Context(), i); err != nil {
		c.t.Fatal(err)
	}
	c.others()
}

// others writes an annotation as another controller, with the same field manager as
// KUDO, and sets a label as a user.
func (c *cluster) others() {
	c.t.Helper()
	patch := []byte(`{"spec":{"template":{"metadata":{"annotations":{"example.com/by-another":"manager"}}}}}`)
	d := c.deployment("app")
	if err := c.client.Patch(c.t.Context(), d, client.RawPatch(types.StrategicMergePatchType, patch), client.FieldOwner(vocabulary.KUDOManager)); err != nil {
		c.t.Fatal(err)
	}
	patch = []byte(`{"metadata":{"labels":{"team":"shop"}}}`)
	if err := c.client.Patch(c.t.Context(), d, client.RawPatch(types.MergePatchType, patch), client.FieldOwner("kubectl-label")); err != nil {
		c.t.Fatal(err)
	}
}

// TestChangingOverRestartsNothing checks that what KUDO has applied is taken over
// without a plan, and that a plan that changes only a ConfigMap restarts no Pod.
func TestChangingOverRestartsNothing(t *testing.T) {
	c := inherits(t)
	before := c.deployment("app")
	c.manage()
	c.rests("web", "")
	c.change("web", set("LEVEL", "debug"))
	c.rests("web", "update Complete")
	after := c.deployment("app")
	if !equalTemplates(before, after) {
		t.Errorf("the template was\n%+v\nand is\n%+v", before.Spec.Template, after.Spec.Template)
	}
	if got := c.data("app")["level"]; got != "debug" {
		t.Errorf("the level is %q", got)
	}
	if got, ok := after.Annotations[vocabulary.LastAppliedConfiguration]; ok {
		t.Errorf("what KUDO applied is still in the annotation: %s", got)
	}
}

func equalTemplates(a, b *appsv1.Deployment) bool {
	return equality.Semantic.DeepEqual(a.Spec.Template, b.Spec.Template)
}

// TestFieldsThatKUDOAppliedAreRemoved checks that fields that KUDO has applied and that
// a newer version has lost are removed; what others have written stays. Pods are
// replaced anyway then, so the config ring follows their config from then on.
func TestFieldsThatKUDOAppliedAreRemoved(t *testing.T) {
	c := inherits(t)
	c.manage()
	c.rests("web", "")
	c.change("web", use("app-2"))
	c.rests("web", "update Complete")
	d := c.deployment("app")
	pod := d.Spec.Template.Spec
	if len(pod.Containers) != 1 || len(pod.Containers[0].Env) != 1 || len(pod.Containers[0].Ports) != 1 {
		t.Errorf("containers %+v", pod.Containers)
	}
	annotations := d.Spec.Template.Annotations
	if annotations["example.com/by-another"] != "manager" || annotations[vocabulary.DependenciesHash] != "" || annotations[vocabulary.OperatorVersionAnnotation] != "2" {
		t.Errorf("annotations %v", annotations)
	}
	if d.Labels["team"] != "shop" || vocabulary.ConfigTracked.Get(d.Annotations) != "true" {
		t.Errorf("labels %v, annotations %v", d.Labels, d.Annotations)
	}
	if got := c.data("app"); len(got) != 1 {
		t.Errorf("the ConfigMap has %v", got)
	}
	c.change("web", ask("update"))
	c.rests("web", "update Complete, update Complete")
	if again := c.deployment("app"); !equalTemplates(d, again) {
		t.Errorf("the template was\n%+v\nand is\n%+v", d.Spec.Template, again.Spec.Template)
	}
}
