package execution

import (
	"fmt"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/spillway-dev/spillway/api/kudo/v1beta1"
)

// TestTheStepsOfTheHistoryAreBounded checks that the steps are kept of the newest executions of
// each plan that completed, those that they carried out, as long as they are not too many.
func TestTheStepsOfTheHistoryAreBounded(t *testing.T) {
	at := func(minute int) *metav1.MicroTime {
		return new(metav1.NewMicroTime(noon.Add(time.Duration(minute) * time.Minute)))
	}
	phase := func(steps, started int) []v1beta1.PhaseStatus {
		p := v1beta1.PhaseStatus{Name: "main"}
		for i := range steps {
			p.Steps = append(p.Steps, v1beta1.StepStatus{Name: fmt.Sprint(i), StartedAt: at(started), FinishedAt: at(10)})
		}
		return []v1beta1.PhaseStatus{p}
	}
	execution := func(plan string, result v1beta1.Result) *v1beta1.Execution {
		return &v1beta1.Execution{Plan: plan, StartedAt: *at(0), FinishedAt: at(10), Result: result}
	}
	var history []v1beta1.PastExecution
	kept := func() string {
		var all string
		for _, past := range history {
			all += fmt.Sprint(past.Plan, len(past.Steps), " ")
		}
		return all
	}
	for i, test := range []struct {
		plan           string
		result         v1beta1.Result
		steps, started int
		want           string
	}{
		{"a", v1beta1.ResultComplete, 2, 0, "a2 "},
		{"b", v1beta1.ResultFailed, 2, 0, "b0 a2 "},
		{"b", v1beta1.ResultComplete, 2, -5, "b0 b0 a2 "}, // an earlier try did it
		{"a", v1beta1.ResultComplete, 3, 0, "a3 b0 b0 a2 "},
		{"a", v1beta1.ResultComplete, 4, 0, "a4 a3 b0 b0 a2 "},
		{"a", v1beta1.ResultComplete, 5, 0, "a5 a4 a3 b0 b0 a2 "},
		{"a", v1beta1.ResultComplete, 6, 0, "a6 a5 a4 a3 b0 b0 a2 "},
		{"a", v1beta1.ResultComplete, 7, 0, "a7 a6 a5 a4 a3 b0 b0 a0 "},
		{"b", v1beta1.ResultComplete, stepsLimit - 19, 0, "b181 a7 a6 a5 a0 a0 b0 b0 a0 "},
		{"b", v1beta1.ResultComplete, stepsLimit + 1, 0, "b0 b181 a7 a6 a5 a0 a0 b0 b0 a0 "},
	} {
		history = Record(history, execution(test.plan, test.result), phase(test.steps, test.started))
		if got := kept(); got != test.want {
			t.Fatalf("after %d: %s, want %s", i+1, got, test.want)
		}
	}
}
