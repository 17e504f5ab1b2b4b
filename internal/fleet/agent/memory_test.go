package agent

import (
	"encoding/json"
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	kustomizev1 "github.com/fluxcd/kustomize-controller/api/v1"
	"github.com/fluxcd/pkg/apis/meta"
	sourcev1 "github.com/fluxcd/source-controller/api/v1"
	"github.com/google/go-cmp/cmp"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	apimeta "k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/spillway-dev/spillway/api/fleet/v1alpha1"
	"github.com/spillway-dev/spillway/internal/fleet/outcome"
	"github.com/spillway-dev/spillway/internal/kube"
	"github.com/spillway-dev/spillway/internal/lab/testenv"
	"github.com/spillway-dev/spillway/internal/lab/testenv/fault"
	"github.com/spillway-dev/spillway/internal/simulate/apiserver"
)

// memory is a workload cluster in memory: the controllers of Assemblages, which stop and are
// replaced, and models of those of Flux.
type memory struct {
	t     *testing.T
	now   time.Time
	store *apiserver.Store
	life  *fault.Life
	// controllers are those of the present manager.
	controllers []reconcile.Reconciler
	// applied is what Flux applies at the moment, by the name of the Kustomization.
	applied map[string]string
	// said is what was seen to happen, and broken each instant that must not be.
	said, broken []string
	// wanted are the syncs that are assigned and were applied.
	wanted map[string]bool
}

const inMemory = "fleet"

// newMemory begins with a manager that ends as told.
func newMemory(t *testing.T, life *fault.Life) *memory {
	t.Helper()
	kinds, err := kube.NewScheme()
	if err != nil {
		t.Fatal(err)
	}
	m := &memory{t: t, now: time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC), applied: map[string]string{}, wanted: map[string]bool{}}
	m.store = apiserver.New(kinds, func() time.Time { return m.now })
	err = errors.Join(
		m.store.IndexField(t.Context(), local.object(), fetchIndex, func(obj client.Object) []string { return fetches(local.read(obj)) }),
		indexApplied(t.Context(), m.store, &kustomizev1.Kustomization{}),
	)
	if err != nil {
		t.Fatal(err)
	}
	m.begin(life)
	return m
}

// begin begins a manager that remembers nothing.
func (m *memory) begin(life *fault.Life) {
	m.life = life
	c := life.Of(m.store)
	r := &reconciler{
		observer: observer{flavor: local, options: Options{Now: func() time.Time { return m.now }}, cached: c, referents: testenv.Referents{Reader: c}},
		actor:    newActor(c, c, local, func() time.Time { return m.now }),
		reporter: outcome.NewReporter(kube.Offline{}.Events(), local.kind),
	}
	m.controllers = []reconcile.Reconciler{r, &collector{flavor: local, kind: sourcev1.GitRepositoryKind, cached: c, writer: c}}
}

// settles lets all act until nothing changes any more.
func (m *memory) settles() {
	m.t.Helper()
	for range 1000 {
		before := m.store.Version()
		again := m.pass()
		if m.life.Stopped {
			m.begin(&fault.Life{})
			continue
		}
		m.flux()
		m.look()
		if m.store.Version() == before && !again {
			return
		}
		m.now = m.now.Add(time.Second)
	}
	m.t.Fatal("it does not settle")
}

// pass lets the manager look at everything once. It is true if something is due soon.
func (m *memory) pass() (again bool) {
	m.t.Helper()
	for i, list := range []client.ObjectList{&v1alpha1.AssemblageList{}, &sourcev1.GitRepositoryList{}} {
		if err := m.store.List(m.t.Context(), list); err != nil {
			m.t.Fatal(err)
		}
		err := apimeta.EachListItem(list, func(obj runtime.Object) error {
			key := client.ObjectKeyFromObject(obj.(client.Object))
			result, err := m.controllers[i].Reconcile(m.t.Context(), reconcile.Request{NamespacedName: key})
			again = again || result.RequeueAfter > 0 && result.RequeueAfter < time.Minute
			return err
		})
		if err != nil && !m.life.Stopped {
			m.t.Fatal(err)
		}
		m.look()
	}
	return again
}

