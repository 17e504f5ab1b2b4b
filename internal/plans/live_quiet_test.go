package plans_test

import (
	"fmt"
	"strings"
	"testing"
	"time"
)

// TestTheCostOfAPlan: one apply for each object and one write of the status for
// each transition, those of the first status being the last of the choice.
func TestTheCostOfAPlan(t *testing.T) {
	c := newCluster(t)
	c.operator("app-1", one("{apiVersion: v1, kind: ConfigMap, metadata: {name: app}}"))
	c.manage()
	c.instance("web", "app-1")
	c.rests("web", "deploy Complete")
	counts := map[string]int{}
	for _, w := range c.faults.Writes() {
		counts[w.Verb+" "+w.Resource+" "+w.Subresource]++
	}
	want := map[string]int{"create controllerrevisions ": 1, "patch configmaps ": 1, "update instances status": 2}
	for what, n := range want {
		if counts[what] != n {
			t.Errorf("%s: %d, not %d", what, counts[what], n)
		}
	}
	if len(counts) != len(want) {
		t.Errorf("it wrote %v", counts)
	}
	s := c.now("web").Status
	if r := s.Rollout; r == nil || r.Phase != "Complete" || r.Units.Complete != 1 || r.Units.Total != 1 || len(r.Stages) != 1 || !strings.HasPrefix(r.Target, "deploy app-1 ") ||
		!r.FinishedAt.Equal(s.Execution.FinishedAt) || !r.StartedAt.Equal(&s.Execution.StartedAt) {
		t.Errorf("the record is %+v", r)
	}
}

// TestAHundredStepsThatDoNothing take no more writes of the status than there are
// waits, which is none.
func TestAHundredStepsThatDoNothing(t *testing.T) {
	var steps []string
	for n := range 100 {
		steps = append(steps, fmt.Sprintf("{name: s%d, tasks: [nop]}", n))
	}
	c := newCluster(t)
	c.operator("app-1", "version: \"1\"\ntasks: [{name: nop, kind: Dummy, spec: {done: true}}]\n"+
		"plans: {deploy: {phases: [{name: main, strategy: serial, steps: ["+strings.Join(steps, ", ")+"]}]}}")
	c.manage()
	c.instance("web", "app-1")
	c.rests("web", "deploy Complete")
	if writes := c.faults.Writes(); len(writes) > 3 {
		t.Errorf("%d writes: %v", len(writes), writes)
	}
}

// TestManyInstances: fifty Instances with five serial steps each cost one apply for
// each object, and at most one write of the status for each transition. Their OperatorVersion is read once by the next manager.
func TestManyInstances(t *testing.T) {
	const count, steps = 50, 5
	spec := "version: \"1\"\ntasks: ["
	plan := ""
	templates := ""
	for n := range steps {
		spec += fmt.Sprintf("{name: t%d, kind: Apply, spec: {resources: [t%d.yaml]}}, ", n, n)
		plan += fmt.Sprintf("{name: s%d, tasks: [t%d]}, ", n, n)
		templates += fmt.Sprintf("  t%d.yaml: \"{apiVersion: v1, kind: ConfigMap, metadata: {name: '{{ .Name }}-%d'}}\"\n", n, n)
	}
	c := newCluster(t)
	c.operator("app-1", spec+"]\ntemplates:\n"+templates+"plans: {deploy: {phases: [{name: main, strategy: serial, steps: ["+plan+"]}]}}")
	c.manage()
	for n := range count {
		c.instance(fmt.Sprintf("web-%d", n), "app-1")
	}
	c.barrier.Wait(t)
	for n := range count {
		if err := c.isAtRest(fmt.Sprintf("web-%d", n), "deploy Complete"); err != nil {
			t.Error(err)
		}
	}
	applies, statuses := 0, 0
	for _, w := range c.faults.Writes() {
		switch {
		case w.Verb == "patch" && w.Resource == "configmaps":
			applies++
		case w.Subresource == "status":
			statuses++
		}
	}
	if applies != count*steps || statuses > count*(steps+1) {
		t.Errorf("%d applies and %d writes of the status for %d Instances with %d steps", applies, statuses, count, steps)
	}
	t.Logf("%d requests in all: %d applies, %d writes of the status", len(c.faults.Requests()), applies, statuses)

	c.halt()

	c.manage()
	c.barrier.Wait(t)
	versions := 0
	for _, r := range c.faults.Requests() {
		if r.Verb == "get" && r.Resource == "operatorversions" {
			versions++
		}
	}
	if versions != 1 {
		t.Errorf("a manager that starts reads the one OperatorVersion %d times", versions)
	}
}

// TestStuckInstancesAreQuiet: Instances that wait for something neither write nor
// read anything while nothing happens to them.
func TestStuckInstancesAreQuiet(t *testing.T) {
	c := newCluster(t)
	c.operator("app-1", one(replace(web, "metadata: {name: app}", `metadata: {name: "{{ .Name }}"}`)))
	c.operator("other-1", one("{apiVersion: v1, kind: ConfigMap, metadata: {name: '{{ .Name }}'}}"))
	c.manage()
	const stuck = 5
	for n := range stuck {
		c.instance(fmt.Sprintf("stuck-%d", n), "app-1", "P", "never-ready")
	}
	for n := range stuck {
		c.waits(fmt.Sprintf("stuck-%d", n), "Available: 0/1")
	}
	for n := range stuck {
		c.eventually(func() error { // its controller has no more to say
			if s := c.deployment(fmt.Sprintf("stuck-%d", n)).Status; s.UpdatedReplicas != 1 || s.UnavailableReplicas != 1 || len(s.Conditions) < 2 {
				return fmt.Errorf("its status is %+v", s)
			}
			return nil
		})
	}
	c.barrier.Wait(t)
	c.faults.Reset()
	c.instance("meanwhile", "other-1")
	c.rests("meanwhile", "deploy Complete")
	c.barrier.Step(t, time.Hour)
	for _, r := range c.faults.Requests() {
		if strings.HasPrefix(r.Name, "stuck-") {
			t.Errorf("%+v", r)
		}
	}
}
