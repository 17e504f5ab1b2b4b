package plans_test

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/util/retry"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/spillway-dev/spillway/api/kudo/v1beta1"
	"github.com/spillway-dev/spillway/internal/lab/testenv"
	"github.com/spillway-dev/spillway/internal/vocabulary"
)

// admitted1 is a package with all that the tables of what is admitted speak of;
// admitted2 is the next version, which has neither OLD nor the plan paint, and of
// which KEY can no longer be changed. Plan hold, and cleanup, never end.
const admitted1 = `
version: "1"
parameters:
- {name: NODES, default: "3", value-type: integer}
- {name: COLOR, default: red, trigger: paint}
- {name: SIZE, default: s, trigger: resize}
- {name: LOST, trigger: missing}
- {name: ALL, default: a, trigger: deploy}
- {name: MUST, required: true}
- {name: MODE, default: a, enum: [a, b]}
- {name: FIXED, default: f, immutable: true}
- {name: KEY, default: k}
- {name: OLD, default: o}
tasks: [{name: done, kind: Dummy, spec: {done: true}}, {name: never, kind: Dummy, spec: {wantErr: true}}]
plans:
  deploy: &done {phases: [{name: main, steps: [{name: s, tasks: [done]}]}]}
  update: *done
  upgrade: *done
  paint: *done
  resize: *done
  backup: *done
  hold: &never {phases: [{name: main, steps: [{name: s, tasks: [never]}]}]}
  cleanup: *never
`

var admitted2 = strings.NewReplacer(
	`version: "1"`, `version: "2"`,
	"- {name: OLD, default: o}\n", "- {name: NEW, default: n}\n- {name: PINNED, default: p, immutable: true}\n",
	"- {name: KEY, default: k}", "- {name: KEY, default: k, immutable: true}",
).Replace(admitted1)

// answer is what becomes of a change: nothing is said, or it is refused by the
// policy, which works without a manager, or by the webhook, which does not.
type answer struct{ policy, webhook string }

func policy(text string) answer  { return answer{policy: text} }
func webhook(text string) answer { return answer{webhook: text} }

var allowed = answer{}

// with is the answer while the manager runs or not.
func (a answer) with(manager bool) string {
	if a.policy == "" && manager {
		return a.webhook
	}
	return a.policy
}

// row is one of the tables of what is admitted.
type row struct {
	change        func(*v1beta1.Instance)
	idle, running answer
}

