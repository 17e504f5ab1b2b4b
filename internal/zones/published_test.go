//go:build prometheus

package zones_test

import (
	"fmt"
	"net"
	"os"
	"strconv"
	"strings"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/yaml"

	"github.com/spillway-dev/spillway/api/spillway/v1alpha1"
	zonesv1 "github.com/spillway-dev/spillway/api/zones/v1"
	"github.com/spillway-dev/spillway/internal/lab/controlplane"
	"github.com/spillway-dev/spillway/internal/lab/testenv"
	"github.com/spillway-dev/spillway/internal/lab/testenv/fault"
	"github.com/spillway-dev/spillway/internal/lab/testenv/measured"
	"github.com/spillway-dev/spillway/internal/manager"
	"github.com/spillway-dev/spillway/internal/zones/guard"
)

// managerNamespace is where the manager runs, as Prometheus knows.
const managerNamespace = "spillway-system"

// published is what others ask about rollout-operator.
type published struct {
	Alerts []alert `json:"alerts"`
	Groups []struct {
		Expr  string `json:"expr"`
		Rests bool   `json:"rests"`
	} `json:"groups"`
	Manager []struct {
		Expr string `json:"expr"`
	} `json:"manager"`
}

type alert struct {
	Alert  string            `json:"alert"`
	Expr   string            `json:"expr"`
	For    string            `json:"for"`
	Labels map[string]string `json:"labels,omitempty"`
}

func read(t *testing.T, path string, into any) {
	t.Helper()
	text, err := os.ReadFile(path)
	if err == nil {
		err = yaml.Unmarshal(text, into)
	}
	if err != nil {
		t.Fatal(err)
	}
}

// row is a row of a panel about groups.
func (w *world) row(group string) map[string]string {
	return map[string]string{"namespace": w.namespace, "rollout_group": group}
}

// selecting is a query as a dashboard makes it for all namespaces with groups.
func (w *world) selecting(query string) string { return selecting(query, w.options.Namespaces...) }

// selecting is a query as a dashboard makes it, with these values of its variable namespace.
func selecting(query string, namespaces ...string) string {
	return strings.ReplaceAll(query, "SELECTOR", fmt.Sprintf(`cluster=~"c1",job=~"(%s)/(rollout-operator)"`, strings.Join(namespaces, "|")))
}

// TestPublishedAlertsAndPanels records the metrics of a manager, as they are scraped where the chart is
// installed, for two hours: two groups of one name in two namespaces, and one more, rest; one
// rolls, the other cannot be understood for a while; one is deleted; the API server answers with
// errors, a budget is invalid, and a Pod is evicted. The alerts and the panels that others publish
// about rollout-operator are replayed on that: each fires when it has to and at no other minute, and
// each panel has a row for each group.
func TestPublishedAlertsAndPanels(t *testing.T) {
	w := newWorldNow(t)
	other := testenv.Namespace(t)
	w.options.Namespaces = []string{w.namespace, other}
	b := *w
	b.namespace = other
	var asked published
	read(t, "../../test/monitoring/published.yaml", &asked)
	r := w.recorded(&b)

	r.Minutes(20)
	for _, p := range asked.Groups {
		rows := []map[string]string{w.row(ingester), b.row(ingester), b.row("cache")}
		if !p.Rests {
			rows = nil
		}
		r.Shows(r.Now(), w.selecting(p.Expr), groupLabels, rows...)
	}
	expected := map[string]fires{"HighNumberInflightZpdbRequests": {}}
	expected["IncorrectWebhookConfigurationFailurePolicy"] = w.guarded(r)
	b.rollsAlone(r, &asked)
	stalls := w.cannotBeUnderstood(r, &asked)
	b.isDeleted(r, &asked, w)
	fails, invalid := b.cannotBeWritten(r)
	expected["RolloutOperatorNotReconciling"] = append(stalls, fails...)
	expected["BadZoneAwarePodDisruptionBudgetConfiguration"] = invalid
	w.isEvicted(r, &asked)

	for _, a := range asked.Alerts {
		for minute := range r.Now() + 1 {
			if firing, known := expected[a.Alert].at(minute); known {
				r.Fires(minute, a.Alert, firing...)
			}
		}
	}
	r.Replay(append(ours(t), rulesOf(asked.Alerts)...)...)
}

