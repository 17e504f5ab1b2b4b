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

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/dynamic"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/spillway-dev/spillway/api/kudo/v1beta1"
	"github.com/spillway-dev/spillway/internal/lab/controlplane"
	"github.com/spillway-dev/spillway/internal/lab/testenv"
	"github.com/spillway-dev/spillway/internal/lab/testenv/fault"
)

// plot is a part of the life of an Instance. What there is before is brought about
// by a manager without faults.
type plot struct {
	name string
	// before prepares the namespace, begin makes the change that the manager must
	// carry out; no manager runs meanwhile.
	before, begin func(*cluster)
	// over is nil once nothing is left to be done.
	over func(*cluster) error
	// end is what it comes to, without what tells one run from another.
	end func(*cluster) map[string]string
	// times are how often objects have to have been created, if not at most once.
	times map[string]int
}

// deployed is the plot of an Instance that is new, and whose plan has twelve steps
// and every kind of task.
var deployed = plot{
	name:   "deploy",
	before: func(c *cluster) { c.twelveSteps() },
	begin:  func(c *cluster) { c.instance("web", "app-1") },
	over:   func(c *cluster) error { return c.ran("deploy Complete") },
	end:    (*cluster).everything,
	times:  map[string]int{"ConfigMap use": 1, "Instance web": 1},
}

// updated is the plot of an upgrade after which some is new, some has changed, some
// is no longer rendered, and some cannot be changed and is recreated.
var updated = plot{
	name: "update with pruning",
	before: func(c *cluster) {
		c.operator("app-1", fmt.Sprintf(pruning, "1", "old"))
		c.operator("app-2", fmt.Sprintf(pruning, "2", "new"))
		c.manage()
		c.instance("web", "app-1")
		c.rests("web", "deploy Complete")
		c.halt()
	},
	begin: func(c *cluster) { c.change("web", use("app-2")) },
	over:  func(c *cluster) error { return c.ran("deploy Complete, update Complete") },
	end:   (*cluster).everything,
	times: map[string]int{"ConfigMap old": 1, "Secret old": 1, "ConfigMap new": 1, "Secret new": 1, "Job job": 2, "ConfigMap last": 1},
}

// changedOver is the plot of an upgrade of what KUDO has applied.
var changedOver = plot{
	name: "upgrade of what was changed over",
	before: func(c *cluster) {
		c.inherit()
		c.manage()
		c.rests("web", "")
		c.halt()
	},
	begin: func(c *cluster) { c.change("web", use("app-2")) },
	over:  func(c *cluster) error { return c.ran("update Complete") },
	end: func(c *cluster) map[string]string {
		end, d := c.everything(), c.deployment("app")
		end["Pod template"] = fmt.Sprint(len(d.Spec.Template.Spec.Containers), len(d.Spec.Template.Spec.Containers[0].Env), d.Spec.Template.Annotations)
		return end
	},
	times: map[string]int{"Deployment app": 1, "ConfigMap app": 1},
}

// pruning is a package whose objects are called otherwise in each version.
const pruning = `
version: "%[1]s"
tasks:
- {name: base, kind: Apply, spec: {resources: [base.yaml]}}
- {name: job, kind: Apply, spec: {resources: [job.yaml]}}
- {name: last, kind: Apply, spec: {resources: [last.yaml]}}
templates:
  base.yaml: |
    {apiVersion: v1, kind: ConfigMap, metadata: {name: "%[2]s"}}
    ---
    {apiVersion: v1, kind: Secret, metadata: {name: "%[2]s", annotations: {spillway.dev/generate-once: "password=24"}}}
    ---
    {apiVersion: v1, kind: ConfigMap, metadata: {name: both}, data: {name: "%[2]s"}}
  job.yaml: |
    apiVersion: batch/v1
    kind: Job
    metadata: {name: job, annotations: {spillway.dev/on-immutable: recreate}}
    spec: {template: {spec: {restartPolicy: Never, containers: [{name: c, image: "%[2]s"}]}}}
  last.yaml: "{apiVersion: v1, kind: ConfigMap, metadata: {name: last}, data: {name: '%[2]s'}}"
plans:
  deploy: &p {strategy: serial, phases: [{name: a, steps: [{name: base, tasks: [base]}, {name: job, tasks: [job]}]}, {name: b, steps: [{name: last, tasks: [last]}]}]}
  update: *p
`

