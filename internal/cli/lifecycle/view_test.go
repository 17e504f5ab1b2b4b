package lifecycle

import (
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/spillway-dev/spillway/api/kudo/v1beta1"
	"github.com/spillway-dev/spillway/internal/plans"
)

var noon = time.Date(2026, 5, 4, 12, 0, 0, 0, time.UTC)

func at(seconds float64) *metav1.MicroTime {
	t := metav1.NewMicroTime(noon.Add(time.Duration(seconds * float64(time.Second))))
	return &t
}

// running is an Instance whose plan has done one phase of three, and waits in the
// second.
func running() *v1beta1.Instance {
	i := &v1beta1.Instance{}
	i.Status.Execution = &v1beta1.Execution{UID: "u", Plan: "deploy", Cause: v1beta1.CauseCreate, StartedAt: *at(0)}
	i.Status.AggregatedStatus = v1beta1.AggregatedStatus{Status: v1beta1.InProgress, ActivePlan: "deploy"}
	i.Status.Place, i.Status.WaitingFor = "two/app", "app is waiting: Deployment app: Available: 0/1"
	i.Status.PlanStatus = map[string]v1beta1.PlanStatus{"deploy": {Status: v1beta1.InProgress, Phases: []v1beta1.PhaseStatus{
		{Name: "one", Status: v1beta1.Complete, StartedAt: at(0), Steps: []v1beta1.StepStatus{
			{Name: "a", Status: v1beta1.Complete, StartedAt: at(0), FinishedAt: at(1.5)},
			{Name: "b", Status: v1beta1.Complete, StartedAt: at(0), FinishedAt: at(4.25)},
		}},
		{Name: "two", Status: v1beta1.InProgress, StartedAt: at(5), Steps: []v1beta1.StepStatus{
			{Name: "app", Status: v1beta1.InProgress, StartedAt: at(5)},
			{Name: "job", Status: v1beta1.Error, StartedAt: at(6), Message: "exceeded quota"},
		}},
		{Name: "three", Status: v1beta1.Pending, Steps: []v1beta1.StepStatus{{Name: "last", Status: v1beta1.Pending}}},
	}}}
	return i
}

func TestFrame(t *testing.T) {
	e, now := plans.ExplanationOf(running()), at(65.9).Time
	for name, test := range map[string]struct {
		width, height int
		want          string
	}{
		"all of it": {120, 40, `
app is waiting: Deployment app: Available: 0/1.

plan deploy    IN_PROGRESS  1m5s  the Instance was created
  phase one    COMPLETE     4.3s
    step a     COMPLETE     1.5s
    step b     COMPLETE     4.3s
  phase two    IN_PROGRESS  1m0s
    step app   IN_PROGRESS  1m0s
    step job   ERROR        59s   exceeded quota
  phase three  PENDING
    step last  PENDING
`},
		"what is done and what is to come is folded": {120, 11, `
app is waiting: Deployment app: Available: 0/1.

plan deploy    IN_PROGRESS  1m5s  the Instance was created
  phase one    COMPLETE     4.3s
  phase two    IN_PROGRESS  1m0s
    step app   IN_PROGRESS  1m0s
    step job   ERROR        59s   exceeded quota
  phase three  PENDING
`},
		"what does not fit is cut off": {30, 6, `
app is waiting: Deployment ap…

plan deploy    IN_PROGRESS  1…
  phase one    COMPLETE     4…
... and 4 more lines
`},
	} {
		t.Run(name, func(t *testing.T) {
			got := "\n" + strings.Join(frame(e, now, test.width, test.height), "\n") + "\n"
			if diff := cmp.Diff(test.want, got); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

// A frame is drawn over the former one, however long each of them is.
func TestAFrameCoversTheFormerOne(t *testing.T) {
	var b strings.Builder
	height := 40
	v := &liveView{out: &b, size: func() (int, int) { return 80, height }}
	v.show(running(), noon)
	if strings.Contains(b.String(), "\x1b") {
		t.Errorf("it erases what others have printed: %q", b.String())
	}
	first := strings.Count(b.String(), "\n")
	b.Reset()
	height = 11
	v.show(running(), noon)
	if first != 11 || !strings.HasPrefix(b.String(), "\r\x1b[11A\x1b[J") {
		t.Errorf("of %d lines, it erases %q", first, b.String()[:10])
	}
	b.Reset()
	v.show(running(), noon)
	if !strings.HasPrefix(b.String(), "\r\x1b[8A\x1b[J") {
		t.Errorf("it erases %q", b.String()[:10])
	}
}

// Without a terminal there is a line for each change, and none else.
func TestLines(t *testing.T) {
	var b strings.Builder
	v := &lineView{out: &b, steps: map[string]v1beta1.ExecutionStatus{}}
	i := running()
	v.show(i, at(10).Time)
	v.show(i, at(11).Time)
	step := &i.Status.PlanStatus["deploy"].Phases[1].Steps[0]
	step.Status, step.FinishedAt = v1beta1.Complete, at(12)
	i.Status.Place, i.Status.WaitingFor = "two/job", ""
	v.show(i, at(12).Time)
	want := `step one/a COMPLETE 1.5s
step one/b COMPLETE 4.3s
step two/job ERROR 4s
plan deploy IN_PROGRESS at two/app: app is waiting: Deployment app: Available: 0/1
step two/app COMPLETE 7s
plan deploy IN_PROGRESS at two/job
`
	if diff := cmp.Diff(want, b.String()); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}
