package gates_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apimeta "k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	"github.com/spillway-dev/spillway/api/spillway/v1alpha1"
	"github.com/spillway-dev/spillway/internal/lab/testenv"
	"github.com/spillway-dev/spillway/internal/lab/testenv/fault"
	"github.com/spillway-dev/spillway/internal/manager"
	"github.com/spillway-dev/spillway/internal/manifests"
)

// cronJob makes a CronJob that only gates run, with annotations of its own and of its Pods, and
// what else its Jobs have.
func (w *world) cronJob(annotations, ofPods, ofJobs string) *batchv1.CronJob {
	w.t.Helper()
	c := &batchv1.CronJob{}
	text := `
metadata: {name: smoke, annotations: {` + annotations + `}}
spec:
  schedule: "@yearly"
  suspend: true
  jobTemplate:
    spec:
      backoffLimit: 0
      ttlSecondsAfterFinished: 0
      ` + ofJobs + `
      template:
        metadata: {annotations: {` + ofPods + `}}
        spec: {restartPolicy: Never, containers: [{name: c, image: x, env: [{name: SPILLWAY_KIND, value: mine}]}]}
`
	if err := yaml.UnmarshalStrict([]byte(text), c); err != nil {
		w.t.Fatal(text, err)
	}
	c.Namespace = w.namespace
	if err := w.client.Create(w.t.Context(), c); err != nil {
		w.t.Fatal(err)
	}
	return c
}

const (
	permitted = `spillway.dev/runs-for-gates: "other, check"`
	failing   = `testenv.spillway.dev/behavior: fail`
	smoke     = `{job: {cronJob: smoke}, interval: 1h}`
)

func (w *world) jobs() []batchv1.Job {
	w.t.Helper()
	list := &batchv1.JobList{}
	if err := w.client.List(w.t.Context(), list, client.InNamespace(w.namespace)); err != nil {
		w.t.Fatal(err)
	}
	return list.Items
}

// onlyJob is the Job that there is.
func (w *world) onlyJob() *batchv1.Job {
	w.t.Helper()
	jobs := w.jobs()
	if len(jobs) != 1 {
		w.t.Fatalf("%d Jobs", len(jobs))
	}
	return &jobs[0]
}

// TestAJobDecides checks that the end of a Job is the verdict, what the Job is given, and that it
// stays until its end was seen, whatever its CronJob says.
func TestAJobDecides(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct{ pods, want string }{
		"it succeeds": {"", "True: 1 of 1 measurements succeeded; last: Job %s succeeded"},
		"it fails":    {failing, "False: failed measurements: 1 (failureLimit 0); last: Job %s failed: BackoffLimitExceeded: "},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			w.cronJob(permitted, test.pods, "")
			w.template(smoke)
			w.gate("g", true)
			w.manage(w.requests)
			w.ends()
			job := w.onlyJob()
			w.says("g", fmt.Sprintf(test.want, job.Name))
			if !metav1.IsControlledBy(job, w.get("g")) || job.Spec.TTLSecondsAfterFinished != nil {
				t.Errorf("its owners are %v, its ttlSecondsAfterFinished is %v", job.OwnerReferences, job.Spec.TTLSecondsAfterFinished)
			}
			env := job.Spec.Template.Spec.Containers[0].Env
			for _, want := range []corev1.EnvVar{{Name: "SPILLWAY_ZONE", Value: "a"}, {Name: "SPILLWAY_REVISION", Value: "v2"}, {Name: "SPILLWAY_KIND", Value: "mine"}} {
				if !slices.Contains(env, want) {
					t.Errorf("%v lacks %v", env, want)
				}
			}
			if m := w.get("g").Status.Measurement; m.Job != nil || m.Sent != "Job "+job.Name+" of CronJob smoke" {
				t.Errorf("%+v", m)
			}
			if n := len(w.requests.Writes()); n != 3 {
				t.Errorf("%d writes: %v", n, w.requests.Writes())
			}
		})
	}
}

// ends waits until the Job that there is has ended.
func (w *world) ends() {
	w.t.Helper()
	w.barrier.Wait(w.t)
	testenv.Eventually(w.t, func(context.Context) error {
		if slices.ContainsFunc(w.onlyJob().Status.Conditions, func(c batchv1.JobCondition) bool { return c.Type == batchv1.JobComplete || c.Type == batchv1.JobFailed }) {
			return nil
		}
		return errors.New("the Job runs")
	})
}

// TestACronJobMustNameTheGate checks that who may create a GateTemplate cannot run what others
// have prepared, that the gate says what to do, and that it continues once it is permitted.
func TestACronJobMustNameTheGate(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.template(smoke)
	w.gate("g", true)
	w.manage(w.requests)
	w.says("g", `Unknown: 0 of 0 measurements succeeded, errors: 1; last: read CronJob smoke: cronjobs.batch "smoke" not found`)
	c := w.cronJob(`spillway.dev/runs-for-gates: "checks"`, "", "")
	w.barrier.Step(t, time.Hour)
	w.says("g", "Unknown: 0 of 0 measurements succeeded, errors: 2; last: CronJob smoke is not for gate check; to permit it, name the gate in its annotation spillway.dev/runs-for-gates")
	if jobs := w.jobs(); len(jobs) > 0 {
		t.Errorf("%d Jobs", len(jobs))
	}
	c.Annotations["spillway.dev/runs-for-gates"] = "check"
	if err := w.client.Update(t.Context(), c); err != nil {
		t.Fatal(err)
	}
	w.barrier.Step(t, time.Hour)
	w.ends()
	w.says("g", "True: 1 of 1 measurements succeeded, errors: 2; last: Job ")
}

