package agent

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	helmv2 "github.com/fluxcd/helm-controller/api/v2"
	kustomizev1 "github.com/fluxcd/kustomize-controller/api/v1"
	sourcev1 "github.com/fluxcd/source-controller/api/v1"
	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/validation"
	"pgregory.net/rapid"
	"sigs.k8s.io/yaml"

	"github.com/spillway-dev/spillway/api/fleet/v1alpha1"
	"github.com/spillway-dev/spillway/internal/fleet/assemblage"
	"github.com/spillway-dev/spillway/internal/fleet/binding"
	"github.com/spillway-dev/spillway/internal/fleet/cluster"
	"github.com/spillway-dev/spillway/internal/fleet/outcome"
	"github.com/spillway-dev/spillway/internal/vocabulary"
)

// model is an assemblage on a cluster in which Flux does immediately all that it is asked.
type model struct {
	*testing.T

	o Observed
}

func newModel(t *testing.T, syncs ...string) *model {
	t.Helper()
	m := &model{T: t, o: Observed{
		Now: time.Unix(1000, 0), Known: binding.Known{},
		Assemblage: Assemblage{
			GroupVersionKind: v1alpha1.GroupVersion.WithKind("Assemblage"), NamespacedName: types.NamespacedName{Namespace: "n", Name: "c1"},
			UID: "a", Generation: 1,
		},
		Kustomizations: map[string]*kustomizev1.Kustomization{}, Releases: map[string]*helmv2.HelmRelease{}, Sources: map[SourceKey]*Source{},
	}}
	m.wants(syncs...)
	return m
}

func (m *model) wants(syncs ...string) {
	m.Helper()
	m.o.Assemblage.Syncs = nil
	m.o.Assemblage.Generation++
	for _, text := range syncs {
		s := v1alpha1.NamedSync{}
		if err := yaml.UnmarshalStrict([]byte(text), &s); err != nil {
			m.Fatal(err)
		}
		m.o.Assemblage.Syncs = append(m.o.Assemblage.Syncs, Sync{
			Assignment: s.Assignment, SyncOptions: s.SyncOptions, Bindings: s.Bindings, Source: s.Source, Package: s.Package,
		})
	}
}

func git(name, tag, more string) string {
	return fmt.Sprintf("name: %s\nrevision: %s-%s\nsource: {git: {url: 'https://git.test/x', version: {tag: %s}}}\n%s", name, name, tag, tag, more)
}

// step does what the plan says, and returns the writes as words.
func (m *model) step() (Plan, []string) {
	m.Helper()
	p := Decide(&m.o)
	var made []string
	for _, w := range p.Writes {
		made = append(made, m.do(w))
	}
	m.o.Assemblage.Status = p.Status
	return p, made
}

func (m *model) do(w Write) string {
	m.Helper()
	switch w.Act {
	case assemblage.AddFinalizer, assemblage.RemoveFinalizer:
		m.o.Assemblage.HasFinalizer = w.Act == assemblage.AddFinalizer
		return string(w.Act)
	case Suspend:
		m.o.Releases[w.Name].Spec.Suspend = true
		m.o.Releases[w.Name].Annotations[vocabulary.ReleaseDeletionPolicy.Native] = leaving
		return "Suspend " + w.Name
	case Delete:
		if w.Kind == helmv2.HelmReleaseKind {
			delete(m.o.Releases, w.Name)
		} else {
			delete(m.o.Kustomizations, w.Name)
		}
		return "Delete " + w.Name
	case Dispose:
		if w.Kind == helmv2.HelmReleaseKind {
			m.o.Releases[w.Name].Annotations[vocabulary.ReleaseDeletionPolicy.Native] = w.Policy
			return w.Policy + " " + w.Name
		}
		m.o.Kustomizations[w.Name].Spec.DeletionPolicy = w.Policy
		return w.Policy + " " + w.Name
	case Apply:
		m.apply(w.Object)
		return "Apply " + w.Object.GetKind() + " " + w.Object.GetName()
	default:
		return string(w.Act) + " " + w.Name
	}
}