// deleted is the plot of an Instance that is cleaned up and goes.
var deleted = plot{
	name: "cleanup on delete",
	before: func(c *cluster) {
		c.operator("app-1", cleaning)
		c.manage()
		c.instance("web", "app-1")
		c.rests("web", "deploy Complete")
		c.halt()
	},
	begin: func(c *cluster) { c.remove(&v1beta1.Instance{}, "web") },
	over: func(c *cluster) error {
		if err := c.get(&v1beta1.Instance{}, "web"); !apierrors.IsNotFound(err) {
			return fmt.Errorf("Instance web still exists: %w", err)
		}
		if end := c.everything(); len(end) > 0 {
			return fmt.Errorf("what it owns still exists: %v", end)
		}
		return nil
	},
	end:   (*cluster).everything,
	times: map[string]int{"ConfigMap web": 1, "ConfigMap saved": 1, "ConfigMap words": 1},
}

// cleaning is a package whose cleanup saves something, deletes, and leaves a word;
// which goes with the Instance, as all that it owns.
const cleaning = `
version: "1"
tasks:
- {name: app, kind: Apply, spec: {resources: [app.yaml]}}
- {name: save, kind: Apply, spec: {resources: [saved.yaml]}}
- {name: delete, kind: Delete, spec: {resources: [app.yaml]}}
- {name: words, kind: Apply, spec: {resources: [words.yaml]}}
templates:
  app.yaml: |
    {apiVersion: v1, kind: ConfigMap, metadata: {name: "{{ .Name }}"}}
    ---
    apiVersion: apps/v1
    kind: Deployment
    metadata: {name: "{{ .Name }}"}
    spec: {replicas: 0, selector: {matchLabels: {app: web}}, template: {metadata: {labels: {app: web}}, spec: {containers: [{name: c, image: x}]}}}
  saved.yaml: "{apiVersion: v1, kind: ConfigMap, metadata: {name: saved}}"
  words.yaml: "{apiVersion: v1, kind: ConfigMap, metadata: {name: words}}"
plans:
  deploy: {phases: [{name: main, steps: [{name: app, tasks: [app]}]}]}
  cleanup: {phases: [{name: main, strategy: serial, steps: [{name: save, tasks: [save]}, {name: delete, tasks: [delete]}, {name: words, tasks: [words]}]}]}
`

// story runs a plot and records what can be observed of it.
type story struct {
	*cluster

	plot    plot
	witness *witness
}

// newStory is at the moment at which it has begun, and no manager runs.
func newStory(t *testing.T, p plot) *story {
	t.Helper()
	t.Parallel()
	return begin(newQuietCluster(t), p)
}

func begin(c *cluster, p plot) *story {
	c.t.Helper()
	p.before(c)
	s := &story{cluster: c, plot: p, witness: newWitness(c)}
	p.begin(c)
	return s
}

// tell waits for the end; meanwhile is called all along.
func (s *story) tell(meanwhile func()) {
	s.t.Helper()
	s.eventually(func() error {
		meanwhile()
		return s.plot.over(s.cluster)
	})
	s.witness.check(s.plot.times)
}

// ran is nil if this is the history of Instance web.
func (c *cluster) ran(history string) error {
	i := c.now("web")
	if got := historyOf(i); got != history {
		return fmt.Errorf("the history is %q; it waits for %q at %q", got, i.Status.WaitingFor, i.Status.Place)
	}
	return nil
}

// everything is what the Instance web consists of.
func (c *cluster) everything() map[string]string {
	c.t.Helper()
	end := map[string]string{}
	deployments, secrets := &appsv1.DeploymentList{}, &corev1.SecretList{}
	c.list(deployments)
	c.list(secrets)
	for i := range secrets.Items {
		end["Secret "+secrets.Items[i].Name] = fmt.Sprint(slices.Sorted(maps.Keys(secrets.Items[i].Data)))
	}
	for i := range deployments.Items {
		end["Deployment "+deployments.Items[i].Name] = fmt.Sprint(*deployments.Items[i].Spec.Replicas)
	}
	configMaps, instances := &corev1.ConfigMapList{}, &v1beta1.InstanceList{}
	c.list(configMaps)
	c.list(instances)
	for i := range configMaps.Items {
		end["ConfigMap "+configMaps.Items[i].Name] = fmt.Sprint(configMaps.Items[i].Data)
	}
	for i := range instances.Items {
		end["Instance "+instances.Items[i].Name] = c.history(instances.Items[i].Name) + ": " + inventoryOf(&instances.Items[i])
	}
	delete(end, "ConfigMap kube-root-ca.crt")
	return end
}