var groupLabels = []string{"namespace", "rollout_group"}

func rulesOf(alerts []alert) (rules []any) {
	for _, a := range alerts {
		rules = append(rules, a)
	}
	return rules
}

// ours are the alerts that Spillway publishes.
func ours(t *testing.T) []any {
	t.Helper()
	var object struct {
		Spec struct {
			Groups []struct {
				Rules []alert `json:"rules"`
			} `json:"groups"`
		} `json:"spec"`
	}
	read(t, "../../monitoring/prometheusrule.yaml", &object)
	return rulesOf(object.Spec.Groups[0].Rules)
}

// fires are the times at which an alert fires.
type fires []firing

// firing is one of them, from a minute until another. A rate of five minutes begins and ends within
// these minutes before and after.
type firing struct {
	from, until, before, after int
	labels                     []map[string]string
}

// at is what fires at a minute, if that is known.
func (f fires) at(minute int) (labels []map[string]string, known bool) {
	for _, one := range f {
		switch {
		case one.from <= minute && minute <= one.until:
			labels = append(labels, one.labels...)
		case one.from-one.before <= minute && minute <= one.until+one.after:
			return nil, false
		}
	}
	return labels, true
}

// recorded has a manager of both namespaces, with a group of one name in each and one more in
// the other, and begins to record it.
func (w *world) recorded(b *world) *measured.Recording {
	w.t.Helper()
	port, err := controlplane.FreePort()
	if err != nil {
		w.t.Fatal(err)
	}
	address := net.JoinHostPort("127.0.0.1", strconv.Itoa(port))
	declared := manager.Options{Rings: []string{manager.RingZones}, Zones: w.options}
	hooks := testenv.RegisterWebhooks(w.t, w.namespace, declared.Declarations(manager.RingZones).Webhooks)
	w.manage(func(o *manager.Options) { o.Admission, o.MetricsAddress = hooks.Options, address })
	inBudget := func(s *appsv1.StatefulSet) { s.Spec.Template.Labels["rollout-group"] = ingester }
	for _, in := range []*world{w, b} {
		in.create(zone("zone-a", onDelete, replicas(1), inBudget), zone("zone-b", onDelete, replicas(1), inBudget))
	}
	b.create(zone("cache", onDelete, replicas(1), inGroup("cache")))
	w.complete("v1", "zone-a", "zone-b")
	b.complete("v1", "zone-a", "zone-b")
	b.runs("cache: v1")
	hooks.WaitServed(w.t)
	b.seenTo("cache")
	return measured.Record(w.t, w.barrier, w.clock, address, "rollout_operator_.+|kube_validating_webhook_failure_policy", map[string]string{
		"cluster": "c1", "namespace": managerNamespace, "pod": "spillway-0", "container": "manager", "service": "spillway-metrics", "endpoint": "metrics",
	})
}

// guarded installs the policies without which evictions are not guarded when no manager answers.
func (w *world) guarded(r *measured.Recording) fires {
	w.t.Helper()
	until := r.Now()
	testenv.Guards(w.t, w.client, w.namespace, guard.Declared().Unanswered)
	r.Minutes(10)
	return fires{{from: 5, until: until, labels: []map[string]string{
		{"namespace": managerNamespace, "type": "MutatingWebhook", "webhook": "pod-eviction.zones.spillway.dev"},
		{"namespace": managerNamespace, "type": "ValidatingWebhook", "webhook": "zpdb-validation.zones.spillway.dev"},
	}}}
}

// rollsAlone rolls one of the groups: only of that there were passes.
func (w *world) rollsAlone(r *measured.Recording, asked *published) {
	w.t.Helper()
	w.roll("v2", "zone-a", "zone-b")
	w.complete("v2", "zone-a", "zone-b")
	r.Minutes(1)
	for _, p := range asked.Groups {
		if !p.Rests {
			r.Shows(r.Now(), w.selecting(p.Expr), groupLabels, w.row(ingester))
		}
	}
	r.Minutes(9)
}

