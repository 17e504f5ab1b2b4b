package history

import (
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	eventsv1 "k8s.io/api/events/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	fleetv1 "github.com/spillway-dev/spillway/api/fleet/v1alpha1"
	"github.com/spillway-dev/spillway/api/kudo/v1beta1"
	"github.com/spillway-dev/spillway/api/spillway/v1alpha1"
	"github.com/spillway-dev/spillway/internal/describe"
	"github.com/spillway-dev/spillway/internal/fleet/hub/model"
	"github.com/spillway-dev/spillway/internal/kube"
	"github.com/spillway-dev/spillway/internal/simulate/apiserver"
)

// clusterWith is a cluster that has some objects.
func clusterWith(t *testing.T, objects ...client.Object) client.Reader {
	t.Helper()
	scheme, err := kube.NewScheme()
	if err != nil {
		t.Fatal(err)
	}
	store := apiserver.New(scheme, func() time.Time { return noon })
	reporter := func(o client.Object) []string { return []string{o.(*eventsv1.Event).ReportingController} }
	if err := store.IndexField(t.Context(), &eventsv1.Event{}, "reportingController", reporter); err != nil {
		t.Fatal(err)
	}
	for _, obj := range objects {
		obj.SetNamespace("shop")
		if err := store.Seed(obj); err != nil {
			t.Fatal(err)
		}
	}
	return store
}

func after(minutes int) metav1.MicroTime {
	return metav1.NewMicroTime(noon.Add(time.Duration(minutes) * time.Minute))
}

func afterOrNil(minutes int) *metav1.MicroTime {
	at := after(minutes)
	return &at
}

// lines are entries and their parts, a line each: what, where to, by which change, by
// whom, when, and what became of it.
func lines(entries []Entry) string {
	var b strings.Builder
	for i := range entries {
		e := &entries[i]
		about := []string{e.What, e.To, e.Change, e.By, span(e.Started, e.Ended), e.Outcome, e.Message}
		if e.UndoneBy != "" {
			about = append(about, "undone "+e.UndoneText())
		}
		b.WriteString(strings.Join(about, "|") + "\n")
		partLines(&b, "  ", e.Units)
	}
	return b.String()
}

func partLines(b *strings.Builder, indent string, parts []Part) {
	for i := range parts {
		p := &parts[i]
		b.WriteString(indent + strings.Join([]string{p.Kind + " " + p.Name, span(p.Started, p.Ended), p.Outcome, p.Message}, "|") + "\n")
		partLines(b, indent+"  ", p.Units)
	}
}

func span(from, to *time.Time) string {
	text := func(t *time.Time) string {
		if t == nil {
			return "?"
		}
		return t.Sub(noon).String()
	}
	return text(from) + ".." + text(to)
}

func checkHistory(t *testing.T, reader client.Reader, ref describe.Ref, want string) {
	t.Helper()
	entries, err := History(t.Context(), reader, ref)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(strings.TrimPrefix(want, "\n"), lines(entries)); diff != "" {
		t.Error(diff)
	}
}

func zone(name, group, revision string, fields ...metav1.ManagedFieldsEntry) *appsv1.StatefulSet {
	return &appsv1.StatefulSet{
		ObjectMeta: metav1.ObjectMeta{Name: name, Labels: map[string]string{"rollout-group": group}, ManagedFields: fields},
		Spec:       appsv1.StatefulSetSpec{Selector: &metav1.LabelSelector{}},
		Status:     appsv1.StatefulSetStatus{UpdateRevision: revision},
	}
}