func (m *model) apply(u *unstructured.Unstructured) {
	m.Helper()
	if u.GetKind() == helmv2.HelmReleaseKind {
		m.release(u)
		return
	}
	if u.GetKind() != kustomizev1.KustomizationKind {
		m.o.Sources[SourceKey{u.GetKind(), u.GetName()}] = &Source{
			Generation: 1, ObservedGeneration: 1, Shared: true, Revision: "artifact of " + u.GetName(), Content: u.DeepCopy(),
		}
		return
	}
	k := &kustomizev1.Kustomization{}
	if err := runtime.DefaultUnstructuredConverter.FromUnstructured(u.Object, k); err != nil {
		m.Fatal(err)
	}
	k.UID = types.UID("uid of " + k.Name)
	if former := m.o.Kustomizations[k.Name]; former != nil {
		k.Generation = former.Generation
	}
	k.Generation++
	k.Status.ObservedGeneration, k.Status.LastAppliedRevision = k.Generation, "artifact of "+k.Spec.SourceRef.Name
	k.Status.Conditions = []metav1.Condition{{Type: "Ready", Status: "True", Reason: "Applied", ObservedGeneration: k.Generation}}
	reduceKustomization(k) // as the cache does
	m.o.Kustomizations[k.Name] = k
}

// settles acts until nothing is left to do.
func (m *model) settles() (all []string) {
	m.Helper()
	for range 10 {
		p, made := m.step()
		if len(made) == 0 && !p.Changes {
			return all
		}
		all = append(all, made...)
	}
	m.Fatal("it never ends: ", all)
	return nil
}

func (m *model) says(sync string) string {
	for _, s := range m.o.Assemblage.Status.Syncs {
		if s.Name == sync {
			return fmt.Sprintf("%s %s %s: %s", s.Revision, s.State, s.Reason, s.Message)
		}
	}
	return ""
}

func (m *model) expect(got, want any) {
	m.Helper()
	if diff := cmp.Diff(want, got); diff != "" {
		m.Errorf("(-want +got):\n%s", diff)
	}
}

func gitName(sync, tag string) string {
	return hashedName(sync, v1alpha1.Source{Git: &v1alpha1.GitSource{URL: "https://git.test/x", Version: v1alpha1.GitVersion{Tag: tag}}})
}

func TestTheFinalizerGoesBeforeAllElse(t *testing.T) {
	m := newModel(t, git("shop", "v1", ""))
	m.expect(m.settles(), []string{"AddFinalizer", "Apply GitRepository " + gitName("shop", "v1"), "Apply Kustomization c1-shop"})
	m.expect(m.says("shop"), "shop-v1 succeeded Applied: applied artifact of "+gitName("shop", "v1"))
	m.o.Assemblage.Deleting = true
	m.expect(m.settles(), []string{"Delete c1-shop", "RemoveFinalizer"})
}

func TestAnotherVersionIsAnotherSource(t *testing.T) {
	m := newModel(t, git("shop", "v1", ""))
	m.settles()
	m.wants(git("shop", "v2", ""))
	m.expect(m.settles(), []string{"Apply GitRepository " + gitName("shop", "v2"), "Apply Kustomization c1-shop"})
	m.wants(git("shop", "v1", "")) // whose source still exists
	m.expect(m.settles(), []string{"Apply Kustomization c1-shop"})
}

func TestNamesDoNotShift(t *testing.T) {
	m := newModel(t, git("a", "v1", ""), git("b", "v1", ""))
	m.settles()
	m.wants(git("b", "v1", ""))
	m.expect(m.settles(), []string{"Delete c1-a"})
}

