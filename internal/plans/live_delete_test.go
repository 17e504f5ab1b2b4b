package plans_test

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/spillway-dev/spillway/api/kudo/v1beta1"
	"github.com/spillway-dev/spillway/internal/plans"
	"github.com/spillway-dev/spillway/internal/testenv"
	"github.com/spillway-dev/spillway/internal/vocabulary"
)

// stuckCleanup has a cleanup plan that never ends by itself.
const stuckCleanup = `
version: "1"
tasks:
- {name: app, kind: Apply, spec: {resources: [app.yaml]}}
- {name: stuck, kind: Dummy, spec: {wantErr: true}}
templates: {app.yaml: "{apiVersion: v1, kind: ConfigMap, metadata: {name: app}}"}
plans:
  deploy: {phases: [{name: main, steps: [{name: app, tasks: [app]}]}]}
  cleanup: {phases: [{name: main, steps: [{name: stuck, tasks: [stuck]}]}]}
`

// An Instance is cleaned up before it goes, whatever ran when it was deleted.
func TestDeletion(t *testing.T) {
	c := noticed(t)
	c.apply(`{apiVersion: v1, kind: ConfigMap, metadata: {name: other}}`)
	c.remove(&v1beta1.Instance{}, "web")
	c.gone(&v1beta1.Instance{}, "web")
	if c.data("web") != nil {
		t.Error("what cleanup deletes is still there")
	}
}

// A cleanup that never ends can be given up; what it left is removed with its owner.
func TestDeletionIsGivenUp(t *testing.T) {
	c := newCluster(t)
	c.operator("app-1", stuckCleanup)
	c.manage()
	c.instance("web", "app-1")
	c.rests("web", "deploy Complete")
	c.remove(&v1beta1.Instance{}, "web")
	c.eventually(func() error {
		if got := c.now("web").Status.AggregatedStatus.ActivePlan; got != "cleanup" {
			return fmt.Errorf("plan %q runs, %+v", got, c.now("web").Status.History)
		}
		return nil
	})
	c.change("web", annotate(vocabulary.AbandonPlan.Native, string(c.now("web").Status.Execution.UID)))
	c.gone(&v1beta1.Instance{}, "web")
	c.gone(&corev1.ConfigMap{}, "app")
}

// TestFoundNamespaceDeleteHangs: a namespace with Instances, OperatorVersions and
// cleanup plans goes, in whatever order its objects do.
func TestFoundNamespaceDeleteHangs(t *testing.T) {
	for name, first := range map[string]func(*cluster){
		"the namespace alone": func(*cluster) {},
		"the OperatorVersion first": func(c *cluster) {
			c.remove(&v1beta1.OperatorVersion{}, "app-1")
			c.gone(&v1beta1.OperatorVersion{}, "app-1")
		},
		"the Instance first":        func(c *cluster) { c.remove(&v1beta1.Instance{}, "web") },
		"while the manager is down": func(c *cluster) { c.halt() },
	} {
		t.Run(name, func(t *testing.T) {
			c := newCluster(t)
			c.operator("app-1", stuckCleanup)
			c.manage()
			c.instance("web", "app-1")
			c.rests("web", "deploy Complete")
			first(c)
			ns := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: c.namespace}}
			if err := c.client.Delete(t.Context(), ns); err != nil {
				t.Fatal(err)
			}
			if name == "while the manager is down" {
				c.manage()
			}
			testenv.Eventually(t, func(ctx context.Context) error {
				if err := c.client.Get(ctx, client.ObjectKeyFromObject(ns), ns); !apierrors.IsNotFound(err) {
					return fmt.Errorf("it is still there: %v, %w", ns.Status.Conditions, err)
				}
				return nil
			})
		})
	}
}

// TestFoundOperatorVersionGoneOnDelete: the cleanup of an Instance whose
// OperatorVersion is gone is not waited for.
func TestFoundOperatorVersionGoneOnDelete(t *testing.T) {
	c := newCluster(t)
	c.operator("app-1", stuckCleanup)
	c.manage()
	c.instance("web", "app-1")
	c.rests("web", "deploy Complete")
	c.remove(&v1beta1.OperatorVersion{}, "app-1")
	c.gone(&v1beta1.OperatorVersion{}, "app-1")
	c.remove(&v1beta1.Instance{}, "web")
	c.gone(&v1beta1.Instance{}, "web")
}

// TestFoundEmptyExecOutput: a file of a Pipe that is empty is an empty file.
func TestFoundEmptyExecOutput(t *testing.T) {
	c := twelveSteps(t)
	c.files = filesOf{"/tmp/x": "", "/tmp/env": ""}
	c.manage()
	c.instance("web", "app-1")
	c.rests("web", "deploy Complete")
}

