package zones_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/fluxcd/cli-utils/pkg/kstatus/status"
	"github.com/google/go-cmp/cmp"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/metrics"

	"github.com/spillway-dev/spillway/api/spillway/v1alpha1"
	"github.com/spillway-dev/spillway/internal/config"
	rolls "github.com/spillway-dev/spillway/internal/config/decision"
	"github.com/spillway-dev/spillway/internal/lab/testenv"
	"github.com/spillway-dev/spillway/internal/manager"
	"github.com/spillway-dev/spillway/internal/zones"
	"github.com/spillway-dev/spillway/internal/zones/decision"
)

// A group is made for each label in snapshot, and goes with its last member.
func TestAutomaticGroupComesAndGoes(t *testing.T) {
	w := newWorld(t)
	w.manage()
	w.settles(onDelete, replicas(1))
	if !w.explain().Automatic {
		t.Error("the group does not say that no user wrote it")
	}
	for _, name := range []string{"zone-a", "zone-b", "zone-c"} {
		if w.group().UID == "" {
			t.Fatal("the group went before its last member")
		}
		w.remove(&appsv1.StatefulSet{}, name)
	}
	w.eventually(func() error {
		if g := w.group(); g.UID != "" {
			return fmt.Errorf("it still exists: %s", w.says())
		}
		return nil
	})
	w.settles(onDelete, replicas(1)) // and comes again
}

// One that a user wrote is kept, and so is one that a user has changed.
func TestGroupsOfUsersAreKept(t *testing.T) {
	t.Parallel()
	for name, write := range map[string]func(*world){
		"written before its members": func(w *world) {
			w.create(group(func(s *v1alpha1.RolloutGroupSpec) { s.MinReadySeconds = 0 }))
			w.create(zone("zone-a", onDelete, replicas(1)))
		},
		"changed": func(w *world) {
			w.create(zone("zone-a", onDelete, replicas(1)))
			w.complete("v1", "zone-a")
			w.patch(&v1alpha1.RolloutGroup{}, ingester, `{"spec":{"soak":"1s"}}`)
		},
		"labeled": func(w *world) {
			w.create(zone("zone-a", onDelete, replicas(1)))
			w.complete("v1", "zone-a")
			w.patch(&v1alpha1.RolloutGroup{}, ingester, `{"metadata":{"labels":{"team":"metrics"}}}`)
		},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			w.manage()
			write(w)
			w.complete("v1", "zone-a")
			uid := w.group().UID
			w.remove(&appsv1.StatefulSet{}, "zone-a")
			w.barrier.Wait(t)
			if g := w.group(); g.UID != uid || len(g.Status.Zones) > 0 {
				t.Errorf("it was not kept, or still has %+v", g.Status.Zones)
			}
		})
	}
}

// A member that changes groups leaves the one and joins the other.
func TestMemberChangesGroups(t *testing.T) {
	w := newWorld(t)
	w.manage()
	w.settles(onDelete, replicas(1))
	w.patch(&appsv1.StatefulSet{}, "zone-c", `{"metadata":{"labels":{"rollout-group":"other"}}}`)
	w.seenTo("other")
	if rows := w.group().Status.Zones; len(rows) != 2 {
		t.Errorf("%+v", rows)
	}
}

// A label's value may be no name of an object. Its members get an Event.
func TestGroupWhoseNameCannotBe(t *testing.T) {
	w := newWorld(t)
	w.manage()
	w.create(zone("zone-a", onDelete, replicas(1), inGroup("Ingester_A")))
	w.eventually(func() error {
		list := &corev1.EventList{}
		if err := w.client.List(t.Context(), list); err != nil {
			return err
		}
		if !slices.ContainsFunc(list.Items, func(e corev1.Event) bool {
			return e.Namespace == w.namespace && e.Reason == "InvalidRolloutGroup" && e.InvolvedObject.Name == "zone-a" &&
				strings.Contains(e.Message, `"Ingester_A" cannot be the name of a RolloutGroup; choose another`)
		}) {
			return errors.New("no Event")
		}
		return nil
	})
}