func TestASyncThatOnlyPinsIsNotAssigned(t *testing.T) {
	m := newModel(t, git("a", "v1", ""), "name: b\nhold: {reason: slow}")
	m.expect(m.settles(), []string{"AddFinalizer", "Apply GitRepository " + gitName("a", "v1"), "Apply Kustomization c1-a"})
	m.expect(m.says("b"), " waiting NotAssigned: pins the cluster only; nothing is assigned")
}

// What is said in the words of Flux stands in its objects, as these have it, and is applied once.
func TestWhatIsHandedThroughIsAppliedOnce(t *testing.T) {
	const spec = "package: {kustomize: {path: app, substitute: {a: b}, spec: {decryption: {provider: sops, secretRef: {name: keys}}, " +
		"retryInterval: 90s, force: false, images: [], postBuild: {substituteFrom: [{kind: Secret, name: c}]}}}}"
	m := newModel(t, git("shop", "v1", spec))
	m.expect(m.settles(), []string{"AddFinalizer", "Apply GitRepository " + gitName("shop", "v1"), "Apply Kustomization c1-shop"})
	k := m.o.Kustomizations["c1-shop"].Spec
	m.expect([]any{k.Decryption.SecretRef.Name, k.RetryInterval.Duration, k.Path, k.PostBuild.Substitute["a"], k.PostBuild.SubstituteFrom[0].Name},
		[]any{"keys", 90 * time.Second, "app", "b", "c"})
	m.wants(git("shop", "v1", "package: {kustomize: {spec: {prune: false}}}"))
	m.expect(m.settles(), []string(nil))
	m.expect(m.says("shop"), "shop-v1 failed InvalidInput: package.kustomize.spec.prune: Spillway sets it; remove it, and say it in prune")
}

// What depends on another sync waits for its Kustomization, and goes before it; in a circle all go.
func TestWhatDependsOnAnotherGoesFirst(t *testing.T) {
	m := newModel(t, git("a", "v1", ""), git("b", "v1", "dependsOn: [a]"), git("c", "v1", "dependsOn: [b]\npackage: {kustomize: {spec: {dependsOn: [{name: theirs}]}}}"))
	m.settles()
	m.expect(m.o.Kustomizations["c1-c"].Spec.DependsOn, []kustomizev1.DependencyReference{{Name: "theirs"}, {Name: "c1-b"}})
	m.wants()
	m.expect(m.settles(), []string{"Delete c1-c", "Delete c1-b", "Delete c1-a"})
	m.wants(git("a", "v1", "dependsOn: [b]"), git("b", "v1", "dependsOn: [a]"), git("c", "v1", ""))
	m.settles()
	m.o.Assemblage.Deleting = true
	m.expect(m.settles(), []string{"Delete c1-c", "Delete c1-a", "Delete c1-b", "RemoveFinalizer"})
}

// A bad binding leaves what there is, and no other sync waits for it.
func TestABadBindingHoldsItsSyncAlone(t *testing.T) {
	const bound = "bindings: [{name: A, objectFieldRef: {kind: ConfigMap, name: region, fieldPath: /data/name}}]\npackage: {kustomize: {substitute: {x: $(A)}}}"
	m := newModel(t, git("a", "v1", ""), git("b", "v1", bound))
	region := binding.Object{APIVersion: "v1", Kind: "ConfigMap", Name: "region"}
	m.step()
	p := Decide(&m.o)
	m.expect(p.Needs, []binding.Object{region})
	m.o.Known[region] = binding.Look{Content: map[string]any{"data": map[string]any{"name": "eu"}}}
	m.settles()
	m.expect(m.o.Kustomizations["c1-b"].Spec.PostBuild.Substitute, map[string]string{"x": "eu"})
	m.o.Known[region] = binding.Look{}
	m.wants(git("a", "v2", ""), git("b", "v2", bound))
	m.expect(m.settles(), []string{"Apply GitRepository " + gitName("a", "v2"), "Apply Kustomization c1-a"})
	m.expect(m.says("b"), `b-v2 waiting BindingNotReady: binding "A": ConfigMap region does not exist`)
	m.expect(m.o.Kustomizations["c1-b"].Spec.PostBuild.Substitute, map[string]string{"x": "eu"})
	stalled := m.o.Assemblage.Status.Conditions[0]
	if stalled.Status != "False" || !strings.Contains(stalled.Message, `sync b: binding "A"`) {
		t.Errorf("the condition does not name it: %+v", stalled)
	}
}

