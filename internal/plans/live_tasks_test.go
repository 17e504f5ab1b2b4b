package plans_test

import (
	"fmt"
	"strings"
	"testing"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/spillway-dev/spillway/api/kudo/v1beta1"
	"github.com/spillway-dev/spillway/internal/vocabulary"
)

// twelve is a package whose plans have twelve steps and every kind of task.
const twelve = `
version: "1"
parameters: [{name: NODES, default: "1"}, {name: EXTRA, default: "true"}]
tasks:
- {name: base, kind: Apply, spec: {resources: [base.yaml]}}
- {name: app, kind: Apply, spec: {resources: [app.yaml]}}
- {name: job, kind: Apply, spec: {resources: [job.yaml]}}
- {name: unjob, kind: Delete, spec: {resources: [job.yaml]}}
- {name: extra, kind: Toggle, spec: {parameter: EXTRA, resources: [extra.yaml]}}
- {name: pipe, kind: Pipe, spec: {pod: pod.yaml, pipe: [{file: /tmp/x, kind: Secret, key: x}, {envFile: /tmp/env, kind: ConfigMap, key: env}]}}
- {name: use, kind: Apply, spec: {resources: [use.yaml]}}
- {name: child, kind: KudoOperator, spec: {package: db, operatorVersion: "1", parameterFile: child.yaml}}
- {name: nop, kind: Dummy, spec: {done: true}}
templates:
  base.yaml: |
    {apiVersion: v1, kind: ConfigMap, metadata: {name: base}, data: {nodes: "{{ .Params.NODES }}"}}
    ---
    {apiVersion: v1, kind: Secret, metadata: {name: base, annotations: {spillway.dev/generate-once: "password=24"}}, stringData: {user: me}}
  app.yaml: |
    apiVersion: apps/v1
    kind: Deployment
    metadata: {name: app}
    spec:
      replicas: {{ .Params.NODES }}
      selector: {matchLabels: {app: app}}
      template:
        metadata: {labels: {app: app}}
        spec: {containers: [{name: c, image: x}]}
  job.yaml: |
    apiVersion: batch/v1
    kind: Job
    metadata: {name: job}
    spec: {suspend: true, template: {spec: {restartPolicy: Never, containers: [{name: c, image: x}]}}}
  extra.yaml: "{apiVersion: v1, kind: ConfigMap, metadata: {name: extra}}"
  use.yaml: "{apiVersion: v1, kind: ConfigMap, metadata: {name: use}, data: {x: '{{ .Pipes.x }}', env: '{{ .Pipes.env }}'}}"
  child.yaml: "SIZE: {{ .Params.NODES }}"
  pod.yaml: |
    apiVersion: v1
    kind: Pod
    metadata: {name: any}
    spec: {volumes: [{name: v, emptyDir: {}}], initContainers: [{name: i, image: x, volumeMounts: [{name: v, mountPath: /tmp}]}]}
plans:
  deploy: &all
    strategy: serial
    phases:
    - {name: one, strategy: serial, steps: [{name: nop, tasks: [nop]}, {name: base, tasks: [base]}, {name: app, tasks: [app]}, {name: last, tasks: [nop]}]}
    - {name: two, steps: [{name: unjob, tasks: [unjob]}, {name: extra, tasks: [extra]}, {name: pipe, tasks: [pipe]}, {name: more, tasks: [base, nop]}]}
    - {name: three, strategy: serial, steps: [{name: use, tasks: [use]}, {name: child, tasks: [child]}, {name: both, tasks: [app, extra]}, {name: last, tasks: [nop]}]}
  update: *all
`

// database is the operator of the child.
const database = `
version: "1"
parameters: [{name: SIZE, default: "0"}, {name: BROKEN, default: "false"}]
tasks: [{name: app, kind: Apply, spec: {resources: [app.yaml]}}]
templates:
  app.yaml: "{apiVersion: v1, kind: ConfigMap, metadata: {name: '{{ .Name }}-db'}, data: {size: '{{ .Params.SIZE }}'}}"
plans: {deploy: {phases: [{name: main, steps: [{name: app, tasks: [app]}]}]}}
`