// Of a group the newest rollout has the present state of the zones that are updating, and
// who edited the templates that are rolled; an older one has what became of it.
func TestHistoryOfAGroup(t *testing.T) {
	t.Parallel()
	const template = `{"f:spec":{"f:template":{"f:spec":{}}}}`
	group := &v1alpha1.RolloutGroup{ObjectMeta: metav1.ObjectMeta{Name: "store"}}
	group.Status.WaitingFor = "store-a-0 is updating: not ready"
	group.Status.History = []v1alpha1.Rollout{
		{Number: 2, StartedAt: after(10), Outcome: "Running", Zones: []v1alpha1.ZoneRevision{
			{Name: "store-a", Revision: "a2", StartedAt: afterOrNil(10)}, {Name: "store-b", Revision: "b2", StartedAt: afterOrNil(10), FinishedAt: afterOrNil(12)},
		}},
		{Number: 1, StartedAt: after(0), FinishedAt: afterOrNil(5), Outcome: "Complete", Zones: []v1alpha1.ZoneRevision{{Name: "store-a", Revision: "a1"}}},
	}
	group.Status.Zones = []v1alpha1.Zone{
		{Name: "store-a", State: "Progressing", Message: "store-a-0 is updating: not ready"}, {Name: "store-b", State: "Waiting", Message: "not of this rollout"},
	}
	reader := clusterWith(t, group,
		zone("store-a", "store", "a2", managed("helm", 1, template)), zone("store-b", "store", "b2", managed("argocd", 1, template)),
		zone("store-c", "store", "c1", managed("kubectl-edit", 1, template)), zone("other", "other", "a2", managed("others", 1, template)))
	checkHistory(t, reader, describe.Ref{Kind: describe.KindGroup, Namespace: "shop", Name: "store"}, `
rollout 2|a2, b2|the template of store-a, the template of store-b|argocd, helm|10m0s..?|Running|store-a-0 is updating: not ready
  Zone store-a|10m0s..?|Progressing|store-a-0 is updating: not ready
  Zone store-b|10m0s..12m0s|Complete|
rollout 1|a1|||0s..5m0s|Complete|
  Zone store-a|?..?|Complete|
`)
	group.Status.History[0].ChangedBy = "flux" // what is recorded counts, not who writes a template later
	group.Status.History = group.Status.History[:1]
	reader = clusterWith(t, group, zone("store-a", "store", "a2", managed("helm", 1, template)))
	checkHistory(t, reader, describe.Ref{Kind: describe.KindGroup, Namespace: "shop", Name: "store"}, `
rollout 2|a2, b2|the template of store-a|flux|10m0s..?|Running|store-a-0 is updating: not ready
  Zone store-a|10m0s..?|Progressing|store-a-0 is updating: not ready
  Zone store-b|10m0s..12m0s|Complete|
`)
}

func instance() *v1beta1.Instance {
	i := &v1beta1.Instance{ObjectMeta: metav1.ObjectMeta{Name: "db"}}
	i.Spec.OperatorVersion.Name, i.Status.WaitingFor = "db-2", "step x is waiting"
	i.Status.Execution = &v1beta1.Execution{UID: "2", Plan: "deploy", Cause: v1beta1.CauseUpgrade, Changed: "SIZE", ChangedBy: "helm", StartedAt: after(10), Spec: i.Spec}
	i.Status.History = []v1beta1.PastExecution{{
		UID: "1", Plan: "deploy", Cause: v1beta1.CauseCreate, OperatorVersion: "db-1", StartedAt: after(0), FinishedAt: after(5), Result: "Failed", Message: "too bad", ChangedBy: "argocd",
	}}
	i.Status.PlanStatus = map[string]v1beta1.PlanStatus{"deploy": {UID: "2", Phases: []v1beta1.PhaseStatus{
		{Name: "main", Status: v1beta1.Complete, StartedAt: afterOrNil(10), Steps: []v1beta1.StepStatus{
			{Name: "b", Status: v1beta1.Complete, StartedAt: afterOrNil(10), FinishedAt: afterOrNil(13)}, {Name: "a", Status: v1beta1.Complete, FinishedAt: afterOrNil(12)},
		}},
		{Name: "rest", Status: v1beta1.InProgress, Message: "waits", Steps: []v1beta1.StepStatus{{Name: "c", Status: v1beta1.Complete, FinishedAt: afterOrNil(14)}}},
	}}}
	return i
}

// Of an Instance the execution that runs comes first, with its steps: a phase ends with
// the last of them, and not before it is complete.
func TestHistoryOfAnInstance(t *testing.T) {
	t.Parallel()
	ref := describe.Ref{Kind: describe.KindInstance, Namespace: "shop", Name: "db"}
	checkHistory(t, clusterWith(t, instance()), ref, `
plan deploy|db-2|upgrade: SIZE|helm|10m0s..?|Running|step x is waiting
  Phase main|10m0s..13m0s|COMPLETE|
    Step b|10m0s..13m0s|COMPLETE|
    Step a|?..12m0s|COMPLETE|
  Phase rest|?..?|IN_PROGRESS|waits
    Step c|?..14m0s|COMPLETE|
plan deploy|db-1|create|argocd|0s..5m0s|Failed|too bad
`)
}