// TestFoundImmutableParameterRemoved: an immutable parameter cannot be removed.
func TestFoundImmutableParameterRemoved(t *testing.T) {
	c := newCluster(t)
	c.operator("app-1", replace(one("{apiVersion: v1, kind: ConfigMap, metadata: {name: app}, data: {p: '{{ .Params.P }}'}}"), "{name: P, default: a}", "{name: P, default: a, immutable: true}"))
	c.manage()
	c.instance("web", "app-1", "P", "b")
	c.rests("web", "deploy Complete")
	c.change("web", func(i *v1beta1.Instance) { i.Spec.Parameters = nil })
	c.waits("web", "P: is immutable; set it back to what it was")
	c.change("web", set("P", "b"))
	c.waits("web", "")
	if got := c.data("app")["p"]; got != "b" || c.history("web") != "deploy Complete" {
		t.Errorf("p is %q after %s", got, c.history("web"))
	}
}

// TestFoundDummyThatIsNeverDone: the idiom for a plan that is not allowed locks
// nothing: it is given up, or a timeout ends it.
func TestFoundDummyThatIsNeverDone(t *testing.T) {
	c := newCluster(t)
	c.operator("app-1", `
version: "1"
tasks: [{name: never, kind: Dummy, spec: {done: false}}, {name: done, kind: Dummy, spec: {done: true}}]
plans:
  deploy: {phases: [{name: main, steps: [{name: s, tasks: [done]}]}]}
  not-allowed: {timeout: 2s, phases: [{name: main, steps: [{name: s, tasks: [never]}]}]}
`)
	c.manage()
	c.instance("web", "app-1")
	c.rests("web", "deploy Complete")
	c.change("web", ask("not-allowed"))
	c.rests("web", "deploy Complete, not-allowed Failed")
}

// TestFoundReadyWithCompletedJob: Pods of Jobs that are complete do not make an
// Instance unready.
func TestFoundReadyWithCompletedJob(t *testing.T) {
	c := newCluster(t)
	c.operator("app-1", one(`
apiVersion: batch/v1
kind: Job
metadata: {name: job}
spec: {template: {spec: {restartPolicy: Never, containers: [{name: c, image: x}]}}}`))
	c.manage()
	c.instance("web", "app-1")
	c.rests("web", "deploy Complete")
	for _, condition := range c.now("web").Status.Conditions {
		if condition.Type == "Ready" && condition.Status != metav1.ConditionTrue {
			t.Errorf("%+v", condition)
		}
	}
}

// TestFoundJobWithCompletions: a Job with several completions is healthy once it
// is complete.
func TestFoundJobWithCompletions(t *testing.T) {
	c := newCluster(t)
	c.operator("app-1", one(`
apiVersion: batch/v1
kind: Job
metadata: {name: job}
spec: {completions: 3, parallelism: 3, template: {spec: {restartPolicy: Never, containers: [{name: c, image: x}]}}}`))
	c.manage()
	c.instance("web", "app-1")
	c.rests("web", "deploy Complete")
}

// TestFoundFullReplaceDuringAPlan: a manifest without planExecution that is applied
// again while a plan runs is accepted, and changes nothing.
func TestFoundFullReplaceDuringAPlan(t *testing.T) {
	c := newCluster(t)
	c.operator("app-1", one(web))
	c.manage()
	c.instance("web", "app-1", "P", "never-ready")
	c.waits("web", "Deployment app")
	i := c.now("web")
	i.Spec.PlanExecution = v1beta1.PlanExecution{}
	i.Labels = map[string]string{"by": "gitops"}
	if err := c.client.Update(t.Context(), i); err != nil {
		t.Fatal(err)
	}
	if err := c.tryChange("web", set("P", "x")); err == nil || !strings.Contains(err.Error(), "plan deploy is running") {
		t.Errorf("a change of the spec: %v", err)
	}
}

// TestFoundChildWithFatalError: a child that has failed for good fails its parent.
func TestFoundChildWithFatalError(t *testing.T) {
	c := newCluster(t)
	c.operator("app-1", `
version: "1"
tasks: [{name: child, kind: KudoOperator, spec: {package: db, operatorVersion: "1"}}]
plans: {deploy: {phases: [{name: main, steps: [{name: s, tasks: [child]}]}]}}
`)
	c.operator("db-1", one("{{ .Params.NONE }}"))
	c.manage()
	c.instance("web", "app-1")
	c.rests("web", "deploy Failed")
	if got := c.now("web").Status.WaitingFor; !strings.Contains(got, "Instance web-db") {
		t.Error(got)
	}
}

