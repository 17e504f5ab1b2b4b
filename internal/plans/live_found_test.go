package plans_test

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"testing"

	corev1 "k8s.io/api/core/v1"
	eventsv1 "k8s.io/api/events/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/spillway-dev/spillway/api/kudo/v1beta1"
	"github.com/spillway-dev/spillway/internal/lab/testenv"
	"github.com/spillway-dev/spillway/internal/lab/testenv/fault"
	"github.com/spillway-dev/spillway/internal/manager"
	"github.com/spillway-dev/spillway/internal/vocabulary"
)

// Each defect that was found by running KUDO has a test here, named
// after it.

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
					return fmt.Errorf("the Namespace still exists: %v, %w", ns.Status.Conditions, err)
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
	c.waits("web", "P: is immutable; revert the change")
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

// TestFoundChildWithFatalError: a child that has failed for good fails its parent, and is
// retried with it.
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
	ov := &v1beta1.OperatorVersion{}
	if err := c.get(ov, "db-1"); err != nil {
		t.Fatal(err)
	}
	ov.Spec.Templates["t.yaml"] = "{apiVersion: v1, kind: ConfigMap, metadata: {name: db}}"
	if err := c.client.Update(t.Context(), ov); err != nil {
		t.Fatal(err)
	}
	c.change("web", annotate(vocabulary.RetryPlan.Native, string(c.now("web").Status.Execution.UID)))
	c.rests("web", "deploy Failed, deploy Complete")
	c.rests("web-db", "deploy Failed, deploy Complete")
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
	c.apply(gate) // it has no owner, so that the plan waits
	c.manage()
	c.instance("web", "app-1")
	c.waits("web", "ConfigMap gate exists")
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
	c.waits("web", "OperatorVersion app-1 not found in namespace")
	c.operator("app-1", one("{apiVersion: v1, kind: ConfigMap, metadata: {name: app}}"))
	c.rests("web", "deploy Complete")
}

// TestFoundClaimOfItsFirstConsumer: a claim that is bound only when a Pod uses it does not
// keep the step with that Pod from starting; of another class it does.
func TestFoundClaimOfItsFirstConsumer(t *testing.T) {
	c := newCluster(t)
	for class, mode := range map[string]string{"later": "WaitForFirstConsumer", "now": "Immediate"} {
		u := fmt.Sprintf("{apiVersion: storage.k8s.io/v1, kind: StorageClass, metadata: {name: %s-%s}, provisioner: example.com/none, volumeBindingMode: %s}", c.namespace, class, mode)
		testenv.ApplyManifest(t, c.client, u)
	}
	const claims = `
version: "1"
parameters: [{name: CLASS}]
tasks: [{name: claim, kind: Apply, spec: {resources: [claim.yaml]}}, {name: app, kind: Apply, spec: {resources: [app.yaml]}}]
templates:
  claim.yaml: "{apiVersion: v1, kind: PersistentVolumeClaim, metadata: {name: '{{ .Name }}'}, spec: {storageClassName: '{{ .Namespace }}-{{ .Params.CLASS }}', accessModes: [ReadWriteOnce], resources: {requests: {storage: 1Gi}}}}"
  app.yaml: "{apiVersion: v1, kind: ConfigMap, metadata: {name: '{{ .Name }}'}}"
plans: {deploy: {strategy: serial, phases: [{name: main, strategy: serial, steps: [{name: claim, tasks: [claim]}, {name: app, tasks: [app]}]}]}}
`
	c.operator("app-1", claims)
	c.manage()
	c.instance("later", "app-1", "CLASS", "later")
	c.rests("later", "deploy Complete")
	c.apply("{apiVersion: v1, kind: ConfigMap, metadata: {name: stuck}}")
	c.instance("stuck", "app-1", "CLASS", "later")
	c.waits("stuck", "ConfigMap stuck exists")
	if out, _ := c.spillway("explain", "instance/stuck"); strings.Contains(out, "because PersistentVolumeClaim") {
		t.Errorf("explain finds the cause in the claim:\n%s", out)
	}
	c.instance("now", "app-1", "CLASS", "now")
	c.waits("now", "waiting for PersistentVolumeClaim now")
	c.instance("none", "app-1", "CLASS", "none")
	c.waits("none", "none not found")
	testenv.ApplyManifest(t, c.client, fmt.Sprintf("{apiVersion: storage.k8s.io/v1, kind: StorageClass, metadata: {name: %s-none}, provisioner: example.com/none, volumeBindingMode: WaitForFirstConsumer}", c.namespace))
	c.rests("none", "deploy Complete")
}

// TestFoundOrderOfDocuments checks that the documents of a task are applied in the
// order of their kinds, so that a Namespace exists before its contents, and a kind
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

// failing are files that cannot be read for so many times.
type failing struct {
	mu    sync.Mutex
	times int
	files filesOf
}