// flux does what its controllers do: it fetches sources, applies what they say, and takes away
// what was applied before it lets a Kustomization go.
func (m *memory) flux() {
	m.t.Helper()
	gits, ks := &sourcev1.GitRepositoryList{}, &kustomizev1.KustomizationList{}
	if err := errors.Join(m.store.List(m.t.Context(), gits), m.store.List(m.t.Context(), ks)); err != nil {
		m.t.Fatal(err)
	}
	for i := range gits.Items {
		g := &gits.Items[i]
		g.Status.ObservedGeneration, g.Status.Artifact = g.Generation, &meta.Artifact{Revision: g.Spec.Reference.Tag + "@sha1:" + g.Spec.Reference.Tag}
		m.write(m.store.Status().Update(m.t.Context(), g))
	}
	for i := range ks.Items {
		m.kustomize(&ks.Items[i])
	}
}

const fluxFinalizer = "finalizers.fluxcd.io"

func (m *memory) kustomize(k *kustomizev1.Kustomization) {
	m.t.Helper()
	if k.DeletionTimestamp != nil {
		delete(m.applied, k.Name)
		k.Finalizers = slices.DeleteFunc(k.Finalizers, func(f string) bool { return f == fluxFinalizer })
		m.write(m.store.Update(m.t.Context(), k))
		return
	}
	if !slices.Contains(k.Finalizers, fluxFinalizer) {
		k.Finalizers = append(k.Finalizers, fluxFinalizer)
		m.write(m.store.Update(m.t.Context(), k))
		return
	}
	g := &sourcev1.GitRepository{}
	if err := m.store.Get(m.t.Context(), client.ObjectKey{Namespace: k.Namespace, Name: k.Spec.SourceRef.Name}, g); err != nil || g.Status.Artifact == nil {
		m.sayf("source of %s is missing: %v", k.Name, err)
		return
	}
	values := ""
	if k.Spec.PostBuild != nil {
		values = fmt.Sprint(k.Spec.PostBuild.Substitute)
	}
	m.applied[k.Name] = g.Status.Artifact.Revision + " " + values
	k.Status.ObservedGeneration, k.Status.LastAppliedRevision = k.Generation, g.Status.Artifact.Revision
	apimeta.SetStatusCondition(&k.Status.Conditions, metav1.Condition{
		Type: meta.ReadyCondition, Status: metav1.ConditionTrue, Reason: meta.ReconciliationSucceededReason, ObservedGeneration: k.Generation, LastTransitionTime: metav1.NewTime(m.now),
	})
	m.write(m.store.Status().Update(m.t.Context(), k))
}

// write is that of another process, which acts again after a conflict.
func (m *memory) write(err error) {
	m.t.Helper()
	if client.IgnoreNotFound(err) != nil && !apierrors.IsConflict(err) {
		m.t.Fatal(err)
	}
}

func (m *memory) sayf(format string, args ...any) {
	m.said = append(m.said, fmt.Sprintf(format, args...))
}

// look checks an instant: what a sync that stays assigned has brought about stays, and what is
// fetched from exists.
func (m *memory) look() {
	m.t.Helper()
	a, ks := &v1alpha1.AssemblageList{}, &kustomizev1.KustomizationList{}
	if err := errors.Join(m.store.List(m.t.Context(), a), m.store.List(m.t.Context(), ks)); err != nil {
		m.t.Fatal(err)
	}
	assigned, there := map[string]bool{}, map[string]bool{}
	for i := range a.Items {
		of := local.read(&a.Items[i])
		for j := range of.Syncs {
			assigned[KustomizationName(&of, of.Syncs[j].Name)] = of.Syncs[j].isAssigned() && !of.Deleting
		}
	}
	for i := range ks.Items {
		k := &ks.Items[i]
		there[k.Name] = k.DeletionTimestamp == nil
		if len(a.Items) == 0 {
			m.broken = append(m.broken, k.Name+" outlives its assemblage")
		}
		if m.wanted[k.Name] && m.store.Object(&sourcev1.GitRepository{}, client.ObjectKey{Namespace: k.Namespace, Name: k.Spec.SourceRef.Name}) == nil {
			m.broken = append(m.broken, "the source of "+k.Name+" is gone while it is used")
		}
	}
	for name, was := range m.wanted {
		if was && assigned[name] && !there[name] {
			m.broken = append(m.broken, name+" is taken away while it is assigned")
		}
	}
	for name, is := range assigned {
		m.wanted[name] = is && there[name] && m.applied[name] != ""
	}
}