// Of a ConfigMap or Secret it is what the manager has recorded, with the stages and the trace of the policy that released
// it, and what only a policy remembers.
func TestHistoryOfAConfigObject(t *testing.T) {
	t.Parallel()
	secret := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Name: "db"}}
	record := &v1alpha1.ConfigRollout{
		ObjectMeta: metav1.ObjectMeta{Name: "secret-db"}, Object: v1alpha1.ConfigRolloutObject{Kind: "Secret", Name: "db"},
		Rollout: &v1alpha1.RolloutRecord{Target: "ccccccccc", Changed: []string{"Secret db: password"}, Phase: "Waiting", StartedAt: after(20), WaitingFor: "web waits"},
		History: []v1alpha1.PastRolloutRecord{
			{Target: "bbbbbbbbb", Changed: []string{"Secret db: user"}, StartedAt: after(10), FinishedAt: after(20), Outcome: "Failed", Message: "web failed", UndoneBy: "kubectl-edit"},
			{Target: "aaaaaaaaa", StartedAt: after(5), FinishedAt: after(7), Outcome: "Complete"},
		},
	}
	policy := &v1alpha1.ConfigPolicy{ObjectMeta: metav1.ObjectMeta{Name: "careful", UID: "p"}}
	policy.Status.History = []v1alpha1.PastConfigRelease{
		{Object: "Secret db@bbbbbbb", Namespace: "shop", StartedAt: after(10), FinishedAt: after(20), Outcome: "Superseded", Stages: []v1alpha1.PastConfigStage{{Name: "canary", StartedAt: after(11)}}},
		{Object: "Secret db@aaaaaaa", Namespace: "shop", StartedAt: after(0), FinishedAt: after(1), Outcome: "Complete"},
		{Object: "Secret other@aaaaaaa", Namespace: "shop", StartedAt: after(0), FinishedAt: after(1), Outcome: "Complete"},
	}
	ref := describe.Ref{Kind: describe.KindSecret, Namespace: "shop", Name: "db"}
	want := `
release ccccccc||Secret db: password||20m0s..?|Running|web waits
release bbbbbbb||Secret db: user||10m0s..20m0s|Failed|web failed|undone by kubectl-edit
  Stage canary|11m0s..?|Superseded|
release aaaaaaa||||5m0s..7m0s|Complete|
release aaaaaaa||||0s..1m0s|Complete|
`
	checkHistory(t, clusterWith(t, secret.DeepCopy(), record, policy), ref, want)
	record.Rollout.Phase = "Failed"
	checkHistory(t, clusterWith(t, secret.DeepCopy(), record, policy), ref, strings.Replace(want, "Running", "Failed", 1))
	record.Rollout.FinishedAt, record.Rollout.WaitingFor = afterOrNil(21), ""
	checkHistory(t, clusterWith(t, secret, record, policy), ref, strings.Replace(want, "20m0s..?|Running|web waits", "20m0s..21m0s|Complete|", 1))
}

// Of a module a rollback names the user who ordered it, and a revision that was never
// rolled out comes last.
func TestHistoryOfAModule(t *testing.T) {
	t.Parallel()
	module := &fleetv1.Module{ObjectMeta: metav1.ObjectMeta{Name: "shop", UID: "m"}}
	module.Status.TargetRevision, module.Status.WaitingFor = "shop-1", "b is updating"
	module.Status.History = []fleetv1.PastRollout{
		{Revision: "shop-1", StartedAt: after(10), Outcome: "Running"}, {Revision: "shop-2", StartedAt: after(0), FinishedAt: afterOrNil(5), Outcome: "RolledBack"},
	}
	steering := model.Steering{Verb: model.VerbRollback, By: "alice", Reason: "it fails", Revision: "shop-1"}
	if err := steering.Note(module); err != nil {
		t.Fatal(err)
	}
	revision := func(name, owner string, number int64, tag string) *v1alpha1.ModuleRevision {
		isController := true
		r := &v1alpha1.ModuleRevision{ObjectMeta: metav1.ObjectMeta{
			Name: name, Annotations: map[string]string{"spillway.dev/written-by": "flux"},
			OwnerReferences: []metav1.OwnerReference{{Kind: "Module", Name: "shop", UID: types.UID(owner), Controller: &isController}},
		}}
		r.Spec.Number = number
		r.Spec.Template.Sync.Source = &fleetv1.Source{Git: &fleetv1.GitSource{Version: fleetv1.GitVersion{Tag: tag}}}
		return r
	}
	resolved := revision("shop-2", "m", 2, "latest")
	resolved.Status.Resolved = "sha1:2"
	reader := clusterWith(t, module, revision("shop-1", "m", 1, "v1"), resolved, revision("shop-3", "m", 3, "v3"), revision("foreign", "x", 4, "v4"))
	checkHistory(t, reader, describe.Ref{Kind: model.KindModule, Namespace: "shop", Name: "shop"}, `
revision 1|shop-1|rollback to it: it fails|alice|10m0s..?|Running|b is updating
revision 2|shop-2|latest, which was sha1:2|flux|0s..5m0s|RolledBack|
revision 3|shop-3|v3|flux|?..?||
`)
}

func TestHistoryOfNothing(t *testing.T) {
	t.Parallel()
	reader := clusterWith(t)
	if _, err := History(t.Context(), reader, describe.Ref{Kind: "Service", Namespace: "shop", Name: "web"}); !errors.Is(err, ErrNoHistory) {
		t.Error(err)
	}
	_, err := History(t.Context(), reader, describe.Ref{Kind: describe.KindGroup, Namespace: "shop", Name: "store"})
	if err == nil || !strings.Contains(err.Error(), "not found in namespace shop") {
		t.Error(err)
	}
}