func (f *failing) Read(ctx context.Context, namespace, pod, container, path string, limit int) ([]byte, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.times > 0 {
		f.times--
		return nil, errors.New("the node has no address")
	}
	return f.files.Read(ctx, namespace, pod, container, path, limit)
}

// TestFoundExecFailureIsFatal: files of a Pipe that cannot be read for the time being
// are an ERROR of the step, and read later.
func TestFoundExecFailureIsFatal(t *testing.T) {
	c := twelveSteps(t)
	c.files = &failing{times: 1, files: filesOf{"/tmp/x": "x", "/tmp/env": "A=1"}}
	c.manage()
	c.instance("web", "app-1")
	c.waits("web", "the node has no address")
	if s := c.now("web").Status.AggregatedStatus; s.Status != v1beta1.InProgress {
		t.Errorf("the plan is %s", s.Status)
	}
	c.rests("web", "deploy Complete")
}

// TestFoundAdoptingAnnotatedObject: an object that has annotations, but none of
// ours, is like any other foreign object: it may be taken over.
func TestFoundAdoptingAnnotatedObject(t *testing.T) {
	c := newCluster(t)
	c.operator("app-1", one("{apiVersion: v1, kind: ConfigMap, metadata: {name: app}, data: {p: '{{ .Params.P }}'}}"))
	c.apply(`{apiVersion: v1, kind: ConfigMap, metadata: {name: app, annotations: {example.com/mine: "1"}}, data: {mine: "1"}}`)
	c.manage()
	c.instance("web", "app-1")
	c.waits("web", "ConfigMap app exists and does not belong to Instance web")
	c.apply(`{apiVersion: v1, kind: ConfigMap, metadata: {name: app, annotations: {example.com/mine: "1", spillway.dev/adopt: "true"}}, data: {mine: "1"}}`)
	c.rests("web", "deploy Complete")
	cm := &corev1.ConfigMap{}
	if err := c.get(cm, "app"); err != nil || cm.Annotations["example.com/mine"] != "1" || cm.Data["p"] != "a" {
		t.Errorf("it is %v with annotations %v: %v", cm.Data, cm.Annotations, err)
	}
	c.instance("other", "app-1")
	c.waits("other", "ConfigMap app exists and belongs to Instance web; rename one of the two, or delete it")
	c.change("web", set("P", "b"))
	c.rests("web", "deploy Complete, update Complete")
	if err := c.get(cm, "app"); err != nil || cm.Annotations["spillway.dev/adopt"] != "" || cm.Data["p"] != "b" {
		t.Errorf("it is %v with annotations %v: %v", cm.Data, cm.Annotations, err)
	}
}

// TestFoundUnknownFields: an object is applied without the fields that its kind does not
// have, as KUDO did, and an Event names them.
func TestFoundUnknownFields(t *testing.T) {
	c := newCluster(t)
	c.operator("app-1", one(`
apiVersion: apps/v1
kind: Deployment
metadata: {name: app}
spec:
  replica: 2
  selector: {matchLabels: {app: app}}
  template:
    metadata: {labels: {app: app}, annotation: {a: b}}
    spec: {containers: [{name: c, image: x, ports: [{containerPort: 80, hostname: x}], commands: [x]}], restart: Always}`))
	c.manage()
	c.instance("web", "app-1")
	c.rests("web", "deploy Complete")
	for _, field := range []string{".spec.replica", ".spec.template.metadata.annotation", ".spec.template.spec.restart", `containers[name="c"].commands`, ".hostname"} {
		c.warns("UnknownFields", field)
	}
	if d := c.deployment("app"); d.Spec.Template.Spec.Containers[0].Ports[0].ContainerPort != 80 {
		t.Errorf("%+v", d.Spec)
	}
}

// TestFoundRetiredVersions: the plan fails with the version to use, instead of waiting for
// a CustomResourceDefinition of a kind that Kubernetes has.
func TestFoundRetiredVersions(t *testing.T) {
	for _, object := range []string{"{apiVersion: policy/v1beta1, kind: PodDisruptionBudget, metadata: {name: app}}",
		"{apiVersion: rbac.authorization.k8s.io/v1beta1, kind: Role, metadata: {name: app}}",
		"{apiVersion: apiextensions.k8s.io/v1beta1, kind: CustomResourceDefinition, metadata: {name: apps.example.com}}"} {
		c := newQuietCluster(t)
		c.operator("app-1", one(object))
		c.manage()
		c.instance("web", "app-1")
		c.rests("web", "deploy Failed")
		if got := c.now("web").Status.WaitingFor; !strings.Contains(got, "/v1beta1 is no longer served; use ") {
			t.Error(got)
		}
	}
}