// assign has the assemblage have these syncs, each "name tag".
func (m *memory) assign(syncs ...string) {
	m.t.Helper()
	a := &v1alpha1.Assemblage{ObjectMeta: metav1.ObjectMeta{Namespace: inMemory, Name: "c1"}}
	err := m.store.Get(m.t.Context(), client.ObjectKeyFromObject(a), a)
	a.Spec.Syncs = nil
	for _, s := range syncs {
		name, tag, _ := strings.Cut(s, " ")
		sync := v1alpha1.NamedSync{Assignment: v1alpha1.Assignment{Name: name, Revision: name + "-" + tag}}
		sync.Source = &v1alpha1.Source{Git: &v1alpha1.GitSource{URL: "https://git.test/" + name, Version: v1alpha1.GitVersion{Tag: tag}}}
		if name == "shop" {
			sync.Bindings = []v1alpha1.Binding{{Name: "A", ObjectFieldRef: &v1alpha1.ObjectFieldReference{Kind: "ConfigMap", Name: "region", FieldPath: "/data/name"}}}
			sync.Package = &v1alpha1.Package{Kustomize: &v1alpha1.Kustomize{Substitute: map[string]string{"region": "$(A)"}}}
		}
		a.Spec.Syncs = append(a.Spec.Syncs, sync)
	}
	if apierrors.IsNotFound(err) {
		err = m.store.Create(m.t.Context(), a)
	} else if err == nil {
		err = m.store.Update(m.t.Context(), a)
	}
	if err != nil {
		m.t.Fatal(err)
	}
}

var times = regexp.MustCompile(`"(uid|resourceVersion|lastTransitionTime|creationTimestamp|time|requestedAt)":"[^"]*"`)

// is all that there is, but for times.
func (m *memory) is() string {
	var all []string
	for _, obj := range m.store.All() {
		obj = obj.DeepCopyObject().(client.Object)
		obj.SetManagedFields(nil)
		raw, err := json.Marshal(obj)
		if err != nil {
			m.t.Fatal(err)
		}
		all = append(all, times.ReplaceAllString(string(raw), `"$1":""`))
	}
	return strings.Join(append(all, fmt.Sprint(m.applied)), "\n")
}

// tell tells the life of an assemblage: two syncs, one of which is bound; another revision of the
// one; the end of the other; and the end of all. It returns what there is after each chapter.
func (m *memory) tell() (chapters []string) {
	m.t.Helper()
	region := &unstructured.Unstructured{Object: map[string]any{"data": map[string]any{"name": "eu"}}}
	region.SetGroupVersionKind(schema.GroupVersionKind{Version: "v1", Kind: "ConfigMap"})
	region.SetNamespace(inMemory)
	region.SetName("region")
	if err := m.store.Create(m.t.Context(), region); err != nil {
		m.t.Fatal(err)
	}
	for _, chapter := range []func(){
		func() { m.assign("shop v1", "other v1") }, func() { m.assign("shop v2", "other v1") }, func() { m.assign("shop v2") },
		func() {
			m.write(m.store.Delete(m.t.Context(), &v1alpha1.Assemblage{ObjectMeta: metav1.ObjectMeta{Namespace: inMemory, Name: "c1"}}))
		},
	} {
		chapter()
		m.settles()
		chapters = append(chapters, m.is())
	}
	return chapters
}

// TestTheManagerStopsAtEveryWriteInMemory: whenever it stops, in the end of each chapter there is
// what there is without a fault, and what stays assigned is not taken away meanwhile.
func TestTheManagerStopsAtEveryWriteInMemory(t *testing.T) {
	t.Parallel()
	faultless := newMemory(t, &fault.Life{})
	want := faultless.tell()
	only, left := `"kind":"ConfigMap"`, strings.Split(want[3], "\n")
	if len(faultless.broken) > 0 || len(left) != 2 || !strings.Contains(left[0], only) || left[1] != "map[]" {
		t.Fatalf("without a fault %q, and in the end there is\n%s", faultless.broken, want[3])
	}
	if !strings.HasSuffix(want[2], "map[c1-shop:v2@sha1:v2 map[region:eu]]") || strings.Contains(want[2], "https://git.test/other") {
		t.Fatalf("without a fault there is\n%s", want[2])
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