func inventoryOf(i *v1beta1.Instance) string {
	var all []string
	for _, entry := range i.Status.Inventory {
		all = append(all, entry.Kind+" "+entry.Name)
	}
	slices.Sort(all)
	return strings.Join(all, ", ")
}

// witness sees every object that is created, and every status, on watches of its own.
type witness struct {
	c      *cluster
	mu     sync.Mutex
	uids   map[string]map[string]bool
	active []string
	// foreseen are the steps that decide when a plan ends, as statuses said.
	foreseen []string
}

func newWitness(c *cluster) *witness {
	c.t.Helper()
	w := &witness{c: c, uids: map[string]map[string]bool{}}
	w.watch()
	return w
}

// watch watches from now on, after what there is. It must be called again after the
// API server was away.
func (w *witness) watch() {
	w.c.t.Helper()
	d, err := dynamic.NewForConfig(w.c.cp.Config())
	if err != nil {
		w.c.t.Fatal(err)
	}
	for _, resource := range []schema.GroupVersionResource{
		{Version: "v1", Resource: "configmaps"}, {Version: "v1", Resource: "secrets"}, {Version: "v1", Resource: "pods"},
		{Group: "apps", Version: "v1", Resource: "deployments"}, {Group: "batch", Version: "v1", Resource: "jobs"},
		v1beta1.GroupVersion.WithResource("instances"),
	} {
		watch, err := d.Resource(resource).Namespace(w.c.namespace).Watch(context.Background(), metav1.ListOptions{})
		if err != nil {
			w.c.t.Fatal(err)
		}
		w.c.t.Cleanup(watch.Stop)
		go func() {
			for e := range watch.ResultChan() {
				if u, ok := e.Object.(*unstructured.Unstructured); ok {
					w.see(u)
				}
			}
		}()
	}
}

func (w *witness) see(u *unstructured.Unstructured) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if u.GetKind() == "Pod" && !strings.Contains(u.GetName(), ".") {
		return // a Deployment's
	}
	name := u.GetKind() + " " + u.GetName()
	if w.uids[name] == nil {
		w.uids[name] = map[string]bool{}
	}
	w.uids[name][string(u.GetUID())] = true
	if u.GetKind() == "Instance" {
		w.active = append(w.active, running(u))
		if step, ok, _ := unstructured.NestedString(u.Object, "status", "forecast", "decides"); ok {
			w.foreseen = append(w.foreseen, step)
		}
	}
}

// running are the plans that a status shows to be in progress.
func running(u *unstructured.Unstructured) string {
	statuses, _, _ := unstructured.NestedMap(u.Object, "status", "planStatus")
	var all []string
	for name := range statuses {
		state, _, _ := unstructured.NestedString(statuses, name, "status")
		if v1beta1.ExecutionStatus(state).IsRunning() {
			all = append(all, name)
		}
	}
	return strings.Join(all, " and ")
}

// check fails if something was not created as often as it should have been, or a
// status showed two plans.
func (w *witness) check(times map[string]int) {
	w.c.t.Helper()
	w.c.eventually(func() error { // the witness may be a little behind
		w.mu.Lock()
		defer w.mu.Unlock()
		for name, n := range times {
			if len(w.uids[name]) < n {
				return fmt.Errorf("%s was created %d times, not %d", name, len(w.uids[name]), n)
			}
		}
		return nil
	})
	w.mu.Lock()
	defer w.mu.Unlock()
	for name, uids := range w.uids {
		if len(uids) > max(times[name], 1) {
			w.c.t.Errorf("%s was created %d times", name, len(uids))
		}
	}
	for _, plans := range w.active {
		if strings.Contains(plans, " and ") {
			w.c.t.Errorf("a status showed %s", plans)
		}
	}
}

// without is what a plot comes to without a fault, and the writes that it takes.
type without struct {
	once   sync.Once
	end    map[string]string
	writes int
}

// faultless caches the end of each plot without a fault, by the name of the plot.
var faultless = map[string]*without{deployed.name: {}, updated.name: {}, deleted.name: {}, changedOver.name: {}, gated.name: {}}

// undisturbed runs a plot without a fault, once for all tests.
func undisturbed(t *testing.T, p plot) (end map[string]string, writes int) {
	t.Helper()
	w := faultless[p.name]
	w.once.Do(func() {
		t.Run("without a fault", func(t *testing.T) {
			s := begin(newQuietCluster(t), p)
			s.manage()
			s.tell(func() {})
			w.end, w.writes = s.plot.end(s.cluster), len(s.faults.Writes())
			for i, write := range s.faults.Writes() {
				t.Log(i+1, write)
			}
		})
	})
	return w.end, w.writes
}

