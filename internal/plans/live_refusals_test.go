package plans_test

import (
	"fmt"
	"strings"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/spillway-dev/spillway/api/kudo/v1beta1"
	"github.com/spillway-dev/spillway/internal/lab/testenv"
	"github.com/spillway-dev/spillway/internal/vocabulary"
)

// limited has a Deployment that the API server refuses if it requests more memory than its limit.
const limited = `
version: "1"
parameters: [{name: MEM, default: 50Mi}]
tasks: [{name: app, kind: Apply, spec: {resources: [app.yaml]}}, {name: unapp, kind: Delete, spec: {resources: [app.yaml]}}]
templates:
  app.yaml: |
    apiVersion: apps/v1
    kind: Deployment
    metadata: {name: app}
    spec:
      replicas: 1
      selector: {matchLabels: {app: app}}
      template:
        metadata: {labels: {app: app}}
        spec: {containers: [{name: c, image: x, resources: {requests: {memory: "{{ .Params.MEM }}"}, limits: {memory: 100Mi}}}]}
plans:
  deploy: &plan {phases: [{name: main, steps: [{name: app, tasks: [app]}]}]}
  update: *plan
  remove: &remove {phases: [{name: main, steps: [{name: app, tasks: [unapp]}]}]}
  cleanup: *remove
`

// TestARefusalAnswersOneQuestion checks that what the API server has refused fails the plan that
// asked, and no other: neither a retry, nor a corrected value, nor a deletion.
func TestARefusalAnswersOneQuestion(t *testing.T) {
	c := newCluster(t)
	c.operator("app-1", limited)
	c.operator("app-2", limited)
	c.manage()
	c.instance("web", "app-1")
	c.rests("web", "deploy Complete")
	c.change("web", set("MEM", "200Mi"))
	history := "deploy Complete, update Failed"
	c.rests("web", history)
	if got := c.now("web").Status.WaitingFor; !strings.Contains(got, "must be less than or equal to memory limit") {
		t.Error(got)
	}
	c.faults.Reset()
	c.change("web", annotate(vocabulary.RetryPlan.Native, string(c.now("web").Status.Execution.UID)))
	history += ", update Failed"
	c.rests("web", history)
	if n := c.requests("deployments", "app"); n != 1 {
		t.Errorf("the retry has asked %d times", n)
	}
	for _, next := range []struct {
		change func(*v1beta1.Instance)
		result string
	}{
		{set("MEM", "60Mi"), ", update Complete"}, {set("MEM", "200Mi"), ", update Failed"},
		{ask("remove"), ", remove Complete"}, {set("MEM", "70Mi"), ", update Complete"}, {set("MEM", "200Mi"), ", update Failed"},
		{set("MEM", "70Mi"), ", update Complete"}, {use("app-2"), ", update Complete"}, {set("MEM", "200Mi"), ", update Failed"},
	} {
		c.change("web", next.change)
		history += next.result
		c.rests("web", history)
	}
	c.remove(&v1beta1.Instance{}, "web")
	c.gone(&v1beta1.Instance{}, "web")
	c.gone(&appsv1.Deployment{}, "app")
}

// requests is how many writes of an object the manager has requested.
func (c *cluster) requests(resource, name string) (n int) {
	for _, r := range c.faults.Writes() {
		if r.Resource == resource && r.Name == name {
			n++
		}
	}
	return n
}

// claims has a PersistentVolumeClaim with these annotations.
func claims(annotations string) string {
	return `
version: "1"
parameters: [{name: CLASS, default: a}]
tasks: [{name: claim, kind: Apply, spec: {resources: [claim.yaml]}}]
templates:
  claim.yaml: |
    apiVersion: v1
    kind: PersistentVolumeClaim
    metadata: {name: data, annotations: {` + annotations + `}}
    spec: {storageClassName: "{{ .Namespace }}-{{ .Params.CLASS }}", accessModes: [ReadWriteOnce], resources: {requests: {storage: 1Gi}}}
plans:
  deploy: &plan {phases: [{name: main, steps: [{name: claim, tasks: [claim]}]}]}
  update: *plan
  upgrade: *plan
`
}

// claim is the UID of the claim.
func (c *cluster) claim() types.UID {
	c.t.Helper()
	claim := &corev1.PersistentVolumeClaim{}
	if err := c.get(claim, "data"); err != nil {
		c.t.Fatal(err)
	}
	return claim.UID
}

