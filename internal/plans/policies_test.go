package plans_test

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/spillway-dev/spillway/api/kudo/v1beta1"
	"github.com/spillway-dev/spillway/internal/lab/testenv"
	"github.com/spillway-dev/spillway/internal/vocabulary"
)

func instance(namespace string) *v1beta1.Instance {
	i := &v1beta1.Instance{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, GenerateName: "web-"}}
	i.Spec.OperatorVersion.Name = "app-1"
	i.Spec.Parameters = map[string]string{"NODES": "3"}
	return i
}

// TestTheGuard has the rows of the table of what is admitted that need the
// Instance alone, while no plan runs and while plan deploy does. There is no
// manager. An empty refusal means that the change is admitted.
func TestTheGuard(t *testing.T) {
	c := newQuietCluster(t).client
	namespace := testenv.Namespace(t)
	guards(t, c, namespace)

	const (
		versionRuns    = "plan deploy is running: spec.operatorVersion can change after it has ended"
		parametersRun  = "plan deploy is running: spec.parameters can change after it has ended, or now with annotation spillway.dev/supersede-plan=u1"
		another        = "plan deploy is running: spec.planExecution can request another plan after it has ended"
		cleared        = "plan deploy is running: spec.planExecution cannot be cleared; to abandon the plan, annotate the Instance with spillway.dev/abandon-plan=u1"
		both           = "spec.planExecution can request a plan only if nothing else in the spec changes; make two separate changes"
		cleanup        = "plan cleanup runs when the Instance is deleted; request another plan"
		deletedSpec    = "the Instance is being deleted: its spec can no longer change"
		deletedPlan    = "the Instance is being deleted: only plan cleanup can run"
		supersedeOther = "u0"
	)
	asks := func(plan, uid string) func(*v1beta1.Instance) {
		return func(i *v1beta1.Instance) {
			i.Spec.PlanExecution = v1beta1.PlanExecution{PlanName: plan, UID: types.UID(uid)}
		}
	}
	sets := func(name, value string) func(*v1beta1.Instance) {
		return func(i *v1beta1.Instance) { i.Spec.Parameters = map[string]string{name: value} }
	}
	upgrades := func(i *v1beta1.Instance) { i.Spec.OperatorVersion.Name = "app-2" }
	supersedes := func(uid string) func(*v1beta1.Instance) {
		return func(i *v1beta1.Instance) {
			i.Annotations = map[string]string{vocabulary.SupersedePlan.Native: `{"uid":"` + uid + `","by":"alice"}`}
		}
	}
	for name, test := range map[string]struct {
		before, change func(*v1beta1.Instance)
		idle, running  string
	}{
		"parameters":                 {nil, sets("NODES", "4"), "", parametersRun},
		"a parameter is removed":     {nil, func(i *v1beta1.Instance) { i.Spec.Parameters = nil }, "", parametersRun},
		"upgrade":                    {nil, upgrades, "", versionRuns},
		"another namespace":          {nil, func(i *v1beta1.Instance) { i.Spec.OperatorVersion.Namespace = "kudo" }, "", versionRuns},
		"the same namespace, named":  {nil, func(i *v1beta1.Instance) { i.Spec.OperatorVersion.Namespace = i.Namespace }, "", ""},
		"upgrade and parameters":     {nil, all(upgrades, sets("NODES", "4")), "", versionRuns},
		"upgrade and a plan":         {nil, all(upgrades, asks("backup", "")), both, versionRuns},
		"parameters and a plan":      {nil, all(sets("NODES", "4"), asks("backup", "")), both, parametersRun},
		"a plan":                     {nil, asks("backup", ""), "", another},
		"cleanup":                    {nil, asks("cleanup", ""), cleanup, cleanup},
		"the plan that runs":         {nil, asks("deploy", ""), "", ""},
		"the same plan, again":       {asks("deploy", "a"), asks("deploy", "b"), "", ""},
		"another than was asked for": {asks("deploy", "a"), asks("backup", "b"), "", another},
		"the wish is cleared":        {asks("deploy", "a"), asks("", "a"), "", cleared},
		"a manifest without wishes":  {asks("deploy", "a"), asks("", ""), "", ""},
		"labels":                     {nil, func(i *v1beta1.Instance) { i.Labels = map[string]string{"a": "b"} }, "", ""},
		"a finalizer":                {nil, func(i *v1beta1.Instance) { i.Finalizers = append(i.Finalizers, "example.com/x") }, "", ""},
		"nothing":                    {nil, func(*v1beta1.Instance) {}, "", ""},
		"parameters that supersede":  {nil, all(sets("NODES", "4"), supersedes("u1")), "", ""},
		"upgrade that supersedes":    {nil, all(upgrades, supersedes("u1")), "", ""},
		"superseding another":        {nil, all(sets("NODES", "4"), supersedes(supersedeOther)), "", parametersRun},

		"deleting: parameters": {deleting, sets("NODES", "4"), deletedSpec, deletedSpec},
		"deleting: upgrade":    {deleting, upgrades, deletedSpec, deletedSpec},
		"deleting: a plan":     {deleting, asks("backup", ""), deletedPlan, deletedPlan},
		"deleting: cleanup":    {deleting, asks("cleanup", ""), "", another},
		"deleting: labels":     {deleting, func(i *v1beta1.Instance) { i.Labels = map[string]string{"a": "b"} }, "", ""},
		"deleting: released":   {deleting, func(i *v1beta1.Instance) { i.Finalizers = nil }, "", ""},
	} {
		for state, want := range map[string]string{"idle": test.idle, "running": test.running} {
			t.Run(name+", "+state, func(t *testing.T) {
				i := instance(namespace)
				if test.before != nil {
					test.before(i)
				}
				create(t, c, i, state)
				test.change(i)
				if err := c.Update(t.Context(), i); want == "" && err != nil || want != "" && (err == nil || !strings.Contains(err.Error(), want)) {
					t.Errorf("%v, want %q", err, want)
				}
			})
		}
	}
}