// cannotBeUnderstood stalls one of the groups, and corrects it.
func (w *world) cannotBeUnderstood(r *measured.Recording, asked *published) fires {
	w.t.Helper()
	from := r.Now()
	w.annotate("zone-a", "rollout-max-unavailable", "none")
	w.waitsFor("Stalled", "rollout-max-unavailable")
	r.Minutes(25)
	until := r.Now()
	r.Shows(until, w.selecting(asked.Groups[1].Expr)+" > 0", groupLabels, w.row(ingester))
	r.Fires(from+15, "SpillwayReconcileFails")
	r.Fires(until, "SpillwayReconcileFails", map[string]string{"namespace": w.namespace, "rollout_group": ingester, "severity": "warning"})
	w.annotate("zone-a", "rollout-max-unavailable", "")
	w.settled()
	r.Minutes(10)
	r.Fires(until+10, "SpillwayReconcileFails")
	return w.notReconciled(from, until)
}

// notReconciled is when the alert fires about the group: ten minutes after what went wrong at a
// minute, and five more. The first at which it is more than ten is the eleventh.
func (w *world) notReconciled(from, until int) fires {
	return fires{{from: from + 16, until: until, labels: []map[string]string{{"cluster": "c1", "namespace": w.namespace, "rollout_group": ingester}}}}
}

// isDeleted deletes the group that has no namesake: it has no rows any more, and the others have.
func (w *world) isDeleted(r *measured.Recording, asked *published, other *world) {
	w.t.Helper()
	w.remove(&appsv1.StatefulSet{}, "cache")
	w.eventually(func() error {
		if err := w.get(&v1alpha1.RolloutGroup{}, "cache"); !apierrors.IsNotFound(err) {
			return fmt.Errorf("the group exists: %w", err)
		}
		return nil
	})
	r.Minutes(6) // what was counted before is in no rate of five minutes
	for _, p := range asked.Groups {
		if p.Rests {
			r.Shows(r.Now(), w.selecting(p.Expr), groupLabels, w.row(ingester), other.row(ingester))
		}
	}
}

// cannotBeWritten has the API server answer with errors about one namespace, which has an invalid
// budget meanwhile.
func (w *world) cannotBeWritten(r *measured.Recording) (fails, invalid fires) {
	w.t.Helper()
	budget := testenv.InvalidBudget(w.t, w.client, w.namespace)
	from := r.Now()
	w.requests.Fail(func(q fault.Request) bool { return q.Namespace == w.namespace && q.Resource == "rolloutgroups" })
	w.roll("v3", "zone-a", "zone-b")
	r.Minutes(25)
	until := r.Now()
	w.requests.Fail(nil)
	if err := w.client.Delete(w.t.Context(), budget); err != nil {
		w.t.Fatal(err)
	}
	installKinds(w.t, w.client)
	r.Minutes(10)
	w.complete("v3", "zone-a", "zone-b")
	observed := map[string]string{"namespace": managerNamespace, "job": managerNamespace + "/rollout-operator"}
	return w.notReconciled(from, until), fires{{from: from + 7, until: until, before: 1, after: 4, labels: []map[string]string{observed}}}
}

// isEvicted evicts a Pod under a budget, so that panels about webhooks and budgets have something
// to show.
func (w *world) isEvicted(r *measured.Recording, asked *published) {
	w.t.Helper()
	w.create(&zonesv1.ZoneAwarePodDisruptionBudget{
		ObjectMeta: metav1.ObjectMeta{Name: ingester},
		Spec:       zonesv1.ZoneAwarePodDisruptionBudgetSpec{Selector: zonesv1.Selector{MatchLabels: map[string]string{"rollout-group": ingester}}},
	})
	for _, pod := range []string{"zone-a-0", "zone-b-0"} { // the first is no increase of what was not counted before
		w.eventually(func() error { return w.evict(pod) })
		r.Minutes(1)
	}
	for _, p := range asked.Manager {
		r.Shows(r.Now(), selecting(p.Expr, managerNamespace), nil, map[string]string{})
	}
}