// TestNoVolumeIsReplacedForAnOldRefusal checks that a claim is replaced only if the API server
// refuses what is to be applied now, and only if its template permits the loss of its data.
func TestNoVolumeIsReplacedForAnOldRefusal(t *testing.T) {
	c := newCluster(t)
	for _, class := range []string{"a", "b"} {
		testenv.ApplyManifest(t, c.client, fmt.Sprintf(
			"{apiVersion: storage.k8s.io/v1, kind: StorageClass, metadata: {name: %s-%s}, provisioner: example.com/none, volumeBindingMode: WaitForFirstConsumer}", c.namespace, class))
	}
	c.operator("app-1", claims(""))
	c.operator("app-2", claims("spillway.dev/on-immutable: recreate"))
	c.operator("app-3", claims(`spillway.dev/on-immutable: recreate, spillway.dev/lose-data-on-recreate: "true"`))
	c.manage()
	c.instance("web", "app-1")
	c.rests("web", "deploy Complete")
	before := c.claim()
	history := "deploy Complete"
	for _, next := range []struct {
		change         func(*v1beta1.Instance)
		result, reason string
		replaced       bool
	}{
		{change: set("CLASS", "b"), result: ", update Failed",
			reason: "; to replace it and lose its data, annotate it in its template with spillway.dev/on-immutable=recreate and spillway.dev/lose-data-on-recreate=true"},
		{change: set("CLASS", "a"), result: ", update Complete"},
		{change: use("app-2"), result: ", upgrade Complete"},
		{change: set("CLASS", "b"), result: ", update Failed", reason: "spillway.dev/lose-data-on-recreate=true"},
		{change: set("CLASS", "a"), result: ", update Complete"},
		{change: use("app-3"), result: ", upgrade Complete"},
		{change: set("CLASS", "b"), result: ", update Complete", replaced: true},
	} {
		c.change("web", next.change)
		history += next.result
		c.rests("web", history)
		if got := c.now("web").Status.WaitingFor; !strings.Contains(got, next.reason) {
			t.Errorf("after %s: %s", history, got)
		}
		if replaced := c.claim() != before; replaced != next.replaced {
			t.Errorf("after %s: replaced: %v", history, replaced)
		}
	}
}

// removes is a package whose plans delete a ConfigMap, or do if a parameter says so.
const removes = `
version: "1"
parameters: [{name: EXTRA, default: "false"}]
tasks:
- {name: old, kind: Delete, spec: {resources: [old.yaml]}}
- {name: extra, kind: Toggle, spec: {parameter: EXTRA, resources: [extra.yaml]}}
- {name: add, kind: Apply, spec: {resources: [old.yaml]}}
- {name: both, kind: Delete, spec: {resources: [old.yaml, extra.yaml]}}
templates:
  old.yaml: "{apiVersion: v1, kind: ConfigMap, metadata: {name: old}}"
  extra.yaml: "{apiVersion: v1, kind: ConfigMap, metadata: {name: extra}}"
plans:
  deploy: &plan {phases: [{name: main, steps: [{name: old, tasks: [old, extra]}]}]}
  update: *plan
  add: {phases: [{name: main, steps: [{name: add, tasks: [add]}]}]}
  cleanup: {phases: [{name: main, steps: [{name: both, tasks: [both]}]}]}
`

// TestNoPlanDeletesWhatBelongsToOthers checks that a Delete task, a Toggle task that is off, and
// a cleanup leave the objects of other owners, say so, and delete those of their own Instance.
func TestNoPlanDeletesWhatBelongsToOthers(t *testing.T) {
	c := newCluster(t)
	c.operator("app-1", removes)
	c.operator("other-1", one("{apiVersion: v1, kind: ConfigMap, metadata: {name: extra}}"))
	c.apply(`{apiVersion: v1, kind: ConfigMap, metadata: {name: old, labels: {app.kubernetes.io/managed-by: Helm}, annotations: {meta.helm.sh/release-name: shop}}}`)
	c.manage()
	c.instance("other", "other-1")
	c.rests("other", "deploy Complete")
	c.instance("web", "app-1")
	c.rests("web", "deploy Complete")
	step := c.now("web").Status.PlanStatus["deploy"].Phases[0].Steps[0]
	if want := "ConfigMap old is not deleted: it does not belong to Instance web; ConfigMap extra is not deleted: it belongs to Instance other"; step.Message != want {
		t.Errorf("the step says %q, want %q", step.Message, want)
	}
	c.change("web", set("EXTRA", "true"))
	c.waits("web", "ConfigMap extra exists and belongs to Instance other")
	c.remove(&v1beta1.Instance{}, "web")
	c.gone(&v1beta1.Instance{}, "web")
	c.eventually(func() error { return c.get(&corev1.ConfigMap{}, "old") })
	c.eventually(func() error { return c.get(&corev1.ConfigMap{}, "extra") })

	c.remove(&corev1.ConfigMap{}, "old")
	c.gone(&corev1.ConfigMap{}, "old")
	c.instance("mine", "app-1")
	c.rests("mine", "deploy Complete")
	c.change("mine", ask("add"))
	c.rests("mine", "deploy Complete, add Complete")
	c.remove(&v1beta1.Instance{}, "mine")
	c.gone(&v1beta1.Instance{}, "mine")
	c.gone(&corev1.ConfigMap{}, "old")
}

