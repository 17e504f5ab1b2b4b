package plans_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/spillway-dev/spillway/api/kudo/v1beta1"
	"github.com/spillway-dev/spillway/internal/kube"
	"github.com/spillway-dev/spillway/internal/vocabulary"
)

// TestTimeouts: a plan, a phase and a step that take longer than they may end the
// plan, at that moment, though nothing happens by which anybody would notice.
func TestTimeouts(t *testing.T) {
	const plan = `plans: {deploy: {%s strategy: serial, phases: [
  {name: first, steps: [{name: quick, timeout: 1m, tasks: [quick]}]},
  {name: second, %s steps: [{name: slow, %s tasks: [slow]}]}]}}
`
	for name, test := range map[string]struct{ plan, phase, step, why string }{
		"of the plan":  {plan: "timeout: 3s,", why: "plan deploy failed: not complete after 3s (timeout)"},
		"of the phase": {phase: "timeout: 2s,", why: "phase second failed: not complete after 2s (timeout)"},
		"of the step":  {step: "timeout: 2s,", why: "step slow failed: not complete after 2s (timeout)"},
	} {
		t.Run(name, func(t *testing.T) {
			c := newCluster(t)
			c.operator("app-1", `
version: "1"
tasks: [{name: quick, kind: Apply, spec: {resources: [quick.yaml]}}, {name: slow, kind: Apply, spec: {resources: [slow.yaml]}}]
templates:
  quick.yaml: "{apiVersion: v1, kind: ConfigMap, metadata: {name: app}}"
  slow.yaml: |
`+indented(strings.ReplaceAll(web, `{{ if eq .Params.P "never-ready" }}, annotations: {testenv.spillway.dev/behavior: never-ready}{{ end }}`, ", annotations: {testenv.spillway.dev/behavior: never-ready}"))+
				"parameters: [{name: IMAGE, default: x}]\n"+fmt.Sprintf(plan, test.plan, test.phase, test.step))
			c.manage()
			c.instance("web", "app-1")
			c.rests("web", "deploy Failed")
			s := c.now("web").Status
			if !strings.Contains(s.WaitingFor, test.why) || s.AggregatedStatus.Status != v1beta1.FatalError {
				t.Errorf("%s: %s", s.AggregatedStatus.Status, s.WaitingFor)
			}
			if e := s.Execution; e.FinishedAt.Before(&e.StartedAt) || s.PlanStatus["deploy"].Phases[0].Status != v1beta1.Complete {
				t.Errorf("it began at %s and ended at %s, the first phase is %s", e.StartedAt, e.FinishedAt, s.PlanStatus["deploy"].Phases[0].Status)
			}
		})
	}
}

// indented is text as it stands in a template.
func indented(text string) string {
	return "    " + strings.ReplaceAll(strings.TrimSpace(text), "\n", "\n    ") + "\n"
}

// TestATimeoutThatPassedWhileNoManagerRan checks that such a timeout counts too.
func TestATimeoutThatPassedWhileNoManagerRan(t *testing.T) {
	c := newCluster(t)
	c.operator("app-1", replace(one(web), "deploy: &p {", "deploy: &p {timeout: 1h, "))
	c.manage()
	c.instance("web", "app-1", "P", "never-ready")
	c.waits("web", "Deployment app")
	c.halt()
	if got := c.history("web"); got != "" {
		t.Fatal(got)
	}
	c.clock.Step(time.Hour)
	c.manage()
	c.rests("web", "deploy Failed")
	if got := c.now("web").Status.WaitingFor; !strings.Contains(got, "not complete after 1h") {
		t.Error(got)
	}
}

// TestSupersede checks that, while a plan runs, a new spec replaces the old one if
// the user asks for it, and is refused otherwise.
func TestSupersede(t *testing.T) {
	for name, test := range map[string]struct {
		change  func(*v1beta1.Instance)
		history string
	}{
		"parameters":     {set("P", "b"), "deploy Superseded, deploy Complete"},
		"an upgrade":     {all(use("app-2"), func(i *v1beta1.Instance) { i.Spec.Parameters = nil }), "deploy Superseded, deploy Complete"},
		"another reason": {all(set("P", "b"), annotate("example.com/why", "because")), "deploy Superseded, deploy Complete"},
	} {
		t.Run(name, func(t *testing.T) {
			c := newCluster(t)
			c.operator("app-1", one(web))
			c.operator("app-2", one(web))
			c.manage()
			c.instance("web", "app-1", "P", "never-ready")
			c.waits("web", "Available: 0/1")
			err := c.tryChange("web", test.change)
			if err == nil || !strings.Contains(err.Error(), "plan deploy is running") {
				t.Fatalf("it is admitted without a word: %v", err)
			}
			uid := c.now("web").Status.Execution.UID
			c.change("web", test.change, annotate(vocabulary.SupersedePlan.Native, `{"uid":"`+string(uid)+`","by":"alice","reason":"it hangs"}`))
			c.rests("web", test.history)
			i := c.now("web")
			_, writer := kube.LastWrite(i, "parameters", "operatorVersion") // empty if it was created in that second
			if past := i.Status.History[1]; past.UID != uid || past.Message != "superseded by alice: it hangs" || past.UndoneBy != writer || i.Status.Execution.ChangedBy != writer || i.Status.Rollout.ChangedBy != writer {
				t.Errorf("%+v, want it undone by %q", past, writer)
			}
		})
	}
}

// TestSupersedeOnceDeployed: what was half done of the plan that is superseded is
// changed as well, and the snapshot stays what was last brought about in between.
func TestSupersedeOnceDeployed(t *testing.T) {
	c := newCluster(t)
	c.operator("app-1", one(web))
	c.manage()
	c.instance("web", "app-1")
	c.rests("web", "deploy Complete")
	c.change("web", set("P", "never-ready", "IMAGE", "y"))
	c.waits("web", "Deployment app")
	i := c.now("web")
	if got := i.Status.LastAppliedInstanceSpec.Parameters["P"]; got != "" {
		t.Errorf("the snapshot has P %q while the plan runs", got)
	}
	c.change("web", func(i *v1beta1.Instance) { i.Spec.Parameters = nil }, supersede) // back to what was applied, of which half has gone
	c.rests("web", "deploy Complete, update Superseded, update Complete")
	d := c.deployment("app")
	if image := d.Spec.Template.Spec.Containers[0].Image; image != "x" || d.Spec.Template.Annotations["testenv.spillway.dev/behavior"] != "" {
		t.Errorf("the Deployment has image %s and annotations %v", image, d.Spec.Template.Annotations)
	}
}
