package describe_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	batchv1 "k8s.io/api/batch/v1"

	"github.com/spillway-dev/spillway/internal/config"
	"github.com/spillway-dev/spillway/internal/config/decision"
	"github.com/spillway-dev/spillway/internal/describe"
	"github.com/spillway-dev/spillway/internal/vocabulary"
)

// A CronJob that asks for pins, and whose Jobs do not, was written where pins were not enabled.
func TestWhyACronJobHasNoPins(t *testing.T) {
	t.Parallel()
	c := &batchv1.CronJob{}
	c.Annotations = map[string]string{vocabulary.PinConfig.Native: "true"}
	for _, want := range []string{
		"no: pins were not enabled in its namespace when it was written; enable them, and apply it again",
		"its next Job keeps the config that exists when it starts",
	} {
		if got := describe.CronJobFacts(c)[0].Values[0]; got != want {
			t.Errorf("%q, want %q", got, want)
		}
		c.Spec.JobTemplate.Annotations = c.Annotations
	}
}

// What Reloader would start for a change of config is not started, and that is said.
func TestNeitherJobsNorCronJobsAreRolled(t *testing.T) {
	t.Parallel()
	c, j := &batchv1.CronJob{}, &batchv1.Job{}
	for value, want := range map[string]int{"true": 1, "false": 0, "": 0} {
		c.Annotations = map[string]string{vocabulary.ReloaderAuto: value}
		j.Annotations = c.Annotations
		if of, job := describe.CronJobFacts(c), describe.JobFacts(j); len(of) != 1+want || len(job) != 1+want {
			t.Errorf("%q: %v, %v", value, of, job)
		}
	}
	c.Annotations = map[string]string{vocabulary.ReloaderListSecrets: "db"}
	want := "annotation secret.reloader.stakater.com/reload has no effect with Spillway, which rolls no CronJob: its next run has the new config"
	if got := describe.CronJobFacts(c)[1].Values[0]; got != want {
		t.Errorf("%q, want %q", got, want)
	}
	c.Annotations[vocabulary.ConfigSeen.Native] = "run@1"
	if got := describe.CronJobFacts(c)[1]; got.Values[0] != "for each change of its config, by annotations of Reloader" {
		t.Errorf("of one that is run: %v", got)
	}
}

// A workload that waits for a limit of the manager says which.
func TestLimitsAreFacts(t *testing.T) {
	t.Parallel()
	e := &config.Explanation{State: config.StateWaiting, Position: 3, Limits: &decision.Limits{UpdateRate: 0.5, MaxRolling: 2}}
	want := describe.FactOf("limit", "--update-rate=0.5", "--max-rolling=2")
	if diff := cmp.Diff(want, describe.WorkloadFacts(e)[2]); diff != "" {
		t.Error(diff)
	}
}
