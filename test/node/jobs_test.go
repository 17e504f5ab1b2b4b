//go:build node

package node_test

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/spillway-dev/spillway/api/kudo/v1beta1"
	"github.com/spillway-dev/spillway/internal/manager"
	"github.com/spillway-dev/spillway/internal/plans"
)

// template is the spec of a Job whose Pod runs the program.
func template(app, mode, more string) string {
	return fmt.Sprintf("spec:\n  %s\n  template:\n    metadata: {labels: {app: %s}}\n    spec:\n      restartPolicy: Never\n%s", more, app, indent(container(mode, byEnv)))
}

// begun waits until the one Pod of a Job that runs has read a value: not one that it had before.
func (w *world) begun(app, value string, before string) {
	w.t.Helper()
	w.eventually(func() error {
		live := w.live(app)
		if len(live) != 1 {
			return fmt.Errorf("%s has %d Pods", app, len(live))
		}
		return errors.Join(want(false, fmt.Sprint(w.uids(app)) == before), w.answers(app, "/read", value))
	})
}

// All Pods of a Job have the content with which it began, also one that replaces an evicted Pod, and
// also of a Job that a CronJob makes; the next Job has the present one.
func TestAJobKeepsItsContent(t *testing.T) {
	w := newWorld(t)
	w.pinnable()
	w.secret("good")
	w.manage()
	job := func(name string) string {
		return "apiVersion: batch/v1\nkind: Job\nmetadata: {name: " + name + ", annotations: {spillway.dev/pin-config: \"true\"}}\n" + template(name, "serve", "backoffLimit: 3")
	}
	w.apply(job("job"), "apiVersion: batch/v1\nkind: CronJob\nmetadata: {name: cron, annotations: {spillway.dev/pin-config: \"true\"}}\n"+
		"spec:\n  schedule: \"* * * * *\"\n  concurrencyPolicy: Forbid\n  jobTemplate:\n    "+strings.ReplaceAll(template("cron", "serve", "backoffLimit: 3"), "\n", "\n    "))
	names := []string{"job", "cron"}
	for _, name := range names {
		w.begun(name, "good", "")
	}
	w.secret("bad")
	before := map[string]string{}
	for _, name := range names {
		before[name] = fmt.Sprint(w.uids(name))
	}
	w.evict(names...)
	for _, name := range names {
		w.begun(name, "good", before[name])
	}
	w.apply(job("next"))
	w.died("next", "bad")
}

// A plan runs a Job to its end. One that fails fails the plan, which says so, and runs again by a retry.
func TestAPlanRunsAJob(t *testing.T) {
	w := newWorld(t)
	w.secret("good")
	w.manage(func(o *manager.Options) {
		o.Rings, o.Plans = []string{manager.RingPlans}, plans.Options{Now: w.clock.Now}
	})
	job := "apiVersion: batch/v1\nkind: Job\nmetadata: {name: \"{{ .Name }}\"}\n" + template("{{ .Name }}", "once", "backoffLimit: 0")
	w.apply("apiVersion: kudo.dev/v1beta1\nkind: OperatorVersion\nmetadata: {name: migration-1}\nspec:\n  operator: {name: migration}\n  version: \"1\"\n" +
		"  tasks: [{name: job, kind: Apply, spec: {resources: [job.yaml]}}]\n  plans: {deploy: {phases: [{name: all, steps: [{name: all, tasks: [job]}]}]}}\n" +
		"  templates:\n    job.yaml: |\n      " + strings.ReplaceAll(job, "\n", "\n      "))
	instance := "apiVersion: kudo.dev/v1beta1\nkind: Instance\nmetadata: {name: %s, annotations: {spillway.dev/retry-plan: %q}}\nspec: {operatorVersion: {name: migration-1}}"
	ended := func(name, results, why string) (uid string) {
		w.eventually(func() error {
			i := &v1beta1.Instance{}
			if err := w.get(i, name); err != nil {
				return err
			}
			got := ""
			for _, past := range i.Status.History {
				got += string(past.Result) + " "
			}
			if i.Status.Execution != nil {
				uid = string(i.Status.Execution.UID)
			}
			if strings.TrimSpace(got) != results || !strings.Contains(i.Status.WaitingFor, why) {
				return fmt.Errorf("%s: %s: %s", name, got, i.Status.WaitingFor)
			}
			return nil
		})
		return uid
	}
	w.apply(fmt.Sprintf(instance, "first", ""))
	ended("first", "Complete", "")
	w.died("first", "good")
	w.secret("bad")
	w.apply(fmt.Sprintf(instance, "second", ""))
	failed := ended("second", "Failed", "Job second failed")
	w.died("second", "bad")
	w.secret("good")
	w.apply(fmt.Sprintf(instance, "second", failed))
	ended("second", "Complete Failed", "") // the last one first
	w.died("second", "good")
}
