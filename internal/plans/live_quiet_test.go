package plans_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/spillway-dev/spillway/api/kudo/v1beta1"
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
	c.pass("before") // what the Deployments still had to say has been said by now
	c.eventually(func() error {
		c.faults.Reset()
		c.pass("meanwhile")
		for _, r := range c.faults.Requests() {
			if strings.HasPrefix(r.Name, "stuck-") {
				return fmt.Errorf("%+v", r)
			}
		}
		return nil
	})
}

// pass lets time pass by plans of another Instance, one after another.
func (c *cluster) pass(name string) {
	c.t.Helper()
	if err := c.get(&v1beta1.Instance{}, name); err != nil {
		c.instance(name, "other-1")
	}
	for range 5 {
		c.eventually(func() error {
			if i := c.now(name); i.Status.ObservedGeneration != i.Generation || i.Status.AggregatedStatus.ActivePlan != "" {
				return fmt.Errorf("a plan runs")
			}
			return nil
		})
		c.change(name, set("P", fmt.Sprint(c.now(name).Generation)))
	}
}