// twelveSteps is a cluster with both operators, and files for the Pipe.
func twelveSteps(t *testing.T) *cluster {
	t.Helper()
	c := newCluster(t)
	c.twelveSteps()
	return c
}

func (c *cluster) twelveSteps() {
	c.t.Helper()
	c.files = filesOf{"/tmp/x": "x\n", "/tmp/env": "A=1\nB=2\n"}
	c.operator("app-1", twelve)
	c.operator("db-1", database)
}

// TestEveryKindOfTask runs a plan with all of them, and then changes what they
// have brought about.
func TestEveryKindOfTask(t *testing.T) {
	c := twelveSteps(t)
	c.manage()
	c.instance("web", "app-1")
	c.rests("web", "deploy Complete")
	secret := &corev1.Secret{}
	if err := c.get(secret, "base"); err != nil {
		t.Fatal(err)
	}
	password := string(secret.Data["password"])
	if len(password) != 24 || string(secret.Data["user"]) != "me" {
		t.Errorf("the Secret has %d bytes of password and user %q", len(password), secret.Data["user"])
	}
	use := c.data("use")
	if err := c.get(secret, use["x"]); err != nil || string(secret.Data["x"]) != "x\n" {
		t.Errorf("Pipe kept %q, %v", secret.Data, err)
	}
	if env := c.data(use["env"]); env["A"] != "1" || env["B"] != "2" {
		t.Errorf("Pipe kept %q", env)
	}
	c.gone(&corev1.Pod{}, "web.deploy.two.pipe.pipe.pipepod")
	if got := c.data("web-db-db")["size"]; got != "1" {
		t.Errorf("the child has size %q", got)
	}
	c.change("web", set("NODES", "2", "EXTRA", "false"))
	c.rests("web", "deploy Complete, update Complete")
	if got := c.data("extra"); got != nil {
		t.Error("ConfigMap extra still exists")
	}
	c.gone(&corev1.ConfigMap{}, "extra")
	if err := c.get(secret, "base"); err != nil || string(secret.Data["password"]) != password {
		t.Errorf("the password has changed: %v", err)
	}
	if got := c.data("web-db-db")["size"]; got != "2" {
		t.Errorf("the child has size %q", got)
	}
	if n := *c.deployment("app").Spec.Replicas; n != 2 {
		t.Errorf("%d replicas", n)
	}
}

// one is a package with one template and one step.
func one(template string) string {
	return "version: \"1\"\nparameters: [{name: P, default: a}, {name: IMAGE, default: x}]\n" +
		"tasks: [{name: t, kind: Apply, spec: {resources: [t.yaml]}}]\n" +
		"templates:\n  t.yaml: |\n    " + strings.ReplaceAll(strings.TrimSpace(template), "\n", "\n    ") + "\n" +
		"plans:\n  deploy: &p {phases: [{name: main, steps: [{name: step, tasks: [t]}]}]}\n  update: *p\n"
}

const web = `
apiVersion: apps/v1
kind: Deployment
metadata: {name: app}
spec:
  replicas: 1
  selector: {matchLabels: {app: app}}
  template:
    metadata: {labels: {app: app}{{ if eq .Params.P "never-ready" }}, annotations: {testenv.spillway.dev/behavior: never-ready}{{ end }}}
    spec: {containers: [{name: c, image: "{{ .Params.IMAGE }}"}]}
`