// TestFoundEditedOperatorVersion: a plan goes on with the content with which it
// began, whatever is edited meanwhile, also by another manager.
func TestFoundEditedOperatorVersion(t *testing.T) {
	c := newCluster(t)
	gate := "{apiVersion: v1, kind: ConfigMap, metadata: {name: gate}}"
	spec := `
version: "1"
tasks: [{name: gate, kind: Apply, spec: {resources: [gate.yaml]}}, {name: app, kind: Apply, spec: {resources: [app.yaml]}}]
templates:
  gate.yaml: "` + gate + `"
  app.yaml: "{apiVersion: v1, kind: ConfigMap, metadata: {name: app}, data: {text: first}}"
plans: {deploy: {strategy: serial, phases: [{name: a, steps: [{name: s, tasks: [gate]}]}, {name: b, steps: [{name: s, tasks: [app]}]}]}}
`
	c.operator("app-1", spec)
	c.apply(gate) // nobody's, so that the plan waits
	c.manage()
	c.instance("web", "app-1")
	c.waits("web", "ConfigMap gate is there already")
	ov := &v1beta1.OperatorVersion{}
	if err := c.get(ov, "app-1"); err != nil {
		t.Fatal(err)
	}
	ov.Spec.Templates["app.yaml"] = replace(ov.Spec.Templates["app.yaml"], "first", "second")
	if err := c.client.Update(t.Context(), ov); err != nil {
		t.Fatal(err)
	}
	c.halt()
	c.remove(&corev1.ConfigMap{}, "gate")
	c.manage()
	c.rests("web", "deploy Complete")
	if got := c.data("app")["text"]; got != "first" {
		t.Errorf("it was applied as %q", got)
	}
}

// TestFoundInstanceWithoutOperatorVersion: an Instance whose OperatorVersion comes
// later waits for it.
func TestFoundInstanceWithoutOperatorVersion(t *testing.T) {
	c := newCluster(t)
	c.manage()
	c.instance("web", "app-1")
	c.waits("web", "OperatorVersion app-1 is not in namespace")
	c.operator("app-1", one("{apiVersion: v1, kind: ConfigMap, metadata: {name: app}}"))
	c.rests("web", "deploy Complete")
}

// TestFoundOrderOfDocuments: the documents of a task are applied in the order of
// their kinds, so that a Namespace is there before what goes with it, and a kind
// before its objects.
func TestFoundOrderOfDocuments(t *testing.T) {
	c := newCluster(t)
	group := strings.ReplaceAll(c.namespace, "-", "") + ".test"
	c.operator("app-1", one(replace(`
{apiVersion: GROUP/v1, kind: Thing, metadata: {name: one}}
---
apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: things.GROUP}
spec:
  group: GROUP
  scope: Namespaced
  names: {kind: Thing, plural: things, singular: thing}
  versions: [{name: v1, served: true, storage: true, schema: {openAPIV3Schema: {type: object, x-kubernetes-preserve-unknown-fields: true}}}]
---
{apiVersion: v1, kind: ConfigMap, metadata: {name: app}}`, "GROUP", group)))
	c.manage()
	c.instance("web", "app-1")
	c.rests("web", "deploy Complete")
}

// TestContentsThatNobodyNeedsGo: of an OperatorVersion that is edited again and
// again the newest contents are kept, and the one with which a plan runs.
func TestContentsThatNobodyNeedsGo(t *testing.T) {
	c := newCluster(t)
	c.operator("app-1", one(web))
	c.manage()
	c.instance("stuck", "app-1", "P", "never-ready")
	c.waits("stuck", "Available: 0/1")
	began := c.now("stuck").Status.Execution.ContentHash
	ov := &v1beta1.OperatorVersion{}
	for n := range plans.PinsKept + 3 {
		if err := c.get(ov, "app-1"); err != nil {
			t.Fatal(err)
		}
		ov.Spec.Templates["t.yaml"] = fmt.Sprintf("{apiVersion: v1, kind: ConfigMap, metadata: {name: '{{ .Name }}'}, data: {n: '%d'}}", n)
		if err := c.client.Update(t.Context(), ov); err != nil {
			t.Fatal(err)
		}
		c.instance(fmt.Sprintf("web-%d", n), "app-1")
		c.rests(fmt.Sprintf("web-%d", n), "deploy Complete")
	}
	pins := &appsv1.ControllerRevisionList{}
	c.eventually(func() error {
		c.list(pins)
		if n := len(pins.Items); n > plans.PinsKept+1 {
			return fmt.Errorf("%d contents are kept", n)
		}
		return nil
	})
	names := []string{}
	for i := range pins.Items {
		names = append(names, pins.Items[i].Name)
	}
	for _, hash := range []string{began, plans.ContentHash(&ov.Spec)} {
		if !slices.Contains(names, plans.PinName("app-1", hash)) {
			t.Errorf("content %s is not among those that are kept: %v", hash, names)
		}
	}
}
