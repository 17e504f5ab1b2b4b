package config_test

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/spillway-dev/spillway/internal/config/reloader"
	"github.com/spillway-dev/spillway/internal/lab/testenv"
	"github.com/spillway-dev/spillway/internal/manager"
	"github.com/spillway-dev/spillway/internal/manifests"
)

// cronJob is a CronJob that uses the Secret db, and whose schedule begins in another year.
func cronJob(name, spec string, annotations ...string) string {
	all := ""
	for i := 0; i+1 < len(annotations); i += 2 {
		all += fmt.Sprintf("%s: %q, ", annotations[i], annotations[i+1])
	}
	return fmt.Sprintf(`apiVersion: batch/v1
kind: CronJob
metadata: {name: %s, annotations: {%s}}
spec:
  schedule: "0 3 1 1 *"
  %s
  jobTemplate:
    metadata: {labels: {app: %s}}
    spec:
      template:
        metadata: {labels: {app: %s}, annotations: {testenv.spillway.dev/behavior: never-ready}}
        spec: {restartPolicy: Never, containers: [{name: c, image: x, envFrom: [{secretRef: {name: db}}]}]}`, name, strings.TrimSuffix(all, ", "), spec, name, name)
}

// jobsOf are the Jobs of a CronJob.
func (w *world) jobsOf(name string) []batchv1.Job {
	w.t.Helper()
	list := &batchv1.JobList{}
	if err := w.client.List(w.t.Context(), list, client.InNamespace(w.namespace), client.MatchingLabels{"app": name}); err != nil {
		w.t.Fatal(err)
	}
	return list.Items
}

func (w *world) cronJob(name string) *batchv1.CronJob {
	w.t.Helper()
	c := &batchv1.CronJob{}
	if err := w.get(c, name); err != nil {
		w.t.Fatal(err)
	}
	return c
}

// ran fails unless the CronJobs have had these numbers of Jobs, once the manager rests.
func (w *world) ran(numbers map[string]int) {
	w.t.Helper()
	w.barrier.Wait(w.t)
	for name, n := range numbers {
		if err := want(n, len(w.jobsOf(name))); err != nil {
			w.t.Errorf("Jobs of %s: %v", name, err)
		}
	}
}

const seenOn = native + "config-seen"

// runs has the manager of a world run CronJobs, with the permissions of the chart, and without a window in which
// changes are collected.
func runs(w *world, change ...func(*reloader.Options)) {
	reloads(w, change...)
	w.options.RunCronJobs = true
	asInstalled(w, manifests.Reloader{CronJobs: true})
}

// asInstalled gives the manager of a world the permissions of the chart with some values, and no window in which changes are collected.
func asInstalled(w *world, values manifests.Reloader) {
	w.options.CoalesceWindow = 0
	o := manifests.Default(manager.RingConfig)
	o.Values.Reloader, o.Values.WatchNamespaces = values, w.options.Namespaces
	rules, err := o.RulesOfRole("spillway")
	if err != nil {
		w.t.Fatal(err)
	}
	user := "manager-of-" + w.namespace
	w.grant(user, rules)
	w.as = testenv.Shared().ConfigAs(user)
}

// A change of its config starts one run of a CronJob that asks for it, by annotations of Reloader on it. A
// suspended one is not run, also not later, and beginning runs nothing.
func TestCronJobsThatFollowTheirConfig(t *testing.T) {
	w := newWorld(t)
	runs(w, func(o *reloader.Options) { o.AutoAll = true })
	w.secret("db", "p", "1")
	w.apply(cronJob("follows", "suspend: false", autoReload, "true"), cronJob("silent", "suspend: false"), cronJob("suspended", "suspend: true", autoReload, "true"))
	w.manage()
	w.ran(map[string]int{"follows": 0, "silent": 0, "suspended": 0})

	w.secret("db", "p", "2")
	w.ran(map[string]int{"follows": 1, "silent": 0, "suspended": 0})
	job := w.jobsOf("follows")[0]
	if err := errors.Join(want("manual", job.Annotations["cronjob.kubernetes.io/instantiate"]), want(true, metav1.IsControlledBy(&job, w.cronJob("follows"))), want(true, job.Spec.Suspend == nil || !*job.Spec.Suspend)); err != nil {
		t.Error(err)
	}
	w.rests(func() { w.apply(cronJob("suspended", "suspend: false", autoReload, "true")) })
	w.ran(map[string]int{"follows": 1, "suspended": 0})

	w.secret("db", "p", "1") // a content that it was run with before
	w.ran(map[string]int{"follows": 2, "silent": 0, "suspended": 1})
}

