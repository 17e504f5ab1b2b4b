package proxy

import (
	"context"
	"encoding/json"
	"errors"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/spillway-dev/spillway/api/fleet/v1alpha1"
	"github.com/spillway-dev/spillway/internal/fleet/assemblage"
	"github.com/spillway-dev/spillway/internal/fleet/cluster"
	"github.com/spillway-dev/spillway/internal/fleet/outcome"
	"github.com/spillway-dev/spillway/internal/kube"
	"github.com/spillway-dev/spillway/internal/lab/testenv"
	"github.com/spillway-dev/spillway/internal/lab/testenv/fault"
	"github.com/spillway-dev/spillway/internal/simulate/apiserver"
	"github.com/spillway-dev/spillway/internal/vocabulary"
)

// memory is a hub and a cluster in memory: the controller of ProxyAssemblages, which stops and is
// replaced, and a model of the agent on the cluster.
type memory struct {
	t        *testing.T
	now      time.Time
	hub, far *apiserver.Store
	life     *fault.Life
	// controller is that of the present manager.
	controller reconcile.Reconciler
	// sent are the syncs that are assigned and got to the cluster, broken is each instant that
	// must not be.
	sent   map[string]bool
	broken []string
}

var inMemory = client.ObjectKey{Namespace: "fleet", Name: "c1"}

// newMemory begins with a manager that ends as told.
func newMemory(t *testing.T, life *fault.Life) *memory {
	t.Helper()
	kinds, err := kube.NewScheme()
	if err != nil {
		t.Fatal(err)
	}
	m := &memory{t: t, now: time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC), sent: map[string]bool{}}
	clock := func() time.Time { return m.now }
	m.hub, m.far = apiserver.New(kinds, clock), apiserver.New(kinds, clock)
	m.begin(life)
	return m
}

// begin begins a manager that remembers nothing.
func (m *memory) begin(life *fault.Life) {
	m.life = life
	c, now := life.Of(m.hub), func() time.Time { return m.now }
	m.controller = &reconciler{
		observer: observer{
			now: now, cached: c, referents: testenv.Referents{Reader: c}, clusters: reached{life.Of(m.far)}, watches: newWatches(nil, now), orphans: &assemblage.Orphans{Live: c},
		},
		actor:    newActor(c, c),
		reporter: outcome.NewReporter(kube.Offline{}.Events(), "ProxyAssemblage"),
	}
}

// reached is a cluster that always answers.
type reached struct{ client.WithWatch }

func (r reached) Connect(context.Context, types.NamespacedName) (*cluster.Connection, error, error) {
	return &cluster.Connection{Client: r.WithWatch}, nil, nil
}

func (reached) IsLost(context.Context, metav1.Object, string) (bool, error) { return false, nil }
func (reached) Expect(context.Context, types.NamespacedName) (over func())  { return func() {} }
func (reached) Failed(types.NamespacedName, error)                          {}

// settles lets all act until nothing changes any more.
func (m *memory) settles() {
	m.t.Helper()
	for range 1000 {
		before := m.hub.Version() + m.far.Version()
		_, err := m.controller.Reconcile(m.t.Context(), reconcile.Request{NamespacedName: inMemory})
		m.look()
		if m.life.Stopped {
			m.begin(&fault.Life{})
			continue
		}
		if err != nil {
			m.t.Fatal(err)
		}
		m.agent()
		m.look()
		if m.hub.Version()+m.far.Version() == before {
			return
		}
		m.now = m.now.Add(time.Minute)
	}
	m.t.Fatal("it does not settle")
}

// agent does what the one on the cluster does: it reports that all is applied, and takes it away
// before it lets the Assemblage go.
func (m *memory) agent() {
	m.t.Helper()
	a := &v1alpha1.Assemblage{}
	if err := m.far.Get(m.t.Context(), inMemory, a); err != nil {
		return
	}
	if deleting := a.DeletionTimestamp != nil; deleting || len(a.Spec.Syncs) > 0 && !controllerutil.ContainsFinalizer(a, vocabulary.AssemblageFinalizer) {
		controllerutil.AddFinalizer(a, vocabulary.AssemblageFinalizer)
		if deleting {
			controllerutil.RemoveFinalizer(a, vocabulary.AssemblageFinalizer)
		}
		m.must(m.far.Update(m.t.Context(), a))
		return
	}
	a.Status = v1alpha1.AssemblageStatus{ObservedGeneration: a.Generation}
	for i := range a.Spec.Syncs {
		s := &a.Spec.Syncs[i]
		a.Status.Syncs = append(a.Status.Syncs, v1alpha1.SyncStatus{
			Name: s.Name, Revision: s.Revision, State: v1alpha1.StateSucceeded, LastSucceededRevision: s.Revision, Resolved: s.Source.Git.Version.Tag + "@sha1:1", ObservedGeneration: a.Generation,
		})
	}
	m.must(m.far.Status().Update(m.t.Context(), a))
}

func (m *memory) must(err error) {
	m.t.Helper()
	if err != nil {
		m.t.Fatal(err)
	}
}

// look checks an instant: what stays assigned stays on the cluster, and what is on the cluster
// does not outlive the ProxyAssemblage.
func (m *memory) look() {
	m.t.Helper()
	p, a := &v1alpha1.ProxyAssemblage{}, &v1alpha1.Assemblage{}
	isThere := m.hub.Get(m.t.Context(), inMemory, p) == nil
	isFar := m.far.Get(m.t.Context(), inMemory, a) == nil && a.DeletionTimestamp == nil
	if isFar && !isThere {
		m.broken = append(m.broken, "the Assemblage outlives its ProxyAssemblage")
	}
	far := map[string]bool{}
	for i := range a.Spec.Syncs {
		far[a.Spec.Syncs[i].Name] = isFar
	}
	for _, name := range []string{"shop", "other"} {
		assigned := p.DeletionTimestamp == nil && slices.ContainsFunc(p.Spec.Assemblage.Syncs, func(s v1alpha1.ProxySync) bool { return s.Name == name })
		if m.sent[name] && assigned && !far[name] {
			m.broken = append(m.broken, name+" is taken away while it is assigned")
		}
		m.sent[name] = assigned && far[name]
	}
}