func TestUnownedObjectsAreLeftAlone(t *testing.T) {
	m := newModel(t, git("shop", "v1", ""))
	m.o.Kustomizations["c1-shop"] = &kustomizev1.Kustomization{ObjectMeta: metav1.ObjectMeta{Name: "c1-shop", UID: "theirs"}}
	m.expect(m.settles(), []string{"AddFinalizer"})
	m.expect(m.says("shop"), "shop-v1 failed ForeignObject: Kustomization c1-shop already exists and is not owned by this assemblage; rename or delete it")
	m.o.Assemblage.Deleting = true
	m.expect(m.settles(), []string{"RemoveFinalizer"})
	delete(m.o.Kustomizations, "c1-shop")
	m.o.Assemblage.Deleting = false
	m.o.Sources[SourceKey{sourcev1.GitRepositoryKind, gitName("shop", "v1")}] = &Source{}
	m.settles()
	m.expect(m.says("shop"), "shop-v1 failed ForeignObject: GitRepository "+gitName("shop", "v1")+" already exists and is not owned by this assemblage; rename or delete it")
}

// What has the same name and is being deleted is waited for, and not written over.
func TestWhatIsBeingDeletedIsWaitedFor(t *testing.T) {
	m := newModel(t, git("shop", "v1", ""))
	m.settles()
	m.o.Kustomizations["c1-shop"].DeletionTimestamp = &metav1.Time{}
	m.wants(git("shop", "v2", ""))
	m.expect(m.settles(), []string(nil))
	m.expect(m.says("shop"), "shop-v2 waiting Terminating: waiting for the old Kustomization c1-shop to be deleted")
	m = newModel(t, git("shop", "v1", ""))
	m.settles()
	m.o.Sources[SourceKey{sourcev1.GitRepositoryKind, gitName("shop", "v1")}].Deleting = true
	delete(m.o.Kustomizations, "c1-shop")
	m.expect(m.settles(), []string(nil))
	m.expect(m.says("shop"), "shop-v1 waiting Terminating: waiting for the old GitRepository "+gitName("shop", "v1")+" to be deleted")
}

// What was changed by hand is put back, and what is not wanted any more is noticed.
func TestWhatIsAppliedIsKept(t *testing.T) {
	for name, change := range map[string]func(*kustomizev1.Kustomization){
		"another interval": func(k *kustomizev1.Kustomization) { k.Spec.Interval.Duration = time.Hour },
		"no prune":         func(k *kustomizev1.Kustomization) { k.Spec.Prune = false },
		"no wait":          func(k *kustomizev1.Kustomization) { k.Spec.Wait = false },
		"no hash":          func(k *kustomizev1.Kustomization) { k.Annotations = nil },
		"another source":   func(k *kustomizev1.Kustomization) { k.Spec.SourceRef.Name = "x" },
	} {
		t.Run(name, func(t *testing.T) {
			m := newModel(t, git("shop", "v1", ""))
			m.settles()
			change(m.o.Kustomizations["c1-shop"])
			m.expect(Decide(&m.o).Writes[0].UID, types.UID("uid of c1-shop")) // over what was seen
			m.expect(m.settles(), []string{"Apply Kustomization c1-shop"})
		})
	}
	m := newModel(t, git("shop", "v1", ""))
	m.settles()
	m.o.Sources[SourceKey{sourcev1.GitRepositoryKind, gitName("shop", "v1")}].Content.SetAnnotations(nil)
	_, made := m.step()
	m.expect(made, []string{"Apply GitRepository " + gitName("shop", "v1")})
	m.expect(m.says("shop"), "shop-v1 updating Applying: handed to Flux")
	m = newModel(t, git("shop", "v1", "package: {kustomize: {path: deploy, substitute: {a: b}}}"))
	m.settles()
	m.wants(git("shop", "v1", ""))
	m.expect(m.settles(), []string{"Apply Kustomization c1-shop"})
	m.o.Kustomizations["c1-shop"].Spec.TargetNamespace = "theirs" // nothing here sets that
	m.expect(m.settles(), []string(nil))
}