func (w *world) explain() decision.Explanation {
	w.t.Helper()
	e, err := zones.Explain(w.t.Context(), w.client, w.options, w.namespace, ingester)
	if err != nil {
		w.t.Fatal(err)
	}
	return e
}

// The status, what explain says, what kubectl prints and what kstatus thinks are
// one and the same.
func TestStatusThatAnswers(t *testing.T) {
	w := newWorld(t)
	w.manage()
	w.settles(onDelete, replicas(2))
	w.behave("v2", "never-ready", "zone-a")
	w.roll("v2", "zone-b", "zone-c")
	w.eventually(func() error { return contains(w.images("zone-a"), "v2!") })
	w.waitsFor("Progressing", "zone-a-0 is updating")
	w.event("ZoneStarted")

	s := w.group().Status
	if s.Zone != "1/3" || s.Updated != "0/6" || s.Lock == nil || s.Lock.Zone != "zone-a" || s.Lock.Holder != "rollout/ingester" {
		t.Error(w.says())
	}
	if row := s.Zones[1]; row.State != "WaitingForTurn" || !strings.HasPrefix(row.Message, "zone-b is waiting: zone-a has 1 of 2 ready, zone-a-0 is") {
		t.Errorf("zone-b: %+v", row)
	}
	e := w.explain()
	if diff := cmp.Diff(s.Zones, e.Zones); diff != "" {
		t.Errorf("explain says other than the status:\n%s", diff)
	}
	if e.Sentence != s.WaitingFor || e.Phase != s.Phase || len(e.Notes) != 1 || len(e.History) != 1 || e.History[0].Outcome != "Running" {
		t.Errorf("explain says %+v", e)
	}
	all, err := zones.Status(t.Context(), w.client, w.options, w.namespace)
	if err != nil || len(all) != 1 || all[0].Sentence != e.Sentence {
		t.Errorf("status says %+v, %v", all, err)
	}
	if got := w.kstatus(); got != status.InProgressStatus {
		t.Errorf("kstatus says %s", got)
	}
	columns, row := w.table()
	if want := []string{"Name", "Phase", "Complete", "Total", "Waiting-For", "Zone", "Since", "Age"}; !slices.Equal(columns, want) {
		t.Errorf("columns %v, want %v", columns, want)
	}
	if fmt.Sprint(row[:6]) != fmt.Sprint([]any{ingester, "Progressing", 0, 6, s.WaitingFor, "1/3"}) {
		t.Errorf("kubectl prints %v", row)
	}
	w.behave("v3", "", "zone-a", "zone-b", "zone-c")
	w.complete("v3")
	w.event("ZoneDone")
	rolled := &w.group().Status.History[0]
	for i := range rolled.Zones {
		z := &rolled.Zones[i]
		if z.StartedAt == nil || z.FinishedAt == nil || z.FinishedAt.Before(z.StartedAt) || rolled.FinishedAt.Before(z.FinishedAt) {
			t.Errorf("zone %s was moved from %s to %s, the rollout ended %s", z.Name, z.StartedAt, z.FinishedAt, rolled.FinishedAt)
		}
	}
	if len(rolled.Zones) != 3 {
		t.Errorf("%d zones were rolled", len(rolled.Zones))
	}
	if got := w.kstatus(); got != status.CurrentStatus {
		t.Errorf("kstatus says %s", got)
	}
	if e := w.explain(); e.Phase != "Complete" || e.Reason != "" || e.Lock != nil || e.Rollout == nil || len(e.Rollout.Causes) > 0 {
		t.Errorf("explain says %+v", e)
	}
	w.witness.testify()
}

func (w *world) kstatus() status.Status {
	w.t.Helper()
	g := w.group()
	content, err := runtime.DefaultUnstructuredConverter.ToUnstructured(g)
	if err != nil {
		w.t.Fatal(err)
	}
	u := &unstructured.Unstructured{Object: content}
	u.SetGroupVersionKind(v1alpha1.GroupVersion.WithKind("RolloutGroup"))
	result, err := status.Compute(u)
	if err != nil {
		w.t.Fatal(err)
	}
	return result.Status
}