func (s *story) matches(end map[string]string) {
	s.t.Helper()
	if got := s.plot.end(s.cluster); !maps.Equal(got, end) {
		s.t.Errorf("the end is\n%v\nand not\n%v", got, end)
	}
}

// TestFaultTheManagerStopsAtAWrite tells the plot with every kind of task by managers that stop after a write of it, all of
// them before a release, and others that go on: a pass applies each object again, so that one that stops at each of its
// writes does not get through a task of several objects. Updates, pruning and gates are tried in memory.
func TestFaultTheManagerStopsAtAWrite(t *testing.T) {
	end, writes := undisturbed(t, deployed)
	for n := 1; n <= writes; n += testenv.Size(4, 1) {
		t.Run(fmt.Sprintf("after write %d of %d", n, writes), func(t *testing.T) {
			s, inj := newStory(t, deployed), fault.New()
			inj.StopAt(n, fault.After)
			s.tell(inj.WithSuccessor(func(i *fault.Injector) func() { return s.manageWith(i) }))
			s.matches(end)
		})
	}
}

// TestFaultTheManagerStopsAtEveryWrite tells the plots that have no model in memory by managers that stop.
func TestFaultTheManagerStopsAtEveryWrite(t *testing.T) {
	for _, p := range []plot{deleted, changedOver} {
		t.Run(p.name, func(t *testing.T) {
			end, writes := undisturbed(t, p)
			testenv.AtEveryWrite(t, writes/2, func(t *testing.T, begin fault.Begin) {
				s := newStory(t, p)
				s.tell(begin(func(i *fault.Injector) func() { return s.manageWith(i) }))
				s.matches(end)
			})
		})
	}
}

// TestFaultTwoManagersParallel has two managers that know nothing of each other.
func TestFaultTwoManagersParallel(t *testing.T) {
	for _, p := range []plot{deployed, updated, deleted, gated} {
		end, _ := undisturbed(t, p)
		t.Run(p.name, func(t *testing.T) {
			s := newStory(t, p)
			s.manageWith(fault.New())
			s.manageWith(fault.New())
			s.tell(func() {})
			s.matches(end)
		})
	}
}

// TestFaultConflicts refuses every third write.
func TestFaultConflicts(t *testing.T) {
	for _, p := range []plot{deployed, updated, deleted} {
		end, _ := undisturbed(t, p)
		t.Run(p.name, func(t *testing.T) {
			s, inj, n := newStory(t, p), fault.New(), 0
			inj.Conflict(func(fault.Request) bool { n++; return n%3 == 1 })
			s.manageWith(inj)
			s.tell(func() {})
			s.matches(end)
		})
	}
}

// TestFaultTheConnectionIsCut cuts the connection in the middle of a plan.
func TestFaultTheConnectionIsCut(t *testing.T) {
	end, _ := undisturbed(t, deployed)
	s, inj := newStory(t, deployed), fault.New()
	s.manageWith(inj)
	s.eventually(func() error {
		if s.data("base") == nil {
			return errors.New("it has not begun")
		}
		return nil
	})
	inj.Cut()
	inj.Restore()
	s.tell(func() {})
	s.matches(end)
}

// TestFaultTheAPIServerIsRestarted kills the API server in the middle of a plan, at
// several moments, and starts it again. The manager stays.
func TestFaultTheAPIServerIsRestarted(t *testing.T) {
	end, writes := undisturbed(t, deployed)
	t.Parallel()
	cp := testenv.Own(t, controlplane.Options{Nodes: 2})
	install(t, newClient(t, cp))
	for _, after := range []int{2, writes / 3, writes * 2 / 3} {
		t.Run(fmt.Sprintf("after %d of %d writes", after, writes), func(t *testing.T) {
			s := begin(newClusterOn(t, cp), deployed)
			s.manage()
			s.eventually(func() error {
				if n := len(s.faults.Writes()); n < after {
					return fmt.Errorf("%d writes", n)
				}
				return nil
			})
			cp.StopAPIServer()
			if err := cp.StartAPIServer(t.Context()); err != nil {
				t.Fatal(err)
			}
			s.witness.watch()
			s.tell(func() {})
			s.matches(end)
		})
	}
}