// An Event is of the ring that acts on its object, at the last time that it occurred.
func TestEventOf(t *testing.T) {
	t.Parallel()
	about := func(kind string) corev1.ObjectReference {
		return corev1.ObjectReference{Kind: kind, Namespace: "shop", Name: "x"}
	}
	for name, c := range map[string]struct {
		event eventsv1.Event
		want  Event
	}{
		"of config":     {eventsv1.Event{EventTime: after(1), Action: "Configure", Regarding: about("StatefulSet")}, Event{At: after(1).Time, Ring: describe.Config}},
		"of a group":    {eventsv1.Event{EventTime: after(1), Action: "Roll", Regarding: about("StatefulSet")}, Event{At: after(1).Time, Ring: describe.Zones}},
		"of a module":   {eventsv1.Event{EventTime: after(1), Action: "Roll", Regarding: about("BootstrapModule")}, Event{At: after(1).Time, Ring: describe.Fleet}},
		"of an object":  {eventsv1.Event{EventTime: after(1), Regarding: about("Pod")}, Event{At: after(1).Time}},
		"a warning":     {eventsv1.Event{EventTime: after(1), Type: "Warning", Regarding: about("Pod")}, Event{At: after(1).Time, Warning: true}},
		"of a command":  {eventsv1.Event{EventTime: after(1), ReportingController: ReporterCommands, Regarding: about("Instance")}, Event{At: after(1).Time, Ring: describe.Plans, Command: true}},
		"several times": {eventsv1.Event{EventTime: after(1), Series: &eventsv1.EventSeries{Count: 3, LastObservedTime: after(9)}, Regarding: about("Pod")}, Event{At: after(9).Time, Times: 3}},
		"without a time": {
			eventsv1.Event{ObjectMeta: metav1.ObjectMeta{CreationTimestamp: metav1.NewTime(noon)}, Regarding: about("Pod")}, Event{At: noon},
		},
	} {
		c.want.About = describe.Ref{Kind: c.event.Regarding.Kind, Namespace: "shop", Name: "x"}
		if diff := cmp.Diff(c.want, EventOf(&c.event)); diff != "" {
			t.Errorf("%s: %s", name, diff)
		}
	}
}

// The Events of an object are those of what it consists of, and of no namesake.
func TestMembers(t *testing.T) {
	t.Parallel()
	i := &v1beta1.Instance{ObjectMeta: metav1.ObjectMeta{Name: "db"}}
	i.Status.Inventory = []v1beta1.InventoryEntry{{Kind: "StatefulSet", Name: "db-a"}, {Kind: "ConfigMap", Namespace: "other", Name: "c"}}
	reader := clusterWith(t, i, zone("db-a", "db", "1"), zone("web-a", "web", "1"))
	ref := func(kind, namespace, name string) describe.Ref {
		return describe.Ref{Kind: kind, Namespace: namespace, Name: name}
	}
	for _, c := range []struct {
		of    describe.Ref
		event Event
		want  bool
	}{
		{ref(describe.KindGroup, "shop", "db"), Event{About: ref("StatefulSet", "shop", "db-a")}, true},
		{ref(describe.KindGroup, "shop", "db"), Event{About: ref("StatefulSet", "shop", "web-a")}, false},
		{ref(describe.KindGroup, "shop", "db"), Event{About: ref("StatefulSet", "other", "db-a")}, false},
		{ref(describe.KindInstance, "shop", "db"), Event{About: ref("StatefulSet", "shop", "db-a")}, true},
		{ref(describe.KindInstance, "shop", "db"), Event{About: ref(describe.KindGroup, "shop", "db")}, true},
		{ref(describe.KindInstance, "shop", "db"), Event{About: ref(describe.KindGroup, "shop", "web")}, false},
		{ref(describe.KindInstance, "shop", "db"), Event{About: ref("ConfigMap", "other", "c")}, true},
		{ref(describe.KindInstance, "shop", "db"), Event{About: ref("ConfigMap", "shop", "c")}, false},
		{ref(model.KindModule, "shop", "app"), Event{About: ref("ProxyAssemblage", "shop", "c1"), Text: "sync app: failed"}, true},
		{ref(model.KindModule, "shop", "app"), Event{About: ref("ProxyAssemblage", "shop", "c1"), Text: "sync app-2: failed"}, false},
	} {
		members, err := MembersOf(t.Context(), reader, c.of)
		if err != nil {
			t.Fatal(err)
		}
		if got := members.Has(&c.event); got != c.want {
			t.Errorf("%v has %v: %t", c.of, c.event.About, got)
		}
	}
}