// TestOneObjectOneTask checks that a step whose tasks contradict each other about an object fails
// with both names, instead of writing for ever.
func TestOneObjectOneTask(t *testing.T) {
	const tasks = `
version: "1"
parameters: [{name: EXTRA, default: "false"}]
tasks:
- {name: first, kind: Apply, spec: {resources: [x.yaml]}}
- {name: second, %s}
templates:
  x.yaml: "{apiVersion: v1, kind: ConfigMap, metadata: {name: app}}"
  y.yaml: "{apiVersion: v1, kind: ConfigMap, metadata: {name: app}}"
plans: {deploy: {phases: [{name: main, steps: [{name: s, tasks: [first, second]}]}]}}
`
	for name, second := range map[string]string{
		"Toggle, off":                   "kind: Toggle, spec: {parameter: EXTRA, resources: [x.yaml]}",
		"Delete of the same object":     "kind: Delete, spec: {resources: [y.yaml]}",
		"Toggle of the same object":     "kind: Toggle, spec: {parameter: EXTRA, resources: [y.yaml]}",
		"Delete with the same template": "kind: Delete, spec: {resources: [x.yaml]}",
	} {
		t.Run(name, func(t *testing.T) {
			c := newCluster(t)
			c.operator("app-1", fmt.Sprintf(tasks, second))
			c.manage()
			c.instance("web", "app-1")
			c.rests("web", "deploy Failed")
			if got, want := c.now("web").Status.WaitingFor, "task second deletes ConfigMap app, which task first of the same step applies; give each of them a step of its own"; !strings.Contains(got, want) {
				t.Errorf("%q, not %q", got, want)
			}
			if n := c.requests("configmaps", "app"); n > 0 {
				t.Errorf("%d writes", n)
			}
		})
	}
}

// TestContentThatCannotBeAskedForEndsThePlan checks that names and groups that no request can have
// fail the plan, with the field, and that the Instance can be corrected and deleted.
func TestContentThatCannotBeAskedForEndsThePlan(t *testing.T) {
	const cleaned = `
version: "1"
tasks: [{name: t, kind: Apply, spec: {resources: [t.yaml]}}, {name: u, kind: Delete, spec: {resources: [t.yaml]}}]
templates: {t.yaml: %q}
plans: {deploy: {phases: [{name: main, steps: [{name: s, tasks: [t]}]}]}, cleanup: {phases: [{name: main, steps: [{name: s, tasks: [u]}]}]}}
`
	c := newCluster(t)
	c.manage()
	for n, test := range []struct{ template, why string }{
		{"{apiVersion: v1, kind: ConfigMap, metadata: {name: .}}", `ConfigMap: metadata.name: invalid value ".": may not be '.'`},
		{"{apiVersion: v1, kind: ConfigMap, metadata: {name: ..}}", `ConfigMap: metadata.name: invalid value "..": may not be '..'`},
		{"{apiVersion: v1, kind: ConfigMap, metadata: {name: a/b}}", `ConfigMap: metadata.name: invalid value "a/b": may not contain '/'`},
		{"{apiVersion: v1, kind: ConfigMap, metadata: {name: a%b}}", `ConfigMap: metadata.name: invalid value "a%b": may not contain '%'`},
		{"{apiVersion: ../v1, kind: ConfigMap, metadata: {name: a}}", `ConfigMap a: apiVersion: invalid value "../v1"`},
		{"{apiVersion: x/y/v1, kind: ConfigMap, metadata: {name: a}}", `ConfigMap a: apiVersion: invalid value "x/y/v1"`},
		{"{apiVersion: apps/.., kind: ConfigMap, metadata: {name: a}}", `ConfigMap a: apiVersion: invalid value "apps/.."`},
		{"{apiVersion: authentication.k8s.io/v1, kind: TokenReview, metadata: {name: a}, spec: {token: x}}", `TokenReview a: `},
	} {
		name := fmt.Sprintf("web-%d", n)
		c.operator(name, fmt.Sprintf(cleaned, test.template))
		c.instance(name, name)
		c.rests(name, "deploy Failed")
		if got := c.now(name).Status.WaitingFor; !strings.Contains(got, test.why) {
			t.Errorf("%s: %s", test.template, got)
		}
		c.remove(&v1beta1.Instance{}, name)
		c.waits(name, "plan cleanup failed")
		c.change(name, annotate(vocabulary.AbandonPlan.Native, string(c.now(name).Status.Execution.UID)))
		c.gone(&v1beta1.Instance{}, name)
	}
}