// TestFaultStatusWritesAreRefused has a policy refuse to write the status for a
// while: nothing happens that the status does not tell of.
func TestFaultStatusWritesAreRefused(t *testing.T) {
	end, _ := undisturbed(t, deployed)
	const step = "!has(object.status.planStatus) || !('deploy' in object.status.planStatus) || object.status.planStatus['deploy'].phases[0].steps[2].status != 'IN_PROGRESS'"
	for name, test := range map[string]struct {
		// allowed is what the policy allows.
		allowed string
		// done are objects that exist meanwhile, undone are objects that do not.
		done, undone []client.Object
	}{
		"from the beginning":      {"false", nil, []client.Object{&corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: "base"}}}},
		"in the middle of a plan": {step, []client.Object{&corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: "base"}}}, []client.Object{&appsv1.Deployment{ObjectMeta: metav1.ObjectMeta{Name: "app"}}}},
	} {
		t.Run(name, func(t *testing.T) {
			s := newStory(t, deployed)
			lift := s.refuseStatus(test.allowed)
			s.manage()
			s.triesInVain(3)
			for _, obj := range test.done {
				if err := s.get(obj, obj.GetName()); err != nil {
					t.Error(err)
				}
			}
			for _, obj := range test.undone {
				if err := s.get(obj, obj.GetName()); !apierrors.IsNotFound(err) {
					t.Errorf("%T %s exists, but no status records it: %v", obj, obj.GetName(), err)
				}
			}
			lift()
			s.tell(func() {})
			s.matches(end)
		})
	}
}

// refuseStatus refuses statuses of Instances but for those that are allowed, until
// it is lifted.
func (s *story) refuseStatus(allowed string) (lift func()) {
	s.t.Helper()
	rule := admissionregistrationv1.NamedRuleWithOperations{}
	rule.Operations = []admissionregistrationv1.OperationType{admissionregistrationv1.Update}
	rule.APIGroups, rule.APIVersions, rule.Resources = []string{v1beta1.GroupVersion.Group}, []string{"*"}, []string{"instances/status"}
	policy := &admissionregistrationv1.ValidatingAdmissionPolicy{
		ObjectMeta: metav1.ObjectMeta{Name: s.namespace + ".refuses-statuses"},
		Spec: admissionregistrationv1.ValidatingAdmissionPolicySpec{
			MatchConstraints: &admissionregistrationv1.MatchResources{
				ResourceRules:     []admissionregistrationv1.NamedRuleWithOperations{rule},
				NamespaceSelector: &metav1.LabelSelector{MatchLabels: map[string]string{corev1.LabelMetadataName: s.namespace}},
			},
			Validations: []admissionregistrationv1.Validation{{Expression: allowed, Message: "no status now"}},
		},
	}
	binding := &admissionregistrationv1.ValidatingAdmissionPolicyBinding{
		ObjectMeta: metav1.ObjectMeta{Name: policy.Name},
		Spec: admissionregistrationv1.ValidatingAdmissionPolicyBindingSpec{
			PolicyName: policy.Name, ValidationActions: []admissionregistrationv1.ValidationAction{admissionregistrationv1.Deny},
		},
	}
	for _, obj := range []client.Object{policy, binding} {
		if err := s.client.Create(s.t.Context(), obj); err != nil {
			s.t.Fatal(err)
		}
		s.t.Cleanup(func() { _ = s.client.Delete(context.Background(), obj) }) // it may be lifted by then
	}
	i := s.now("web")
	step := v1beta1.StepStatus{Name: "app", Status: v1beta1.InProgress}
	i.Status.PlanStatus = map[string]v1beta1.PlanStatus{"deploy": {Phases: []v1beta1.PhaseStatus{{Steps: []v1beta1.StepStatus{step, step, step}}}}}
	s.eventually(func() error {
		if err := s.client.Status().Update(s.t.Context(), i.DeepCopy(), client.DryRunAll); err == nil || !strings.Contains(err.Error(), "no status now") {
			return fmt.Errorf("the policy is not in force: %w", err)
		}
		return nil
	})
	return func() {
		if err := s.client.Delete(s.t.Context(), binding); err != nil {
			s.t.Fatal(err)
		}
	}
}

// triesInVain waits until so many writes of the status have been refused, one after
// another.
func (s *story) triesInVain(n int) {
	s.t.Helper()
	version, from := "", 0
	s.eventually(func() error {
		tried := 0
		for _, r := range s.faults.Requests() {
			if r.Subresource == "status" && r.Name == "web" {
				tried++
			}
		}
		if now := s.now("web").ResourceVersion; now != version {
			version, from = now, tried
		}
		if tried < from+n {
			return fmt.Errorf("%d writes of the status in vain", tried-from)
		}
		return nil
	})
}