func TestALostClusterIsGivenUpOnlyWhenAsked(t *testing.T) {
	m := newModel(t, git("shop", "v1", ""))
	m.settles()
	m.o.Assemblage.Deleting, m.o.Assemblage.Abandoned = true, true
	m.expect(m.settles(), []string{"Orphan c1-shop", "Delete c1-shop", "RemoveFinalizer"})
}

// That what runs is to stay comes to the Kustomization also where the rest of a sync has
// to wait, and is said once it has.
func TestWhatIsToStayIsSaidOnceItWould(t *testing.T) {
	const bound = "package: {kustomize: {substitute: {x: $(A)}}}\nbindings: [{name: A, value: $(A)}]\ndeletionPolicy: Orphan"
	for name, test := range map[string]struct {
		wants  string
		change func(*Observed)
		want   []string
	}{
		"nothing in the way": {git("shop", "v1", "deletionPolicy: Orphan"), func(*Observed) {}, []string{"Apply Kustomization c1-shop"}},
		"a bad binding":      {git("shop", "v2", bound), func(*Observed) {}, []string{"Orphan c1-shop"}},
		"no kubeconfig": {git("shop", "v2", "deletionPolicy: Orphan"), func(o *Observed) {
			o.Reach.Problem = cluster.ErrMissing
		}, []string{"Orphan c1-shop"}},
	} {
		t.Run(name, func(t *testing.T) {
			m := newModel(t, git("shop", "v1", ""))
			m.settles()
			m.wants(test.wants)
			test.change(&m.o)
			_, made := m.step()
			m.expect(made, test.want)
			m.expect(m.o.Assemblage.Status.Syncs[0].DeletionPolicy, v1alpha1.DeletionPolicy(""))
			m.settles()
			m.expect(m.o.Assemblage.Status.Syncs[0].DeletionPolicy, v1alpha1.Orphan)
			m.wants(git("shop", "v1", ""))
			m.step()
			m.expect(m.o.Assemblage.Status.Syncs[0].DeletionPolicy, v1alpha1.DeletionPolicy(""))
		})
	}
	m := newModel(t, git("shop", "v1", ""))
	m.settles()
	m.wants(git("other", "v1", ""), git("shop", "v2", bound)) // what else is applied is no reason to wait
	_, made := m.step()
	m.expect(made, []string{"Apply GitRepository " + gitName("other", "v1"), "Apply Kustomization c1-other", "Orphan c1-shop"})
	m = newModel(t, git("shop", "v1", bound)) // of which nothing runs yet
	m.settles()
	m.expect(m.o.Assemblage.Status.Syncs[0].DeletionPolicy, v1alpha1.Orphan)
}

// A rollout of one sync is two writes of the status, and an hour of looking again none.
func TestTheStatusIsWrittenOnceForEachState(t *testing.T) {
	m := newModel(t, git("shop", "v1", ""))
	m.settles()
	m.wants(git("shop", "v2", ""))
	written := 0
	for range 10 {
		if p, _ := m.step(); p.Changes {
			written++
		}
	}
	m.expect(written, 2)
	k := m.o.Kustomizations["c1-shop"]
	for _, status := range []metav1.ConditionStatus{"Unknown", "True", "Unknown", "True"} {
		m.o.Now = m.o.Now.Add(10 * time.Minute)
		k.Status.Conditions[0].Status, k.Status.Conditions[0].Reason = status, "Progressing"
		if p, made := m.step(); p.Changes || len(made) > 0 {
			t.Errorf("Flux looks again, and %v was written, status: %v", made, p.Changes)
		}
	}
}