// TestFoundParameterRemovedWithAnUnknownOne: to remove a parameter together with
// one that the OperatorVersion no longer has triggers the plan of the former.
func TestFoundParameterRemovedWithAnUnknownOne(t *testing.T) {
	const template = "{apiVersion: v1, kind: ConfigMap, metadata: {name: app}, data: {p: '{{ .Params.P }}'}}"
	c := newCluster(t)
	c.operator("app-1", replace(one(template), "{name: IMAGE, default: x}", "{name: IMAGE, default: x}, {name: OLD, default: x}"))
	c.operator("app-2", one(template))
	c.manage()
	c.instance("web", "app-1", "P", "b", "OLD", "y")
	c.rests("web", "deploy Complete")
	c.change("web", use("app-2"))
	c.rests("web", "deploy Complete, update Complete")
	c.change("web", func(i *v1beta1.Instance) { i.Spec.Parameters = nil })
	c.rests("web", "deploy Complete, update Complete, update Complete")
	if got := c.data("app")["p"]; got != "a" {
		t.Errorf("p is %q", got)
	}
}

// TestFoundTemplatesThatNeverRenderTheSame: functions that give something else each
// time, or ask the network or the machine, are refused by their names.
func TestFoundTemplatesThatNeverRenderTheSame(t *testing.T) {
	for _, function := range []string{"now", "uuidv4", "randAlphaNum 8", `genPrivateKey "rsa"`, `getHostByName "example.com"`, `env "HOME"`, `osBase "/x"`} {
		name, _, _ := strings.Cut(function, " ")
		t.Run(name, func(t *testing.T) {
			c := newCluster(t)
			c.operator("app-1", one("{apiVersion: v1, kind: ConfigMap, metadata: {name: app}, data: {x: '{{ "+function+" }}'}}"))
			c.manage()
			c.instance("web", "app-1")
			c.rests("web", "deploy Failed")
			if got := c.now("web").Status.WaitingFor; !strings.Contains(got, name) {
				t.Error(got)
			}
			if c.data("app") != nil {
				t.Error("it was applied")
			}
		})
	}
}

// TestFoundFinishedPlansByOmittedFields checks that the start and the end of a plan are
// reported once each, and follow from what is written and not from what was in memory:
// neither a request that is cleared nor another manager reports them again.
func TestFoundFinishedPlansByOmittedFields(t *testing.T) {
	c := noticed(t)
	c.change("web", ask("backup"))
	c.rests("web", "deploy Complete, backup Complete")
	if wish := c.now("web").Spec.PlanExecution; wish != (v1beta1.PlanExecution{}) {
		t.Errorf("there is still a wish: %+v", wish)
	}
	want := map[string]int{"PlanStarted: Execution of plan deploy started": 1, "PlanFinished: Execution of plan deploy finished with status COMPLETE": 1,
		"PlanStarted: Execution of plan backup started": 1, "PlanFinished: Execution of plan backup finished with status COMPLETE": 1,
	}
	c.tells(want)
	c.halt()
	c.manage()
	c.change("web", ask("paint"))
	c.rests("web", "deploy Complete, backup Complete, paint Complete")
	want["PlanStarted: Execution of plan paint started"], want["PlanFinished: Execution of plan paint finished with status COMPLETE"] = 1, 1
	c.tells(want)
}

// tells waits until these are the Events of plans.
func (c *cluster) tells(want map[string]int) {
	c.t.Helper()
	c.eventually(func() error {
		list, got := &eventsv1.EventList{}, map[string]int{}
		c.list(list)
		for _, e := range list.Items {
			if strings.HasPrefix(e.Reason, "Plan") {
				got[e.Reason+": "+e.Note]++
			}
		}
		if !maps.Equal(got, want) {
			return fmt.Errorf("it tells of %v, not %v", got, want)
		}
		return nil
	})
}

// TestFoundNoLeaderElection: of two replicas one acts, and the other goes on when
// that stops.
func TestFoundNoLeaderElection(t *testing.T) {
	c := newCluster(t)
	c.operator("app-1", one("{apiVersion: v1, kind: ConfigMap, metadata: {name: app}, data: {p: '{{ .Params.P }}'}}"))
	elected := func(o *manager.Options) {
		o.LeaderElect, o.LeaseName, o.LeaseNamespace = true, manager.LeaseName, c.namespace
	}
	replicas := []*fault.Injector{fault.New(), fault.New()}
	stops := []func(){c.manageWith(replicas[0], elected), c.manageWith(replicas[1], elected)}
	c.instance("web", "app-1")
	c.eventually(func() error { return c.isAtRest("web", "deploy Complete") }) // one that is not elected has no barrier
	leader := slices.IndexFunc(replicas, func(i *fault.Injector) bool { return len(i.Writes()) > 0 })
	if leader < 0 || len(replicas[1-leader].Writes()) > 0 {
		t.Fatalf("the replicas wrote %v and %v", replicas[0].Writes(), replicas[1].Writes())
	}
	stops[leader]()
	c.change("web", set("P", "b"))
	c.rests("web", "deploy Complete, update Complete")
	if got := c.data("app")["p"]; got != "b" {
		t.Errorf("p is %q", got)
	}
}
