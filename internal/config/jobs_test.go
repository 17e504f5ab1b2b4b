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

	"github.com/spillway-dev/spillway/internal/config/jobs"
	"github.com/spillway-dev/spillway/internal/lab/testenv"
	"github.com/spillway-dev/spillway/internal/lab/testenv/fault"
)

const jobPins = native + "job-pins"

// job is a Job that uses the Secret db and asks for pins, and whose Pod does not end.
func job(name, spec string) string {
	return fmt.Sprintf(`apiVersion: batch/v1
kind: Job
metadata: {name: %s, annotations: {spillway.dev/pin-config: "true"}}
spec:
  %s
  template:
    metadata: {labels: {app: %s}, annotations: {testenv.spillway.dev/behavior: never-ready}}
    spec: {restartPolicy: Never, containers: [{name: c, image: x, envFrom: [{secretRef: {name: db}}]}]}`, name, spec, name)
}

func (w *world) job(name string) *batchv1.Job {
	w.t.Helper()
	j := &batchv1.Job{}
	if err := w.get(j, name); err != nil {
		w.t.Fatal(err)
	}
	return j
}

// removeJob deletes a Job with its Pods, as kubectl does.
func (w *world) removeJob(name string) {
	w.t.Helper()
	if err := w.client.Delete(w.t.Context(), w.job(name), client.PropagationPolicy(metav1.DeletePropagationBackground)); err != nil {
		w.t.Fatal(err)
	}
}

// podOf waits until a Job has a Pod, and returns the Secret that it refers to.
func (w *world) podOf(name string) string {
	w.t.Helper()
	w.eventually(func() error { return want(1, len(w.live(name))) })
	return w.live(name)[0].Spec.Containers[0].EnvFrom[0].SecretRef.Name
}

// The Pods of a Job keep the config that the Job started with, also those that are created
// again; the next Job gets the present one. The snapshot exists as long as the Job needs it.
func TestAJobKeepsItsConfig(t *testing.T) {
	w := newWorld(t)
	pinnable(w)
	w.options.Now = later
	w.secret("db", "p", "1")
	w.manage()
	w.apply(job("first", "backoffLimit: 10"))
	kept := w.podOf("first")
	if kept == "db" {
		t.Fatal("the Job runs without pins")
	}
	if err := want("set", w.job("first").Annotations[jobPins]); err != nil {
		t.Error(err)
	}
	w.secret("db", "p", "2")
	w.apply(job("second", "backoffLimit: 10"))
	second := w.podOf("second")
	old := w.live("first")[0]
	w.remove(&corev1.Pod{}, old.Name)
	w.eventually(func() error {
		if now := w.live("first"); len(now) != 1 || now[0].UID == old.UID {
			return errors.New("the Pod was not created again")
		}
		return nil
	})
	if err := errors.Join(want(kept, w.podOf("first")), want(false, second == kept || second == "db")); err != nil {
		t.Error(err)
	}
	w.settled()
	w.eventually(func() error { return want(2, len(w.snapshots())) })
	w.removeJob("first")
	w.eventually(func() error { return want(fmt.Sprint([]string{second}), fmt.Sprint(w.snapshots())) })
}