// table is what the API server gives kubectl to print.
func (w *world) table() (columns []string, row []any) {
	w.t.Helper()
	clientset, err := testenv.Shared().Clientset()
	if err != nil {
		w.t.Fatal(err)
	}
	raw, err := clientset.RESTClient().Get().AbsPath("/apis/spillway.dev/v1alpha1/namespaces/"+w.namespace+"/rolloutgroups").
		SetHeader("Accept", "application/json;as=Table;v=v1;g=meta.k8s.io").DoRaw(w.t.Context())
	if err != nil {
		w.t.Fatal(err)
	}
	table := metav1.Table{}
	if err := json.Unmarshal(raw, &table); err != nil || len(table.Rows) != 1 {
		w.t.Fatalf("%v: %s", err, raw)
	}
	for _, c := range table.ColumnDefinitions {
		columns = append(columns, c.Name)
	}
	return columns, table.Rows[0].Cells
}

func TestExplainOfWhatIsNotThere(t *testing.T) {
	w := newWorld(t)
	if _, err := zones.Explain(t.Context(), w.client, w.options, w.namespace, "none"); !errors.Is(err, zones.ErrNotFound) {
		t.Errorf("err = %v", err)
	}
	e, err := zones.Explain(t.Context(), w.client, w.options, "elsewhere", "none")
	if err != nil || !strings.Contains(e.Sentence, "add namespace elsewhere to --namespaces") {
		t.Errorf("%+v, %v", e, err)
	}
	w.create(zone("zone-a", onDelete, replicas(1)))
	w.runs("zone-a: v1")
	if e := w.explain(); !e.Missing || e.Phase != "Unseen" {
		t.Errorf("before the manager has made the group: %+v", e)
	}
}

// The last ten rollouts are remembered, or as many as the group asks for.
func TestHistory(t *testing.T) {
	w := newWorld(t)
	w.manage()
	w.create(zone("zone-a", onDelete)) // of three Pods, one will surely go by us
	w.complete("v1", "zone-a")
	for i := range 12 {
		image := fmt.Sprintf("r%d", i)
		w.roll(image, "zone-a")
		w.complete(image, "zone-a")
	}
	history := w.group().Status.History
	if len(history) != 10 || history[0].Number != 12 || history[9].Number != 3 {
		t.Errorf("history %+v", history)
	}
	for _, h := range history {
		if h.Outcome != "Complete" || h.FinishedAt == nil || len(h.Zones) != 1 || h.Zones[0].Name != "zone-a" {
			t.Errorf("rollout %+v", h)
		}
	}
}

// A tracked StatefulSet of a group gets its hash immediately, and rolls zone by zone.
func TestConfigAndZonesTogether(t *testing.T) {
	t.Parallel()
	bothWays(t, func(_ *testing.T, w *world, strategy string) {
		w.manage(func(o *manager.Options) {
			o.Rings = []string{manager.RingConfig, manager.RingZones}
			o.Config = config.Options{Now: time.Now, Options: rolls.Options{UpdateBurst: 100}}
		})
		tracked := func(s *appsv1.StatefulSet) {
			s.Annotations["spillway.dev/update-on-config-change"] = "true"
			from := corev1.EnvFromSource{ConfigMapRef: &corev1.ConfigMapEnvSource{LocalObjectReference: corev1.LocalObjectReference{Name: "app"}}}
			s.Spec.Template.Spec.Containers[0].EnvFrom = []corev1.EnvFromSource{from}
		}
		w.settles(strategy, tracked) // what they use does not exist yet, so they are whole, and held
		w.create(&corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: "app"}, Data: map[string]string{"a": "1"}})
		first := w.hashes("")
		w.hashedPods(first)
		w.patch(&corev1.ConfigMap{}, "app", `{"data":{"a":"2"}}`)
		second := w.hashes(first)
		w.hashedPods(second)
		// The zone that gets the second hash first may go first.
		if testimony := w.witness.testify(); len(testimony.gone) != 18 || !slices.Equal(testimony.order[:3], []string{"zone-a", "zone-b", "zone-c"}) {
			w.t.Errorf("zones went in the order %v: %v", testimony.order, testimony.gone)
		}
	})
}

