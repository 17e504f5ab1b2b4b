package plans_test

import (
	"errors"
	"testing"

	batchv1 "k8s.io/api/batch/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"github.com/spillway-dev/spillway/internal/vocabulary"
)

// TestAJobThatKubernetesRemovesRunsOnce: a Job that is removed after it is complete does not run
// again while its step waits for something else.
func TestAJobThatKubernetesRemovesRunsOnce(t *testing.T) {
	c := newCluster(t)
	c.operator("app-1", `
version: "1"
tasks: [{name: job, kind: Apply, spec: {resources: [job.yaml]}}, {name: app, kind: Apply, spec: {resources: [app.yaml]}}]
templates:
  app.yaml: "{apiVersion: v1, kind: ConfigMap, metadata: {name: app}}"
  job.yaml: "{apiVersion: batch/v1, kind: Job, metadata: {name: job}, spec: {ttlSecondsAfterFinished: 2, template: {spec: {restartPolicy: Never, containers: [{name: c, image: x}]}}}}"
plans: {deploy: {phases: [{name: main, steps: [{name: all, tasks: [job, app]}]}]}}
`)
	c.apply("{apiVersion: v1, kind: ConfigMap, metadata: {name: app}}")
	c.manage()
	c.instance("web", "app-1")
	c.waits("web", "ConfigMap app exists and does not belong to Instance web")
	c.eventually(func() error {
		if c.requests("jobs", "job") == 0 {
			return errors.New("the Job has not run")
		}
		err := c.get(&batchv1.Job{}, "job")
		if apierrors.IsNotFound(err) {
			return nil
		}
		return errors.Join(errors.New("the Job is not removed"), err)
	})
	c.apply(`{apiVersion: v1, kind: ConfigMap, metadata: {name: app, annotations: {spillway.dev/adopt: "true"}}}`)
	c.rests("web", "deploy Complete")
	if n := c.requests("jobs", "job"); n != 1 {
		t.Errorf("the Job was written %d times", n)
	}
}

// TestAJobThatFailedRunsAgainByARetry: it is kept until then.
func TestAJobThatFailedRunsAgainByARetry(t *testing.T) {
	c := newCluster(t)
	c.operator("app-1", one("{apiVersion: batch/v1, kind: Job, metadata: {name: job}, spec: {activeDeadlineSeconds: 1, template: {metadata: {annotations: {testenv.spillway.dev/behavior: still}}, spec: {restartPolicy: Never, containers: [{name: c, image: x}]}}}}"))
	c.manage()
	c.instance("web", "app-1")
	c.rests("web", "deploy Failed")
	first := &batchv1.Job{}
	if err := c.get(first, "job"); err != nil {
		t.Fatal(err)
	}
	c.change("web", annotate(vocabulary.RetryPlan.Native, string(c.now("web").Status.Execution.UID)))
	c.rests("web", "deploy Failed, deploy Failed")
	second := &batchv1.Job{}
	if err := c.get(second, "job"); err != nil || second.UID == first.UID {
		t.Errorf("the Job has not run again: %v", err)
	}
}