// The message of a sync that is updating changes only after a while.
func TestWordsAreKeptForAWhile(t *testing.T) {
	m := newModel(t, git("shop", "v1", ""))
	m.step()
	m.step()
	k := m.o.Kustomizations["c1-shop"]
	k.Status.Conditions = nil
	p, _ := m.step()
	if p.Changes || !p.Wake.Equal(m.o.Now.Add(outcome.KeptFor)) {
		t.Errorf("changes %v, wake %v", p.Changes, p.Wake)
	}
	m.o.Now = m.o.Now.Add(outcome.KeptFor)
	if p, _ := m.step(); !p.Changes || !strings.Contains(m.says("shop"), "has not observed") {
		t.Errorf("%s", m.says("shop"))
	}
}

func TestPropertyNamesAreNamesAndTellApart(t *testing.T) {
	part := rapid.OneOf(rapid.StringMatching(`[a-z][a-z0-9-]{0,80}[a-z0-9]`), rapid.StringMatching(`[A-Za-z._/-]{1,20}`))
	rapid.Check(t, func(t *rapid.T) {
		names := rapid.SliceOfNDistinct(part, 2, 2, rapid.ID).Draw(t, "names")
		for _, name := range []string{nameOf("c1", names[0]), nameOf(names[0], names[1]), hashedName(names[0], names[1])} {
			if problems := validation.IsDNS1123Label(name); len(problems) > 0 {
				t.Fatalf("%q: %v", name, problems)
			}
		}
		if nameOf("c1", names[0]) == nameOf("c1", names[1]) {
			t.Fatalf("%q and %q have one name", names[0], names[1])
		}
		if hashedName(names[0], "x") == hashedName(names[1], "x") || hashedName(names[0], "x") == hashedName(names[0], "y") {
			t.Fatalf("two sources have one name: %q, %q", names[0], names[1])
		}
	})
}

// The hub has the Kustomizations of all clusters in one namespace, as a cluster has those
// of all its assemblages: none has the name of another.
func TestPropertyNamesOfTwoPartsTellBothApart(t *testing.T) {
	part := rapid.OneOf(rapid.StringMatching(`[ab-]{1,5}`), rapid.StringMatching(`[ab.-]{30,33}`))
	rapid.Check(t, func(t *rapid.T) {
		a, b, c, d := part.Draw(t, "a"), part.Draw(t, "b"), part.Draw(t, "c"), part.Draw(t, "d")
		if whole := a + "-" + b; rapid.Bool().Draw(t, "alike") { // the same letters, divided elsewhere
			at := rapid.IntRange(1, len(whole)-2).Draw(t, "at")
			c, d = whole[:at], whole[at+1:]
		}
		if one, other := nameOf(a, b), nameOf(c, d); one == other && (a != c || b != d) {
			t.Fatalf("%q and %q, and %q and %q, are both %q", a, b, c, d, one)
		}
	})
}