func rows() map[string]row {
	const (
		both      = "spec.planExecution can request a plan only if nothing else in the spec changes; make two separate changes"
		cleanup   = "plan cleanup runs when the Instance is deleted; request another plan"
		immutable = "spec.parameters.FIXED: is immutable; revert the change"
	)
	versionRuns := policy("plan hold is running: spec.operatorVersion can change after it has ended")
	parametersRun := policy("plan hold is running: spec.parameters can change after it has ended")
	planRuns := policy("plan hold is running: spec.planExecution can request another plan after it has ended")
	to2 := func(pairs ...string) func(*v1beta1.Instance) {
		return all(use("admitted-2"), set("KEY", "k", "PINNED", "p"), set(pairs...))
	}
	unset := func(names ...string) func(*v1beta1.Instance) {
		return func(i *v1beta1.Instance) {
			for _, name := range names {
				delete(i.Spec.Parameters, name)
			}
		}
	}
	return map[string]row{
		"parameters":                                {set("NODES", "4"), allowed, parametersRun},
		"a parameter with a trigger":                {set("COLOR", "blue"), allowed, parametersRun},
		"a trigger, and none":                       {set("COLOR", "blue", "NODES", "4"), allowed, parametersRun},
		"two triggers":                              {set("COLOR", "blue", "SIZE", "l"), webhook("SIZE: triggers plan resize, but COLOR has changed too and triggers plan paint"), parametersRun},
		"a trigger that does not exist":             {set("LOST", "x"), webhook("LOST: triggers plan missing, which OperatorVersion admitted-1 does not have"), parametersRun},
		"an unknown parameter":                      {set("NODE", "4"), webhook("NODE: is not a parameter of OperatorVersion admitted-1; remove it"), parametersRun},
		"a parameter of another type":               {set("NODES", "many"), webhook("NODES: must be an integer"), parametersRun},
		"a parameter outside its enum":              {set("MODE", "c"), webhook("MODE: must be one of a, b"), parametersRun},
		"a required parameter that is removed":      {unset("MUST"), webhook("MUST: is required; set it"), parametersRun},
		"a required parameter that is emptied":      {set("MUST", ""), webhook("MUST: is required; set it"), parametersRun},
		"an immutable parameter":                    {set("FIXED", "x"), webhook(immutable), parametersRun},
		"an immutable parameter, as it was":         {set("FIXED", "f"), allowed, parametersRun},
		"upgrade":                                   {to2(), allowed, versionRuns},
		"upgrade without what becomes immutable":    {all(use("admitted-2"), set("PINNED", "p")), webhook("KEY: becomes immutable with OperatorVersion admitted-2; set it"), versionRuns},
		"upgrade without what comes immutable":      {all(use("admitted-2"), set("KEY", "k")), webhook("PINNED: becomes immutable with OperatorVersion admitted-2; set it"), versionRuns},
		"upgrade that removes a parameter":          {all(to2(), unset("OLD")), allowed, versionRuns},
		"upgrade that leaves a parameter behind":    {to2(), allowed, versionRuns},
		"upgrade and parameters":                    {to2("NODES", "4"), webhook("NODES: triggers plan update and has changed together with the OperatorVersion"), versionRuns},
		"upgrade and parameters that deploy":        {to2("ALL", "b"), allowed, versionRuns},
		"upgrade and parameters that are new":       {to2("NEW", "x"), allowed, versionRuns},
		"upgrade and an immutable parameter":        {to2("FIXED", "x"), webhook("FIXED"), versionRuns},
		"upgrade to what does not exist":            {use("admitted-9"), allowed, versionRuns},
		"upgrade and a plan":                        {all(to2(), ask("backup")), policy(both), versionRuns},
		"parameters and a plan":                     {all(set("NODES", "4"), ask("backup")), policy(both), parametersRun},
		"a plan":                                    {ask("backup"), allowed, planRuns},
		"a plan that does not exist":                {ask("none"), webhook("OperatorVersion admitted-1 has no plan none; name a plan that it has"), planRuns},
		"plan cleanup":                              {ask("cleanup"), policy(cleanup), policy(cleanup)},
		"the plan that runs, again":                 {askAgain("hold", "again"), allowed, allowed},
		"the wish is cleared":                       {askAgain("", "u"), allowed, policy("plan hold is running: spec.planExecution cannot be cleared")},
		"a manifest that has no wish":               {ask(""), allowed, allowed},
		"labels":                                    {func(i *v1beta1.Instance) { i.Labels = map[string]string{"a": "b"} }, allowed, allowed},
		"annotations":                               {annotate("a", "b"), allowed, allowed},
		"a finalizer":                               {func(i *v1beta1.Instance) { i.Finalizers = append(i.Finalizers, "example.com/x") }, allowed, allowed},
		"nothing":                                   {func(*v1beta1.Instance) {}, allowed, allowed},
		"the namespace that is meant anyway":        {func(i *v1beta1.Instance) { i.Spec.OperatorVersion.Namespace = i.Namespace }, allowed, allowed},
		"parameters that supersede":                 {all(set("NODES", "4"), supersede), allowed, allowed},
		"an unknown parameter that is to supersede": {all(set("NODE", "4"), supersede), webhook("NODE: is not a parameter"), webhook("NODE: is not a parameter")},
	}
}

