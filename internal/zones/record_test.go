package zones_test

import (
	"strings"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/spillway-dev/spillway/api/record"
	"github.com/spillway-dev/spillway/internal/describe"
	"github.com/spillway-dev/spillway/internal/lab/testenv"
	"github.com/spillway-dev/spillway/internal/zones"
)

// A user who may read the group alone sees its zones and Pods as the manager has recorded them; and one who
// may read everything sees the same.
func TestAViewerOfTheGroupAloneSeesItsState(t *testing.T) {
	w := newWorld(t)
	w.manage()
	w.settles(onDelete, replicas(2))
	w.behave("v2", "never-ready", "zone-a")
	w.roll("v2", "zone-b", "zone-c")
	w.eventually(func() error { return contains(w.images("zone-a"), "v2!") })
	w.waitsFor("Progressing", "zone-a-0 is updating")
	testenv.Grant(t, w.client, w.namespace, "viewer-of-"+w.namespace, []rbacv1.PolicyRule{
		{APIGroups: []string{"spillway.dev"}, Resources: []string{"rolloutgroups"}, Verbs: []string{"get", "list"}},
	})
	viewer, err := client.New(testenv.Shared().ConfigAs("viewer-of-"+w.namespace), client.Options{Scheme: w.client.Scheme()})
	if err != nil {
		t.Fatal(err)
	}
	if err := viewer.List(t.Context(), &appsv1.StatefulSetList{}, client.InNamespace(w.namespace)); !apierrors.IsForbidden(err) {
		t.Fatalf("the viewer may list StatefulSets: %v", err)
	}
	seen, err := zones.Status(t.Context(), viewer, w.options, w.namespace)
	if err != nil || len(seen) != 1 {
		t.Fatalf("%+v, %v", seen, err)
	}
	s := w.group().Status
	u := describe.Group(&seen[0])
	if string(u.Phase) != s.Phase || u.Sentence != s.WaitingFor || u.Total != 6 || u.Done != 0 || len(u.Units) != 3 {
		t.Errorf("%+v, want %+v", u, s)
	}
	if a := u.Units[0]; a.Name != "zone-a" || a.Phase != "Progressing" || len(a.Units) == 0 || a.Units[0].Name != "zone-a-0" || !strings.HasPrefix(a.Units[0].Sentence, "zone-a-0 is updating") {
		t.Errorf("zone-a is %+v", a)
	}
	if b := u.Units[1]; b.Reason != "WaitingForTurn" || b.WaitsFor == nil || b.WaitsFor.Name != "zone-a" || b.Sentence != s.Zones[1].Message {
		t.Errorf("zone-b is %+v", b)
	}
	all, err := zones.Explain(t.Context(), w.client, w.options, w.namespace, ingester)
	if whole := describe.Group(&all); err != nil || !same(&whole, &u) {
		t.Errorf("%+v for one, %+v for the other: %v", whole, u, err)
	}
	w.behave("v3", "", "zone-a", "zone-b", "zone-c")
	w.complete("v3")
	w.barrier.Wait(t)
	rest := w.group()
	if r := rest.Status.Rollout; r == nil || r.Phase != "Complete" || r.FinishedAt == nil || r.Units != (record.Counts{Total: 6, Complete: 6}) || len(r.Causes) > 0 || r.WaitingFor != "" {
		t.Errorf("at its end the record is %+v", r)
	}
	w.barrier.Step(t, time.Hour) // the time of a decision alone writes nothing
	if is := w.group(); is.ResourceVersion != rest.ResourceVersion {
		t.Errorf("at rest it was written: %+v after %+v", is.Status.Rollout, rest.Status.Rollout)
	}
}

func same(a, b *describe.Unit) bool {
	x, y := describe.Description{Units: []describe.Unit{*a}}, describe.Description{Units: []describe.Unit{*b}}
	return x.Says(&y)
}
