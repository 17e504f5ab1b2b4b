package task

import (
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/types"

	"github.com/spillway-dev/spillway/api/kudo/v1beta1"
	"github.com/spillway-dev/spillway/internal/plans/write"
)

// TestAJobRunsAgainForWhatIsNew checks when a Job runs: once in a step, also if it is removed
// meanwhile; again for another template, and after it has failed in an earlier execution; and that one
// that still runs is not stopped.
func TestAJobRunsAgainForWhatIsNew(t *testing.T) {
	const (
		complete, failed = "{conditions: [{type: Complete, status: 'True'}]}", "{conditions: [{type: Failed, status: 'True', message: m}]}"
		here             = `annotations: {kudo.dev/last-plan-execution-uid: run, kudo.dev/phase: main, kudo.dev/step: one, spillway.dev/instance: shop/web}`
		deleted          = `, deletionTimestamp: "2026-05-04T09:00:00Z"`
	)
	job := func(metadata, status string) string {
		return "{apiVersion: batch/v1, kind: Job, metadata: {name: a, " + metadata + "}, spec: {}, status: " + status + "}"
	}
	timed := strings.Replace(job(here, complete), "spec: {}", "spec: {ttlSecondsAfterFinished: 0}", 1)
	for name, test := range map[string]struct {
		live, completedIn, annotation string
		refused                       bool
		want, completed               string
	}{
		"it does not exist":                      {want: "Apply Job a; "},
		"it was complete in this step":           {completedIn: "run main/one", want: "done"},
		"it was complete in another step":        {completedIn: "run main/two", want: "Apply Job a; "},
		"it was complete in another execution":   {completedIn: "former main/one", want: "Apply Job a; "},
		"it is complete":                         {live: job(here, complete), want: "done"},
		"it is complete, and will be removed":    {live: timed, want: "done", completed: "run main/one"},
		"it is complete, and being removed":      {live: job(here+deleted, complete), want: "done", completed: "run main/one"},
		"it has not ended, and is being removed": {live: job(here+deleted, "{}"), want: "waiting for the old Job a to be deleted"},
		"it has failed":                          {live: job(here, failed), want: "fatal: Job a failed: m"},
		"it has failed before":                   {live: job(former, failed), want: "Delete Job a; "},
		"it was complete before":                 {live: job(former, complete), want: "Apply Job a; "},
		"it was complete before, and is another": {live: job(former, complete), refused: true, want: "Delete Job a; "},
		"it runs since before, and is another":   {live: job(former, "{}"), refused: true, want: "fatal: Job a: an immutable field would change (field is immutable); to replace the object, annotate it in its template with spillway.dev/on-immutable=recreate"},
		"it is another, and must not change":     {live: job(former, complete), refused: true, annotation: "fail", want: "fatal: Job a: an immutable field would change (field is immutable); to replace the object, annotate it in its template with spillway.dev/on-immutable=recreate"},
		"it has failed before, of another":       {live: job("labels: {x: z}", failed), want: "blocked: Job a exists and does not belong to Instance web; to adopt it, annotate it with spillway.dev/adopt=true"},
	} {
		t.Run(name, func(t *testing.T) {
			r := running(t, "tasks: [{name: t, kind: Apply, spec: {resources: [a]}}]\ntemplates: {a: '{apiVersion: batch/v1, kind: Job, metadata: {name: a, annotations: {spillway.dev/on-immutable: \""+test.annotation+"\"}}, spec: {template: {spec: {containers: []}}}}'}")
			if test.completedIn != "" {
				r.Snapshot.Instance.Status.Inventory = []v1beta1.InventoryEntry{{Group: "batch", Version: "v1", Kind: "Job", Namespace: "shop", Name: "a", CompletedIn: test.completedIn}}
			}
			if test.live != "" {
				r.exists(t, test.live)
			}
			f := r.settle("t")
			if test.refused {
				r.refuse(&f.Writes[0], write.Refusal{Reason: "field is immutable", Immutable: types.UID(theUID)})
				f = r.settle("t")
			}
			if got := summary(&f); got != test.want {
				t.Errorf("%s, want %s", got, test.want)
			}
			preconditioned(t, f.Writes)
			if got := f.Completed[refTo("batch/v1", "Job", "a")]; got != test.completed {
				t.Errorf("it is noted as complete in %q, want %q", got, test.completed)
			}
			if len(f.Applies) != 1 && test.want != "blocked" {
				t.Errorf("it applies %v", f.Applies)
			}
		})
	}
}