func askAgain(plan, uid string) func(*v1beta1.Instance) {
	return func(i *v1beta1.Instance) {
		i.Spec.PlanExecution = v1beta1.PlanExecution{PlanName: plan, UID: types.UID(uid)}
	}
}

func supersede(i *v1beta1.Instance) {
	annotate(vocabulary.SupersedePlan.Native, string(i.Status.Execution.UID))(i)
}

// creations are what becomes of Instances that are new.
func creations() map[string]row {
	must := set("MUST", "m")
	return map[string]row{
		"created":                           {change: must},
		"created with parameters":           {change: all(must, set("NODES", "4", "COLOR", "blue", "SIZE", "l", "FIXED", "x"))},
		"created with a plan":               {change: all(must, ask("backup"))},
		"created before its package":        {change: all(must, use("admitted-9"))},
		"created without what is required":  {change: func(*v1beta1.Instance) {}, idle: webhook("MUST: is required; set it")},
		"created with an unknown parameter": {change: all(must, set("NODE", "4")), idle: webhook("NODE: is not a parameter of OperatorVersion admitted-1; remove it")},
		"created with a wrong type":         {change: all(must, set("NODES", "many")), idle: webhook("NODES: must be an integer")},
		"created outside an enum":           {change: all(must, set("MODE", "c")), idle: webhook("MODE: must be one of a, b")},
		"created without a plan for it":     {change: use("undeployable-1"), idle: webhook("OperatorVersion undeployable-1 has no plan deploy; use one that has it")},
		"created to clean up":               {change: all(must, ask("cleanup"))},
	}
}

// deletions are what becomes of changes while the Instance is deleted; plan hold
// stands for cleanup, which runs then.
func deletions() map[string]row {
	spec := policy("the Instance is being deleted: its spec can no longer change")
	plan := policy("the Instance is being deleted: only plan cleanup can run")
	return map[string]row{
		"deleting: parameters":                       {set("NODES", "4"), spec, spec},
		"deleting: an unknown one":                   {set("NODE", "4"), spec, spec},
		"deleting: upgrade":                          {use("admitted-2"), spec, spec},
		"deleting: a plan":                           {ask("backup"), plan, plan},
		"deleting: cleanup":                          {ask("cleanup"), allowed, allowed},
		"deleting: parameters that are to supersede": {all(set("NODES", "4"), supersede), spec, spec},
		"deleting: labels":                           {func(i *v1beta1.Instance) { i.Labels = map[string]string{"a": "b"} }, allowed, allowed},
		"deleting: released":                         {func(i *v1beta1.Instance) { i.Finalizers = nil }, allowed, allowed},
	}
}