// TestTheManagerMayRunNoJobByDefault checks that the installed permissions let the manager run no
// Job, and that a Role of the namespace does.
func TestTheManagerMayRunNoJobByDefault(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.cronJob(permitted, "", "")
	w.template(smoke)
	w.gate("g", true)
	w.user = "manager-of-" + w.namespace
	var rules []rbacv1.PolicyRule
	for _, part := range []string{manager.RingZones, manifests.Gates, manifests.Notify} {
		some, err := manifests.RulesOf(part)
		if err != nil {
			t.Fatal(err)
		}
		rules = append(rules, some...)
	}
	testenv.Grant(t, w.client, w.namespace, w.user, rules)
	w.manage(w.requests)
	w.says("g", "Unknown: 0 of 0 measurements succeeded, errors: 1; last: the manager may not create Job g-")
	role := &rbacv1.Role{}
	if err := w.client.Get(t.Context(), client.ObjectKey{Namespace: w.namespace, Name: "manager"}, role); err != nil {
		t.Fatal(err)
	}
	jobs := rbacv1.PolicyRule{APIGroups: []string{"batch"}, Resources: []string{"jobs"}, Verbs: []string{"create", "delete"}}
	role.Rules = append(role.Rules, jobs)
	if err := w.client.Update(t.Context(), role); err != nil {
		t.Fatal(err)
	}
	testenv.WaitPermitted(t, w.client, w.namespace, w.user, &jobs)
	w.barrier.Step(t, time.Hour)
	w.ends()
	w.says("g", "True: ")
}

// TestAJobThatIsDeleted checks that it is an error, that the gate says so, and that another one
// takes its place an interval later.
func TestAJobThatIsDeleted(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	c := w.cronJob(permitted, "", "suspend: true")
	w.template(smoke)
	w.gate("g", true)
	w.manage(w.requests)
	w.says("g", "Unknown: no measurement yet; Job g-")
	no, job := false, w.onlyJob()
	c.Spec.JobTemplate.Spec.Suspend = &no
	if err := w.client.Update(t.Context(), c); err != nil {
		t.Fatal(err)
	}
	if err := w.client.Delete(t.Context(), job, client.PropagationPolicy(metav1.DeletePropagationBackground)); err != nil {
		t.Fatal(err)
	}
	w.says("g", "Unknown: 0 of 0 measurements succeeded, errors: 1; last: Job "+job.Name+" was deleted before its end was seen")
	w.barrier.Step(t, time.Hour)
	w.ends()
	w.says("g", "True: 1 of 1 measurements succeeded, errors: 1; last: Job "+job.Name+" succeeded")
	if last := w.get("g").Status.Measurement.Last[1].Value; last != "Job "+job.Name+" was deleted before its end was seen" {
		t.Error(last)
	}
}

// TestADecidedGateStopsItsJob checks that a Job that nothing waits for any more is deleted, and
// that the decision of the user stays.
func TestADecidedGateStopsItsJob(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.cronJob(permitted, "", "suspend: true") // it does not end
	w.template(smoke)
	w.gate("g", true)
	w.manage(w.requests)
	w.says("g", "Unknown: no measurement yet; Job g-")
	w.onlyJob()
	testenv.Eventually(t, func(ctx context.Context) error {
		g := w.get("g")
		apimeta.SetStatusCondition(&g.Status.Conditions, metav1.Condition{Type: v1alpha1.GatePassed, Status: metav1.ConditionFalse, Reason: "Refused", Message: "not today"})
		return w.client.Status().Update(ctx, g)
	})
	w.says("g", "False: not today")
	if m := w.get("g").Status.Measurement; m.Job != nil || len(w.jobs()) > 0 {
		t.Error("its Job runs")
	}
}

// TestFaultTheManagerStopsWhileAJobRuns stops the manager at each write of a gate
// that a Job measures, and starts another one: there is one Job, and what it ended with is the
// verdict.
func TestFaultTheManagerStopsWhileAJobRuns(t *testing.T) {
	t.Parallel()
	ofGates := func(r fault.Request) bool {
		return r.Resource == "jobs" || strings.HasPrefix(r.Resource, "rolloutgates")
	}
	for _, when := range []fault.When{fault.Before, fault.After} {
		t.Run(when.String(), func(t *testing.T) {
			w := newWorld(t)
			w.cronJob(permitted, failing, "")
			w.template(smoke)
			w.gate("g", true)
			writes := fault.Relay(when, ofGates, func(begin fault.Begin) {
				meanwhile := begin(func(i *fault.Injector) func() { return w.manage(i) })
				testenv.Eventually(t, func(context.Context) error {
					meanwhile()
					if m := w.get("g").Status.Measurement; m == nil || m.Verdict == "" {
						return fmt.Errorf("it has no verdict: %+v", m)
					}
					return nil
				})
			})
			if writes != 3 { // the Job, that it runs, and the verdict
				t.Errorf("%d writes were made", writes)
			}
			w.saysEventually("g", "False: failed measurements: 1 (failureLimit 0); last: Job "+w.onlyJob().Name+" failed: ")
		})
	}
}
