package plans_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/spillway-dev/spillway/internal/lab/testenv/fault"
	"github.com/spillway-dev/spillway/internal/lab/testenv/measured"
)

// tellThroughout tells the story of a plan with a gate that is measured while it runs, by a manager
// and its successor. The plan waits for a user between its phases; one whose gate is refused does
// not begin the second one, though the user has approved it.
func (c *cluster) tellThroughout(begin fault.Begin, rate string) {
	c.t.Helper()
	service := measured.New(c.t)
	service.Says("deploy", rate)
	c.operator("app-1", twoPhases)
	if err := c.client.Create(c.t.Context(), service.Throughout(c.namespace, "errors")); err != nil {
		c.t.Fatal(err)
	}
	c.instanceWith("web", "app-1", "[{plan: deploy, name: errors, when: During}, {plan: deploy, phase: one, name: ok}]")
	meanwhile := begin(func(i *fault.Injector) func() { return c.manageWith(i, service.ReachedBy(c.t, i)) })
	const refused = "plan deploy is stopped: gate errors was refused: failed measurements: 1 (failureLimit 0)"
	c.eventually(func() error {
		meanwhile()
		c.atRest(5 * time.Second)
		if rate == measured.Fine {
			c.approvesOf("ok")
			return c.ran("deploy Complete")
		}
		if said := c.now("web").Status.WaitingFor; !strings.HasPrefix(said, refused) {
			return fmt.Errorf("it waits for %q", said)
		}
		return nil
	})
	if rate == measured.Bad {
		c.approvesOf("ok")
		c.waits("web", refused)
		if c.data("b") != nil {
			c.t.Error("the second phase has begun")
		}
	}
	for _, g := range c.gates() {
		if g.Spec.Gate != "errors" {
			continue
		}
		if err := service.CheckThroughout(&g, rate); err != nil {
			c.t.Error(err)
		}
	}
}

// approvesOf approves the gates of a name, if they were reached.
func (c *cluster) approvesOf(name string) {
	c.t.Helper()
	c.approveEach(func(gate string) bool { return gate == name })
}

// TestGateDuringAPlan: a gate stops a plan between two phases, before the gate between them is
// read. Once a user approves it after all, the plan continues.
func TestGateDuringAPlan(t *testing.T) {
	c := newCluster(t)
	c.tellThroughout(fault.New().WithSuccessor, measured.Bad)
	c.warns("GateRefused", "plan deploy is stopped: gate errors was refused")
	for _, g := range c.gates() {
		if g.Spec.Gate == "errors" {
			c.approve(&g)
		}
	}
	c.eventually(func() error {
		c.atRest(5 * time.Second)
		c.approves()
		return c.ran("deploy Complete")
	})
}

// TestGateDuringAPlanThatFails: nothing rolls any more, so the gate is decided, too.
func TestGateDuringAPlanThatFails(t *testing.T) {
	c, service := newCluster(t), measured.New(t)
	c.operator("app-1", strings.Replace(twoPhases, "metadata: {name: b}}", "metadata: {name: b}, data: 5}", 1))
	if err := c.client.Create(t.Context(), service.Throughout(c.namespace, "errors")); err != nil {
		t.Fatal(err)
	}
	c.manageWith(fault.New(), measured.Reached(t))
	c.instanceWith("web", "app-1", "[{plan: deploy, name: errors, when: During}, {plan: deploy, phase: one, name: ok}]")
	c.eventually(func() error {
		c.approvesOf("ok")
		return c.ran("deploy Failed")
	})
	c.eventually(func() error {
		c.atRest(5 * time.Second)
		for _, g := range c.gates() {
			if m := g.Status.Measurement; g.Spec.Gate == "errors" && (g.Spec.EndedAt == nil || m == nil || m.Verdict == "") {
				return fmt.Errorf("the gate is %+v: %+v", g.Spec, m)
			}
		}
		return nil
	})
}

// TestFaultTheManagerStopsDuringAPlan stops the manager at each write of a gate that is
// measured while a plan runs, and starts another one.
func TestFaultTheManagerStopsDuringAPlan(t *testing.T) {
	measured.EachStopDuring(t, 2, func(t *testing.T, begin fault.Begin, rate string) { newCluster(t).tellThroughout(begin, rate) })
}