// A plan waits for what it applied to be healthy, says so, and writes nothing
// meanwhile.
func TestAPlanWaitsForHealthInSilence(t *testing.T) {
	c := newCluster(t)
	c.operator("app-1", one(web))
	c.manage()
	c.instance("web", "app-1", "P", "never-ready")
	c.waits("web", "Deployment app")
	if s := c.now("web").Status; s.AggregatedStatus.ActivePlan != "deploy" || s.Place != "main/step" {
		t.Errorf("it is at %q of %q", s.Place, s.AggregatedStatus.ActivePlan)
	}
	c.faults.Reset()
	c.operator("other-1", one("{apiVersion: v1, kind: ConfigMap, metadata: {name: other}}"))
	c.instance("other", "other-1")
	c.rests("other", "deploy Complete") // time passes by the work of others
	for _, r := range c.faults.Requests() {
		if r.Name == "web" && r.Writes() {
			t.Errorf("it wrote: %+v", r)
		}
	}
}

// What cannot ever work is fatal, and says why; the Instance takes a change.
func TestFatalErrors(t *testing.T) {
	for name, test := range map[string]struct{ template, why string }{
		"a template that cannot be rendered": {"a: {{ .Params.NONE }}", "NONE"},
		"what is no object":                  {"just text", "not a Kubernetes object"},
		"what the API server never accepts":  {"{apiVersion: v1, kind: ConfigMap, metadata: {name: Not_A_Name}}", "Not_A_Name"},
		"a Job that has failed": {`
apiVersion: batch/v1
kind: Job
metadata: {name: job}
spec: {activeDeadlineSeconds: 1, template: {spec: {restartPolicy: Never, containers: [{name: c, image: x}]}}}`, "Job job failed"},
	} {
		t.Run(name, func(t *testing.T) {
			c := newCluster(t)
			c.operator("app-1", one(test.template))
			c.operator("app-2", one("{apiVersion: v1, kind: ConfigMap, metadata: {name: fine}}"))
			c.manage()
			c.instance("web", "app-1")
			c.rests("web", "deploy Failed")
			s := c.now("web").Status
			if r := s.Rollout; s.AggregatedStatus.Status != v1beta1.FatalError || !strings.Contains(s.WaitingFor, test.why) || r.Phase != "Stalled" || r.WaitingFor != s.WaitingFor {
				t.Errorf("%s: %s", s.AggregatedStatus.Status, s.WaitingFor)
			}
			c.change("web", use("app-2"))
			c.rests("web", "deploy Failed, deploy Complete")
		})
	}
}

// What is refused for the time being is tried again, and is an ERROR of the step
// alone meanwhile.
func TestTransientErrorsAreTriedAgain(t *testing.T) {
	c := newCluster(t)
	c.operator("app-1", one("{apiVersion: v1, kind: ConfigMap, metadata: {name: late}}"))
	c.apply(`{apiVersion: v1, kind: ResourceQuota, metadata: {name: none}, spec: {hard: {count/configmaps: "0"}}}`)
	c.eventually(func() error {
		quota := &corev1.ResourceQuota{}
		if err := c.get(quota, "none"); err != nil || len(quota.Status.Hard) == 0 {
			return fmt.Errorf("the quota is not in force: %w", err)
		}
		return nil
	})
	c.manage()
	c.instance("web", "app-1")
	c.waits("web", "exceeded quota")
	s := c.now("web").Status
	step := s.PlanStatus["deploy"].Phases[0].Steps[0]
	if step.Status != v1beta1.Error || step.RetryAt == nil || s.PlanStatus["deploy"].Status != v1beta1.InProgress {
		t.Errorf("the step is %s, the plan %s", step.Status, s.PlanStatus["deploy"].Status)
	}
	c.remove(&corev1.ResourceQuota{}, "none")
	c.rests("web", "deploy Complete")
}

// TestForeignObjects checks that an object that exists and does not belong to the
// Instance is not taken over unless it is annotated to be adopted.
func TestForeignObjects(t *testing.T) {
	c := newCluster(t)
	c.operator("app-1", one("{apiVersion: v1, kind: ConfigMap, metadata: {name: app}, data: {p: '{{ .Params.P }}'}}"))
	c.apply(`{apiVersion: v1, kind: ConfigMap, metadata: {name: app}, data: {mine: "1"}}`)
	c.manage()
	c.instance("web", "app-1")
	c.waits("web", "ConfigMap app exists and does not belong to Instance web")
	c.apply(`{apiVersion: v1, kind: ConfigMap, metadata: {name: app, annotations: {spillway.dev/adopt: "true"}}, data: {mine: "1"}}`)
	c.rests("web", "deploy Complete")
	if got := c.data("app"); got["p"] != "a" || got["mine"] != "1" {
		t.Errorf("it is %q now", got)
	}
}

