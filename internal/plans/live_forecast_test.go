package plans_test

import (
	"slices"
	"testing"

	"github.com/spillway-dev/spillway/internal/lab/testenv"
	"github.com/spillway-dev/spillway/internal/lab/testenv/fault"
)

// twoDeployments is a package of two steps, each of which waits for a Deployment.
const twoDeployments = `
version: "1"
parameters: [{name: COLOR, default: red}]
tasks:
- {name: a, kind: Apply, spec: {resources: [a.yaml]}}
- {name: b, kind: Apply, spec: {resources: [b.yaml]}}
templates:
  a.yaml: &t |
    apiVersion: apps/v1
    kind: Deployment
    metadata: {name: "{{ .StepName }}"}
    spec: {replicas: 0, selector: {matchLabels: {app: x}}, template: {metadata: {labels: {app: x}}, spec: {containers: [{name: c, image: "{{ .Params.COLOR }}"}]}}}
  b.yaml: *t
plans:
  deploy: &p {strategy: serial, phases: [{name: main, strategy: serial, steps: [{name: a, tasks: [a]}, {name: b, tasks: [b]}]}]}
  update: *p
`

// updatedAgain is the plot of an update after which one has run before.
var updatedAgain = plot{
	name: "update that is foreseen",
	before: func(c *cluster) {
		c.operator("app-1", twoDeployments)
		c.manage()
		c.instance("web", "app-1")
		c.rests("web", "deploy Complete")
		c.change("web", set("COLOR", "green"))
		c.rests("web", "deploy Complete, update Complete")
		c.halt()
	},
	begin: func(c *cluster) { c.change("web", set("COLOR", "blue")) },
	over:  func(c *cluster) error { return c.ran("deploy Complete, update Complete, update Complete") },
	end:   (*cluster).everything,
	times: map[string]int{"Deployment a": 1, "Deployment b": 1},
}

// TestFaultEveryWriteOfAForecast runs an update a second time, with managers each of which stops
// at the first write that it can: what the status says of the end follows from what was written,
// and goes with the plan.
func TestFaultEveryWriteOfAForecast(t *testing.T) {
	testenv.AtEveryWrite(t, 4, func(t *testing.T, begin fault.Begin) {
		s := newStory(t, updatedAgain)
		s.tell(begin(func(i *fault.Injector) func() { return s.manageWith(i) }))
		i := s.now("web")
		if i.Status.Forecast != nil {
			t.Errorf("once the plan has ended it is %v", i.Status.Forecast)
		}
		for _, past := range i.Status.History {
			if len(past.Steps) != 2 || past.Steps[0].Name != "main/a" || past.Steps[1].FinishedAt.After(past.FinishedAt.Time) {
				t.Errorf("plan %s carried out %+v", past.Plan, past.Steps)
			}
		}
		s.witness.mu.Lock()
		defer s.witness.mu.Unlock()
		if steps := slices.Compact(s.witness.foreseen); !slices.Equal(steps, []string{"main/b"}) {
			t.Errorf("steps that decide the end: %v", steps)
		}
	})
}