// TestTheTablesOfAdmission has every row of the tables of what is admitted, for an
// Instance that is idle and one whose plan runs, with the manager up and down.
// The changes are dry runs, so that one Instance does for all of them.
func TestTheTablesOfAdmission(t *testing.T) {
	c := newCluster(t)
	c.operator("admitted-1", admitted1)
	c.operator("admitted-2", admitted2)
	c.operator("undeployable-1", "version: \"1\"\nplans: {update: {}}")
	c.serve()
	for _, name := range []string{"idle", "running", "leaving", "cleaning"} {
		c.instance(name, "admitted-1", "MUST", "m", "OLD", "x")
		c.rests(name, "deploy Complete")
	}
	c.change("running", ask("hold"))
	c.active("running", "hold")
	c.remove(&v1beta1.Instance{}, "cleaning")
	c.active("cleaning", "cleanup")
	c.change("leaving", func(i *v1beta1.Instance) { i.Finalizers = append(i.Finalizers, held) })
	c.remove(&v1beta1.Instance{}, "leaving")
	c.active("leaving", "cleanup")
	c.change("leaving", annotate(vocabulary.AbandonPlan.Native, string(c.now("leaving").Status.Execution.UID)))
	c.active("leaving", "")
	t.Cleanup(func() {
		for _, name := range []string{"idle", "running", "leaving", "cleaning"} {
			release(c.client, client.ObjectKey{Namespace: c.namespace, Name: name})
		}
	})

	for _, manager := range []bool{true, false} {
		state := map[bool]string{true: "manager up", false: "manager down"}[manager]
		if !manager {
			c.halt()
		}
		for name, r := range rows() {
			t.Run(name+", idle, "+state, func(t *testing.T) { c.tries(t, "idle", r.change, r.idle.with(manager)) })
			t.Run(name+", running, "+state, func(t *testing.T) { c.tries(t, "running", r.change, r.running.with(manager)) })
		}
		for name, r := range deletions() {
			t.Run(name+", idle, "+state, func(t *testing.T) { c.tries(t, "leaving", r.change, r.idle.with(manager)) })
			t.Run(name+", running, "+state, func(t *testing.T) { c.tries(t, "cleaning", r.change, r.running.with(manager)) })
		}
		for name, r := range creations() {
			t.Run(name+", "+state, func(t *testing.T) {
				i := &v1beta1.Instance{ObjectMeta: metav1.ObjectMeta{Namespace: c.namespace, Name: "new"}}
				use("admitted-1")(i)
				r.change(i)
				judged(t, r.idle.with(manager), func() error { return c.client.Create(t.Context(), i.DeepCopy(), client.DryRunAll) })
			})
		}
	}
	c.decidesInTheEnd()
}

// tries makes a change as a dry run.
func (c *cluster) tries(t *testing.T, name string, change func(*v1beta1.Instance), want string) {
	t.Helper()
	judged(t, want, func() error {
		return retry.RetryOnConflict(retry.DefaultBackoff, func() error { // with a manager that tries again what fails
			i := c.now(name)
			change(i)
			return c.client.Update(t.Context(), i, client.DryRunAll)
		})
	})
}

// judged tries until it is answered as it should be: where there is much else to do, a
// webhook may be too late, and then lets pass what it would refuse.
func judged(t *testing.T, want string, try func() error) {
	t.Helper()
	testenv.Eventually(t, func(context.Context) error {
		if err := try(); want == "" && err != nil || want != "" && (err == nil || !strings.Contains(err.Error(), want)) {
			return errors.Join(fmt.Errorf("not judged as %q", want), err)
		}
		return nil
	})
}

// active waits until this plan runs, none if it is empty.
func (c *cluster) active(name, plan string) {
	c.t.Helper()
	c.eventually(func() error {
		if got := c.now(name).Status.AggregatedStatus.ActivePlan; got != plan {
			return fmt.Errorf("plan %q of %s runs, not %q", got, name, plan)
		}
		return nil
	})
}

// decidesInTheEnd makes every change in earnest that only the webhook refuses,
// while no manager serves it: the controller says the same, and runs no plan.
func (c *cluster) decidesInTheEnd() {
	c.t.Helper()
	refused := map[string]string{}
	for name, r := range rows() {
		if r.idle.webhook == "" || strings.Contains(name, "supersede") {
			continue
		}
		instance := strings.NewReplacer(" ", "-", ",", "").Replace(name)
		refused[instance] = r.idle.webhook
		c.instance(instance, "admitted-1", "MUST", "m", "OLD", "x")
	}
	c.manage()
	names := slices.Sorted(maps.Keys(refused))
	for _, name := range names {
		c.rests(name, "deploy Complete")
	}
	c.halt()
	for name, r := range rows() {
		instance := strings.NewReplacer(" ", "-", ",", "").Replace(name)
		if _, ok := refused[instance]; ok {
			c.change(instance, r.change)
		}
	}
	c.manage()
	for _, name := range names {
		c.waits(name, refused[name])
		if got := c.history(name); got != "deploy Complete" {
			c.t.Errorf("%s: %s", name, got)
		}
	}
}