// A CronJob hands what it asks for to its Jobs. A Job that does not ask, or that a user has
// suspended, is not touched; the latter is pinned once it would start.
func TestWhichJobsArePinned(t *testing.T) {
	w := newWorld(t)
	pinnable(w)
	w.secret("db", "p", "1")
	w.manage()
	w.apply(`apiVersion: batch/v1
kind: CronJob
metadata: {name: nightly, annotations: {spillway.dev/pin-config: "true"}}
spec:
  schedule: "0 3 * * *"
  jobTemplate: {spec: {template: {spec: {restartPolicy: Never, containers: [{name: c, image: x, envFrom: [{secretRef: {name: db}}]}]}}}}`,
		strings.Replace(job("plain", "backoffLimit: 10"), "annotations: {spillway.dev/pin-config: \"true\"}", "labels: {a: b}", 1),
		job("later", "suspend: true"))
	c := &batchv1.CronJob{}
	if err := w.get(c, "nightly"); err != nil {
		t.Fatal(err)
	}
	made := &batchv1.Job{ObjectMeta: *c.Spec.JobTemplate.ObjectMeta.DeepCopy(), Spec: *c.Spec.JobTemplate.Spec.DeepCopy()} // as its controller does
	made.Namespace, made.Name, made.Spec.Template.Labels = w.namespace, "nightly-1", map[string]string{"app": "nightly-1"}
	made.Spec.Template.Annotations = map[string]string{"testenv.spillway.dev/behavior": "never-ready"}
	if err := w.client.Create(t.Context(), made); err != nil {
		t.Fatal(err)
	}
	pinned := w.podOf("nightly-1")
	if err := errors.Join(want("db", w.podOf("plain")), want(false, pinned == "db"), want("", w.job("later").Annotations[jobPins]), want(0, len(w.live("later")))); err != nil {
		t.Error(err)
	}
	w.patch(&batchv1.Job{}, "later", `{"spec":{"suspend":false}}`)
	if err := want(pinned, w.podOf("later")); err != nil {
		t.Error(err)
	}
	w.settled()
	writes := w.requests.take()
	w.settled()
	for _, write := range writesIn(w.requests.take()) {
		if strings.Contains(write, "/jobs/") {
			t.Errorf("%s, after %d requests", write, len(writes))
		}
	}
}

// A Job that no manager has seen does not start, nor does one whose config is missing, which it
// says. Who uninstalls lets them start.
func TestAJobWaitsForItsPins(t *testing.T) {
	w := newWorld(t)
	pinnable(w)
	w.apply(job("first", "backoffLimit: 10"))
	if j := w.job("first"); !*j.Spec.Suspend || j.Annotations[jobPins] != "wanted" {
		t.Fatalf("%v %v", j.Annotations, j.Spec.Suspend)
	}
	w.manage()
	w.eventually(func() error { return want("waiting: Secret db not found", w.job("first").Annotations[jobPins]) })
	w.secret("db", "p", "1")
	if w.podOf("first") == "db" {
		t.Error("it runs without pins")
	}
	w.halt()
	w.apply(job("second", "backoffLimit: 10"))
	released, err := jobs.Release(t.Context(), w.client, w.namespace)
	if err != nil || len(released) != 1 || released[0].Name != "second" {
		t.Error(released, err)
	}
	if err := want("db", w.podOf("second")); err != nil {
		t.Error(err)
	}
}

// The manager is stopped at every write by which a Job gets its pins, and another
// one starts. The Job never has a Pod without them.
func TestFaultAJobAtEveryWrite(t *testing.T) {
	tell := func(w *world, meanwhile func()) {
		w.t.Helper()
		f := &run{world: w}
		f.apply(job("first", "backoffLimit: 10"))
		f.eventually(func() error {
			meanwhile()
			return want(1, len(f.live("first")))
		})
		if err := errors.Join(want("set", f.job("first").Annotations[jobPins]), want(1, len(f.snapshots()))); err != nil {
			w.t.Error(err)
		}
		if err := want(f.snapshots()[0], f.podOf("first")); err != nil {
			w.t.Error(err)
		}
	}
	begin := func(w *world) *run {
		w.t.Helper()
		pinnable(w)
		w.secret("db", "p", "1")
		return &run{world: w}
	}
	testenv.Story(t, 2, func(t *testing.T, relay fault.Begin) {
		f := begin(newWorld(t))
		tell(f.world, relay(f.managed))
	})
	t.Run("two managers", func(t *testing.T) {
		f := begin(newWorld(t))
		f.managed(fault.New())
		f.managed(fault.New())
		tell(f.world, func() {})
	})
}