func all(changes ...func(*v1beta1.Instance)) func(*v1beta1.Instance) {
	return func(i *v1beta1.Instance) {
		for _, change := range changes {
			change(i)
		}
	}
}

const held = "example.com/held"

// deleting marks an Instance that is to be deleted after it was created.
func deleting(i *v1beta1.Instance) { i.Finalizers = []string{held} }

// create makes an Instance with plan deploy running or not, deletes it if it is
// to be, and lets go of it at the end.
func create(t *testing.T, c client.Client, i *v1beta1.Instance, state string) {
	t.Helper()
	ctx := t.Context()
	if err := c.Create(ctx, i); err != nil {
		t.Fatal(err)
	}
	key := client.ObjectKeyFromObject(i)
	t.Cleanup(func() { release(c, key) })
	if state == "running" {
		i.Status.AggregatedStatus = v1beta1.AggregatedStatus{Status: v1beta1.InProgress, ActivePlan: "deploy"}
		i.Status.Execution = &v1beta1.Execution{UID: "u1", Plan: "deploy", Cause: v1beta1.CauseCreate, StartedAt: metav1.NowMicro()}
		if err := c.Status().Update(ctx, i); err != nil {
			t.Fatal(err)
		}
	}
	if len(i.Finalizers) > 0 {
		if err := c.Delete(ctx, i); err != nil {
			t.Fatal(err)
		}
		if err := c.Get(ctx, key, i); err != nil {
			t.Fatal(err)
		}
	}
}

func release(c client.Client, key client.ObjectKey) {
	i := &v1beta1.Instance{}
	if c.Get(context.Background(), key, i) != nil {
		return
	}
	i.Finalizers = nil
	_ = c.Update(context.Background(), i) // the namespace goes anyway
}

// guards waits until the API server has the guard in force.
func guards(t *testing.T, c client.Client, namespace string) {
	t.Helper()
	i := instance(namespace)
	create(t, c, i, "running")
	testenv.Eventually(t, func(ctx context.Context) error {
		i.Spec.Parameters = maps.Clone(i.Spec.Parameters)
		i.Spec.Parameters["NODES"] += "0"
		if err := c.Update(ctx, i, client.DryRunAll); err == nil {
			return errors.New("nothing is refused yet")
		} else if !strings.Contains(err.Error(), "is running") {
			return fmt.Errorf("refused: %w", err)
		}
		return nil
	})
}