// hashes waits until all zones have a hash other than before, the same for all.
func (w *world) hashes(before string) (hash string) {
	w.t.Helper()
	w.eventually(func() error {
		hash = w.set("zone-a").Spec.Template.Annotations["spillway.dev/config-hash"]
		for _, name := range []string{"zone-a", "zone-b", "zone-c"} {
			got := w.set(name).Spec.Template.Annotations["spillway.dev/config-hash"]
			if got == "" || got == before || got != hash {
				return fmt.Errorf("%s has the hash %q", name, got)
			}
		}
		return nil
	})
	return hash
}

// hashedPods waits until every Pod has a hash and the group is complete.
func (w *world) hashedPods(hash string) {
	w.t.Helper()
	w.eventually(func() error {
		for _, name := range []string{"zone-a", "zone-b", "zone-c"} {
			for _, p := range w.pods(name) {
				if got := p.Annotations["spillway.dev/config-hash"]; got != hash || !isReady(&p) {
					return fmt.Errorf("%s has the hash %q: %s", p.Name, got, w.says())
				}
			}
		}
		return w.isComplete()
	})
}

// rollout-operator's metrics exist under their names.
func TestMetricsOfRolloutOperator(t *testing.T) {
	w := newWorld(t)
	w.manage()
	name := "metrics-" + w.namespace
	w.create(zone(name, onDelete, inGroup(name), replicas(1)))
	w.barrier.Wait(t)
	if err := hasMetrics(name); err != nil {
		t.Error(err)
	}
}

func hasMetrics(group string) error {
	families, err := metrics.Registry.Gather()
	if err != nil {
		return err
	}
	found := map[string]bool{}
	for _, f := range families {
		for _, m := range f.GetMetric() {
			for _, l := range m.GetLabel() {
				found[f.GetName()] = found[f.GetName()] || l.GetName() == "rollout_group" && l.GetValue() == group
			}
		}
	}
	for _, want := range []string{
		"rollout_operator_group_reconciles_total", "rollout_operator_group_reconciles_failed_total",
		"rollout_operator_group_reconcile_duration_seconds", "rollout_operator_last_successful_group_reconcile_timestamp_seconds",
		"spillway_zones_group_phase", "spillway_zones_pods",
	} {
		if !found[want] {
			return fmt.Errorf("there is no %s of the group", want)
		}
	}
	return nil
}

// Many groups roll side by side, and one whose writes hang keeps none waiting.
func TestGroupsRollSideBySide(t *testing.T) {
	w := newWorld(t)
	w.manage()
	const n = 12
	for i := range n {
		w.create(zone(fmt.Sprintf("g%d-a", i), onDelete, replicas(1), inGroup(fmt.Sprintf("g%d", i))))
	}
	for i := range n {
		w.runs(fmt.Sprintf("g%d-a: v1", i))
	}
	for i := range n {
		w.seenTo(fmt.Sprintf("g%d", i))
	}
	w.behave("v2", "never-ready", "g0-a") // this one never completes
	for i := range n - 1 {
		w.roll("v2", fmt.Sprintf("g%d-a", i+1))
	}
	for i := range n - 1 {
		w.runs(fmt.Sprintf("g%d-a: v2", i+1))
	}
}

// A user who deletes the group in the middle gets it back with all that it was to
// persist, and the rollout goes on.
func TestGroupIsDeletedMidRollout(t *testing.T) {
	t.Parallel()
	bothWays(t, func(t *testing.T, w *world, strategy string) {
		w.manage()
		w.settles(strategy)
		w.roll("v2")
		w.eventually(func() error { return contains(w.images("zone-a"), "v2") })
		before := w.group()
		w.remove(&v1alpha1.RolloutGroup{}, ingester)
		w.complete("v2")
		w.goes(9, "zone-a", "zone-b", "zone-c")
		after := w.group()
		if after.UID == before.UID {
			t.Fatal("it was not deleted")
		}
		history := after.Status.History
		if len(history) != 1 || !history[0].StartedAt.Equal(&before.Status.History[0].StartedAt) || len(history[0].Zones) != 3 {
			t.Errorf("the history is %+v, and was %+v", history, before.Status.History)
		}
	})
}