// assign has the ProxyAssemblage have these syncs, each "name tag".
func (m *memory) assign(syncs ...string) {
	m.t.Helper()
	p := &v1alpha1.ProxyAssemblage{ObjectMeta: metav1.ObjectMeta{Namespace: inMemory.Namespace, Name: inMemory.Name}}
	err := m.hub.Get(m.t.Context(), inMemory, p)
	p.Spec.KubeconfigRef.Name, p.Spec.Assemblage.Syncs = "c1-kubeconfig", nil
	for _, s := range syncs {
		name, tag, _ := strings.Cut(s, " ")
		sync := v1alpha1.ProxySync{NamedSync: v1alpha1.NamedSync{Assignment: v1alpha1.Assignment{Name: name, Revision: name + "-" + tag}}}
		sync.Source = &v1alpha1.Source{Git: &v1alpha1.GitSource{URL: "https://git.test/" + name, Version: v1alpha1.GitVersion{Tag: tag}}}
		if name == "shop" {
			sync.ControlPlaneBindings = []v1alpha1.Binding{{Name: "A", ObjectFieldRef: &v1alpha1.ObjectFieldReference{Kind: "ConfigMap", Name: "region", FieldPath: "/data/name"}}}
			sync.Package = &v1alpha1.Package{Kustomize: &v1alpha1.Kustomize{Substitute: map[string]string{"region": "$(A)"}}}
		}
		p.Spec.Assemblage.Syncs = append(p.Spec.Assemblage.Syncs, sync)
	}
	if apierrors.IsNotFound(err) {
		m.must(m.hub.Create(m.t.Context(), p))
		return
	}
	m.must(errors.Join(err, m.hub.Update(m.t.Context(), p)))
}

var times = regexp.MustCompile(`"(uid|resourceVersion|lastTransitionTime|creationTimestamp|time|[a-z.]*/proxied-by)":"[^"]*"`)

// is all that there is, but for times and identities: first on the hub, then on the cluster.
func (m *memory) is() string {
	var all []string
	for _, store := range []*apiserver.Store{m.hub, m.far} {
		for _, obj := range store.All() {
			obj = obj.DeepCopyObject().(client.Object)
			obj.SetManagedFields(nil)
			raw, err := json.Marshal(obj)
			m.must(err)
			all = append(all, times.ReplaceAllString(string(raw), `"$1":""`))
		}
		all = append(all, "---")
	}
	return strings.Join(all, "\n")
}

// tell tells the life of a ProxyAssemblage: two syncs, one of which is bound on the hub; another
// revision of the one; the end of the other; and the end of all. It returns what there is after
// each chapter.
func (m *memory) tell() (chapters []string) {
	m.t.Helper()
	m.must(m.hub.Create(m.t.Context(), &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: inMemory.Namespace, Name: "region"}, Data: map[string]string{"name": "eu"}}))
	for _, chapter := range []func(){
		func() { m.assign("shop v1", "other v1") }, func() { m.assign("shop v2", "other v1") }, func() { m.assign("shop v2") },
		func() {
			m.must(m.hub.Delete(m.t.Context(), &v1alpha1.ProxyAssemblage{ObjectMeta: metav1.ObjectMeta{Namespace: inMemory.Namespace, Name: inMemory.Name}}))
		},
	} {
		chapter()
		m.settles()
		chapters = append(chapters, m.is())
	}
	return chapters
}

// TestTheHubStopsAtEveryWriteInMemory: whenever its manager stops, at a write to the hub or to the
// cluster, in the end of each chapter there is what there is without a fault, and what stays
// assigned is not taken away meanwhile.
func TestTheHubStopsAtEveryWriteInMemory(t *testing.T) {
	t.Parallel()
	faultless := newMemory(t, &fault.Life{})
	want := faultless.tell()
	end := strings.Split(want[3], "\n")
	ends := slices.DeleteFunc(end, func(line string) bool { return strings.Contains(line, `"kind":"Namespace"`) })
	if len(faultless.broken) > 0 || len(ends) != 3 || !strings.Contains(ends[0], `"name":"region"`) {
		t.Fatalf("without a fault %q, and in the end there is\n%s", faultless.broken, want[3])
	}
	_, far, _ := strings.Cut(want[2], "---")
	for _, text := range []string{`"tag":"v2"`, `"value":"eu"`, `"state":"succeeded"`} {
		if !strings.Contains(far, text) || strings.Contains(far, "https://git.test/other") {
			t.Fatalf("without a fault there is on the cluster\n%s", far)
		}
	}
	for n := 1; n <= faultless.life.Writes; n++ {
		for _, when := range []fault.When{fault.Before, fault.After} {
			m := newMemory(t, &fault.Life{End: n, When: when})
			if diff := cmp.Diff(want, m.tell()); diff != "" {
				t.Errorf("%s write %d (-without +with the fault):\n%s", when, n, diff)
			}
			if len(m.broken) > 0 {
				t.Errorf("%s write %d: %q", when, n, m.broken)
			}
		}
	}
	t.Logf("%d writes", faultless.life.Writes)
}