// A Kustomization that was made by a name of before keeps it: nothing is written, and
// nothing deleted. Where that has another owner, there is another name.
func TestAFormerNameIsKept(t *testing.T) {
	for _, sync := range []string{"shop-eu", strings.Repeat("long-", 20) + "x"} {
		t.Run(sync, func(t *testing.T) {
			m := newModel(t, git(sync, "v1", ""))
			m.settles()
			name, former := KustomizationName(&m.o.Assemblage, sync), FormerKustomizationName(&m.o.Assemblage, sync)
			if name == former {
				t.Fatal("the name has not changed")
			}
			before, err := m.o.expand(&m.o.Assemblage.Syncs[0], appliedKey{kustomizev1.KustomizationKind, former}, bound{})
			if err != nil {
				t.Fatal(err)
			}
			delete(m.o.Kustomizations, name)
			m.apply(before)
			m.expect(m.settles(), []string(nil))
			m.wants(git(sync, "v2", ""))
			m.expect(m.settles(), []string{"Apply GitRepository " + gitName(sync, "v2"), "Apply Kustomization " + former})
			m.wants()
			m.expect(m.settles(), []string{"Delete " + former})
			m.o.Kustomizations[former] = &kustomizev1.Kustomization{ObjectMeta: metav1.ObjectMeta{Name: former, UID: "theirs"}}
			m.wants(git(sync, "v2", ""))
			m.expect(m.settles(), []string{"Apply Kustomization " + name})
		})
	}
}

// Whatever is assigned in whatever order: what it comes to is the same, once nothing is
// to be done there is nothing to be done, and there are as many Kustomizations as syncs.
func TestPropertyTheEndDoesNotDependOnTheWay(t *testing.T) {
	rapid.Check(t, func(r *rapid.T) {
		sync := rapid.Custom(func(r *rapid.T) string {
			return git(rapid.SampledFrom([]string{"a", "b", "c"}).Draw(r, "name"), rapid.SampledFrom([]string{"v1", "v2"}).Draw(r, "tag"), "")
		})
		wish := rapid.SliceOfNDistinct(sync, 0, 3, func(s string) string { return s[:7] })
		walked := newModel(t)
		for range rapid.IntRange(0, 3).Draw(r, "steps") {
			walked.wants(wish.Draw(r, "wish")...)
			walked.settles()
		}
		last := wish.Draw(r, "last")
		walked.wants(last...)
		walked.settles()
		straight := newModel(t, last...)
		straight.settles()
		if diff := cmp.Diff(kustomizations(straight), kustomizations(walked)); diff != "" {
			r.Errorf("(-straight +walked):\n%s", diff)
		}
	})
}

func kustomizations(m *model) []string {
	all := []string{}
	for name, k := range m.o.Kustomizations {
		all = append(all, name+" "+k.Spec.SourceRef.Name+" "+k.Annotations["spillway.dev/applied-hash"])
	}
	slices.Sort(all)
	return all
}

// An assemblage of the hub that is orphaned is deleted once all is removed.
func TestADesertedOneGoesOnceAllIsTakenAway(t *testing.T) {
	m := newModel(t, git("shop", "v1", ""))
	m.settles()
	m.o.Orphaned = true
	m.wants()
	_, made := m.step()
	m.expect(made, []string{"Delete c1-shop"})
	_, made = m.step()
	m.expect(made, []string{"Retire "})
}

// While something is updating on another cluster, the cluster must have answered lately.
func TestAnotherClusterIsAskedAgainWhileItIsUpdating(t *testing.T) {
	for name, test := range map[string]struct {
		secret  string
		problem error
		asks    bool
	}{
		"Flux is applying to another cluster": {"c1-kubeconfig", nil, true},
		"that does not answer":                {"c1-kubeconfig", &cluster.UnreachableError{Reason: "no answer in time"}, false},
		"Flux is applying where it runs":      {"", nil, false},
	} {
		t.Run(name, func(t *testing.T) {
			m := newModel(t, git("shop", "v1", ""))
			m.o.Assemblage.Secret, m.o.Assemblage.HasFinalizer, m.o.Reach.Problem = test.secret, true, test.problem
			p := Decide(&m.o)
			if p.Verify != test.asks || p.Wake.Equal(m.o.Now.Add(5*time.Second)) != test.asks {
				t.Errorf("it is to be asked: %t, at %s", p.Verify, p.Wake)
			}
		})
	}
}