// A field that cannot be changed is fatal, unless the object may be recreated; a Job that has ended may.
func TestImmutableFields(t *testing.T) {
	const job = `
apiVersion: batch/v1
kind: Job
metadata: {name: job, annotations: {%s: "%s"}}
spec: {suspend: false, template: {spec: {restartPolicy: Never, containers: [{name: c, image: "{{ .Params.P }}"}]}}}`
	for name, test := range map[string]struct{ annotation, history string }{
		"fail":     {"fail", "deploy Complete, update Failed"},
		"recreate": {"recreate", "deploy Complete, update Complete"},
		"ended":    {"", "deploy Complete, update Complete"},
	} {
		t.Run(name, func(t *testing.T) {
			c := newCluster(t)
			c.operator("app-1", one(fmt.Sprintf(job, vocabulary.OnImmutable.Native, test.annotation)))
			c.manage()
			c.instance("web", "app-1")
			c.rests("web", "deploy Complete")
			before := &batchv1.Job{}
			if err := c.get(before, "job"); err != nil {
				t.Fatal(err)
			}
			c.change("web", set("P", "b"))
			c.rests("web", test.history)
			after := &batchv1.Job{}
			if err := c.get(after, "job"); err != nil {
				t.Fatal(err)
			}
			if recreated := after.UID != before.UID; recreated != (name != "fail") {
				t.Errorf("recreated: %v", recreated)
			}
		})
	}
}

// What a newer version does not render any more is removed, a container and an
// object alike.
func TestWhatIsNoLongerRenderedGoes(t *testing.T) {
	two := replace(web, `containers: [{name: c, image: "{{ .Params.IMAGE }}"}]`, `containers: [{name: c, image: x}, {name: side, image: z}]`)
	c := newCluster(t)
	c.operator("app-1", one(strings.TrimSpace(two)+"\n---\n{apiVersion: v1, kind: ConfigMap, metadata: {name: old}}"))
	c.operator("app-2", one(web))
	c.manage()
	c.instance("web", "app-1")
	c.rests("web", "deploy Complete")
	c.change("web", use("app-2"))
	c.rests("web", "deploy Complete, update Complete")
	if n := len(c.deployment("app").Spec.Template.Spec.Containers); n != 1 {
		t.Errorf("%d containers", n)
	}
	c.gone(&corev1.ConfigMap{}, "old")
	if inventory := c.now("web").Status.Inventory; len(inventory) != 1 {
		t.Errorf("the inventory is %v", inventory)
	}
}

// A plan can be given up and tried again.
func TestAbandonAndRetry(t *testing.T) {
	c := newCluster(t)
	c.operator("app-1", one("{apiVersion: v1, kind: ConfigMap, metadata: {name: app}}"))
	c.apply(`{apiVersion: v1, kind: ConfigMap, metadata: {name: app}}`)
	c.manage()
	c.instance("web", "app-1")
	c.waits("web", "does not belong")
	uid := string(c.now("web").Status.Execution.UID)
	c.change("web", annotate(vocabulary.AbandonPlan.Native, `{"uid":"`+uid+`","by":"me","reason":"it is mine"}`))
	c.rests("web", "deploy Abandoned")
	if got := c.now("web").Status.WaitingFor; !strings.Contains(got, "by me: it is mine") {
		t.Error(got)
	}
	c.remove(&corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{}}, "app")
	c.change("web", annotate(vocabulary.RetryPlan.Native, uid))
	c.rests("web", "deploy Abandoned, deploy Complete")
}
