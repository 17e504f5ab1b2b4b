package describe_test

import (
	"testing"

	batchv1 "k8s.io/api/batch/v1"

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