// The status of an assemblage without a finalizer, and of one that goes, stays as it is.
func TestTheStatusStaysUntilSomethingIsDone(t *testing.T) {
	m := newModel(t, git("shop", "v1", ""))
	m.settles()
	was := *m.o.Assemblage.Status.DeepCopy()
	m.wants(git("shop", "v2", ""))
	m.o.Assemblage.HasFinalizer = false
	m.expect(Decide(&m.o).Status, was)
	m.o.Assemblage.HasFinalizer, m.o.Assemblage.Deleting, m.o.Kustomizations = true, true, nil
	p := Decide(&m.o)
	m.expect(p.Status, was)
	m.expect(p.Writes, []Write{{Act: assemblage.RemoveFinalizer}})
	m.o.Assemblage.HasFinalizer = false
	m.expect(Decide(&m.o).Writes, []Write(nil))
}

// What is being deleted already is not deleted again, and a binding that must be corrected is
// evaluated again in a minute.
func TestNothingIsDoneTwice(t *testing.T) {
	m := newModel(t, git("shop", "v1", ""))
	m.settles()
	m.wants(git("other", "v1", "bindings: [{name: A, value: $(A)}]\npackage: {kustomize: {substitute: {x: $(A)}}}"))
	m.o.Kustomizations["c1-shop"].DeletionTimestamp = &metav1.Time{Time: m.o.Now}
	p := Decide(&m.o)
	m.expect(p.Writes, []Write(nil))
	m.expect(p.Wake.Sub(m.o.Now), time.Minute)
	m.expect(p.Status.Syncs[0].State, v1alpha1.StateFailed)
}

// A write says for which sync it is, so that a refusal is reported of that one.
func TestAWriteSaysForWhichSyncItIs(t *testing.T) {
	m := newModel(t, git("a", "v1", ""), git("b", "v2", ""))
	m.step()
	var got []string
	for _, w := range Decide(&m.o).Writes {
		got = append(got, w.Sync)
	}
	m.expect(got, []string{"a", "a", "b", "b"})
	m.settles()
	m.wants(git("b", "v2", ""))
	m.expect(Decide(&m.o).Writes, []Write{{Act: Delete, Kind: "Kustomization", Name: "c1-a", UID: "uid of c1-a"}})
}

// Nothing is done for an assemblage without syncs that has no finalizer. One that is deleted
// waits until Flux has removed what it has applied, and says so.
func TestAnAssemblageThatGoesWaitsForFlux(t *testing.T) {
	m := newModel(t)
	m.expect(Decide(&m.o).Writes, []Write(nil))
	m.wants(git("shop", "v1", ""))
	m.settles()
	m.o.Assemblage.Deleting = true
	p := Decide(&m.o)
	m.expect(p.Writes, []Write{{Act: Delete, Kind: "Kustomization", Name: "c1-shop", UID: "uid of c1-shop"}})
	m.expect(p.Status.Conditions[0].Message, "waiting for Flux to remove what Kustomization c1-shop has applied")
}

// Only a failure that the cluster may have caused is asked about, and what the API server
// refused is said of the sync that it was for.
func TestWhatIsAskedAboutAndWhatWasRefused(t *testing.T) {
	m := newModel(t, git("shop", "v1", ""), git("other", "v1", ""))
	m.o.Assemblage.Secret = "c1-kubeconfig"
	m.settles()
	m.expect(Decide(&m.o).Asks, []string(nil))
	k := m.o.Kustomizations[m.o.kustomizationName("shop")]
	k.Status.Conditions[0].Status, k.Status.Conditions[0].Reason, k.Status.Conditions[0].Message = "False", "ReconciliationFailed", "no route"
	if asks := Decide(&m.o).Asks; len(asks) != 1 || asks[0] == "" {
		t.Errorf("it asks about %q", asks)
	}
	m.o.Refusals = assemblage.Refusals{"other": &outcome.Refusal{State: v1alpha1.StateWaiting, Message: "forbidden"}}
	m.step()
	m.expect(m.says("other"), "other-v1 waiting WriteRefused: forbidden")
}