// Without the flag a change starts no run, and writes neither the CronJob nor a Job: the next run has the new config.
func TestWithoutTheFlagTheNextRunHasTheNewConfig(t *testing.T) {
	w := newWorld(t)
	reloads(w)
	w.secret("db", "p", "1")
	w.apply(cronJob("nightly", "suspend: false", autoReload, "true"), foreign("web", "containers: [{name: c, image: x, envFrom: [{secretRef: {name: db}}]}]", autoReload, "true"))
	c := w.cronJob("nightly")
	job := &batchv1.Job{Spec: *c.Spec.JobTemplate.Spec.DeepCopy()}
	job.Namespace, job.Name, job.Annotations, job.Labels = w.namespace, "once", map[string]string{autoReload: "true"}, map[string]string{"app": "once"}
	if err := w.client.Create(t.Context(), job); err != nil {
		t.Fatal(err)
	}
	w.manage()
	w.ran(map[string]int{"nightly": 0})
	before := w.hash("web")
	w.secret("db", "p", "2")
	w.ran(map[string]int{"nightly": 0, "once": 1})
	after := w.job("once")
	if w.hash("web") == before || w.cronJob("nightly").Generation != c.Generation || w.cronJob("nightly").Annotations[seenOn] != "" || after.UID != job.UID || after.Generation != job.Generation {
		t.Errorf("the CronJob or the Job was written, or the Deployment was not: %+v, %+v", w.cronJob("nightly").ObjectMeta, after.ObjectMeta)
	}
}

// A manager that stopped after it had created the Job starts no other one, and one that was down runs what has
// changed meanwhile once.
func TestARunIsStartedOnce(t *testing.T) {
	w := newWorld(t)
	runs(w)
	w.secret("db", "p", "1")
	w.apply(cronJob("nightly", "suspend: false", autoReload, "true"))
	w.manage()
	w.ran(map[string]int{"nightly": 0})
	before := w.cronJob("nightly").Annotations[seenOn]
	w.secret("db", "p", "2")
	w.ran(map[string]int{"nightly": 1})
	after := w.cronJob("nightly").Annotations[seenOn]
	w.halt()

	c := w.cronJob("nightly")
	c.Annotations[seenOn] = before
	if err := w.client.Update(t.Context(), c); err != nil {
		t.Fatal(err)
	}
	w.manage()
	w.ran(map[string]int{"nightly": 1})
	if err := want(after, w.cronJob("nightly").Annotations[seenOn]); err != nil {
		t.Error(err)
	}
	w.halt()
	w.secret("db", "p", "3")
	w.secret("db", "p", "4")
	w.manage()
	w.ran(map[string]int{"nightly": 2})
}

// With concurrencyPolicy Forbid or Replace, the run waits for the one that is active, and counts as active itself. What changes
// while it waits is the same run.
func TestARunRespectsTheConcurrencyPolicy(t *testing.T) {
	for _, policy := range []batchv1.ConcurrencyPolicy{batchv1.ForbidConcurrent, batchv1.ReplaceConcurrent} {
		t.Run(string(policy), func(t *testing.T) { waitsForTheOther(t, policy) })
	}
}

func waitsForTheOther(t *testing.T, policy batchv1.ConcurrencyPolicy) {
	w := newWorld(t)
	runs(w)
	w.secret("db", "p", "1")
	w.apply(cronJob("nightly", "concurrencyPolicy: "+string(policy), autoReload, "true"))
	c := w.cronJob("nightly")
	first := &batchv1.Job{Spec: *c.Spec.JobTemplate.Spec.DeepCopy()}
	first.Namespace, first.Name, first.Labels = w.namespace, "nightly-scheduled", map[string]string{"app": "nightly"}
	first.OwnerReferences = []metav1.OwnerReference{*metav1.NewControllerRef(c, batchv1.SchemeGroupVersion.WithKind("CronJob"))}
	if err := w.client.Create(t.Context(), first); err != nil {
		t.Fatal(err)
	}
	w.eventually(func() error {
		c = w.cronJob("nightly")
		c.Status.Active = []corev1.ObjectReference{{APIVersion: "batch/v1", Kind: "Job", Namespace: w.namespace, Name: first.Name, UID: first.UID}}
		return w.client.Status().Update(t.Context(), c)
	})
	w.manage()
	w.ran(map[string]int{"nightly": 1})
	w.secret("db", "p", "2")
	w.ran(map[string]int{"nightly": 1}) // the one that was scheduled
	w.secret("db", "p", "3")
	w.ran(map[string]int{"nightly": 1})

	w.removeJob(first.Name)
	w.eventually(func() error {
		active := w.cronJob("nightly").Status.Active
		if len(active) != 1 || active[0].Name == first.Name {
			return fmt.Errorf("active are %v", active)
		}
		if j := w.job(active[0].Name); *j.Spec.Suspend {
			return errors.New("the Job is suspended")
		}
		return nil
	})
	w.ran(map[string]int{"nightly": 1})
}
