package proxy

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/yaml"

	"github.com/spillway-dev/spillway/api/fleet/v1alpha1"
	"github.com/spillway-dev/spillway/internal/fleet/assemblage"
	"github.com/spillway-dev/spillway/internal/fleet/binding"
	"github.com/spillway-dev/spillway/internal/fleet/cluster"
	"github.com/spillway-dev/spillway/internal/fleet/outcome"
	"github.com/spillway-dev/spillway/internal/vocabulary"
)

// model is a ProxyAssemblage and its cluster, which takes all that is sent.
type model struct {
	*testing.T

	o Observed
}

func newModel(t *testing.T, syncs ...string) *model {
	t.Helper()
	m := &model{T: t, o: Observed{
		Now: time.Unix(1000, 0), Chance: 0.5, Known: binding.Known{}, Watched: true,
		Proxy: &v1alpha1.ProxyAssemblage{ObjectMeta: metav1.ObjectMeta{
			Namespace: "ns", Name: "c1", UID: "me", Generation: 1, Finalizers: []string{vocabulary.AssemblageFinalizer},
		}},
	}}
	m.o.Proxy.Spec.KubeconfigRef.Name = "c1-kubeconfig"
	m.wants(syncs...)
	return m
}

func (m *model) wants(syncs ...string) {
	m.Helper()
	m.o.Proxy.Spec.Assemblage.Syncs = nil
	for _, text := range syncs {
		s := v1alpha1.ProxySync{}
		if err := yaml.UnmarshalStrict([]byte(text), &s); err != nil {
			m.Fatal(err)
		}
		m.o.Proxy.Spec.Assemblage.Syncs = append(m.o.Proxy.Spec.Assemblage.Syncs, s)
	}
}

func git(name, tag, more string) string {
	return "name: " + name + "\nrevision: " + name + "-" + tag + "\nsource: {git: {url: 'https://git.test/x', version: {tag: " + tag + "}}}\n" + more
}

// step does what the plan says, and returns the writes as words.
func (m *model) step() (Plan, []string) {
	m.Helper()
	p := Decide(&m.o)
	var made []string
	for _, w := range p.Writes {
		made = append(made, string(w.Act))
		switch w.Act {
		case Send:
			m.receive(w)
		case Delete:
			m.o.Live = nil
		case assemblage.AddFinalizer:
			m.o.Proxy.Finalizers = []string{vocabulary.AssemblageFinalizer}
		case assemblage.RemoveFinalizer:
			m.o.Proxy.Finalizers = nil
		}
	}
	m.o.Proxy.Status = p.Status
	return p, made
}

func (m *model) receive(w Write) {
	m.Helper()
	generation := int64(0)
	if m.o.Live != nil {
		generation = m.o.Live.Generation
	}
	live := &v1alpha1.Assemblage{}
	if err := runtime.DefaultUnstructuredConverter.FromUnstructured(w.Object.Object, live); err != nil {
		m.Fatal(err)
	}
	live.Generation, live.UID = generation+1, "there"
	if m.o.Live != nil {
		live.Status = m.o.Live.Status
	}
	m.o.Live = live
}

// answers has the cluster say that a sync is in a state.
func (m *model) answers(name, revision string, state v1alpha1.State) {
	m.o.Live.Status.ObservedGeneration = m.o.Live.Generation
	m.o.Live.Status.Syncs = []v1alpha1.SyncStatus{{Name: name, Revision: revision, State: state, Reason: "There", Message: "says the cluster"}}
}

func (m *model) says() string {
	var all []string
	for _, s := range m.o.Proxy.Status.Syncs {
		all = append(all, s.Revision+" "+string(s.State)+": "+s.Message)
	}
	return strings.Join(all, ", ")
}

func (m *model) expect(got, want any) {
	m.Helper()
	if diff := cmp.Diff(want, got); diff != "" {
		m.Errorf("(-want +got):\n%s", diff)
	}
}

// Only what a sync refers to is sent, as a value that stands for itself.
func TestOfBindingsTheUsedOnesAreSent(t *testing.T) {
	m := newModel(t, git("shop", "v1", `
controlPlaneBindings: [{name: A, value: "5$ in $(CLUSTER_NAME)"}, {name: unused, value: x}, {name: own, value: hub}, {name: named, value: cm}, {name: quoted, value: q}]
bindings: [{name: own, value: theirs}, {name: C, value: $(quoted)}, {name: B, objectFieldRef: {kind: ConfigMap, name: $(named), fieldPath: /x}}]
package: {kustomize: {substitute: {x: "$(A) $(own) $(B) $(unbound)"}}}`))
	m.step()
	got := map[string]string{}
	for _, b := range m.o.Live.Spec.Syncs[0].Bindings {
		if b.Value != nil {
			got[b.Name] = *b.Value
		}
	}
	m.expect(got, map[string]string{"A": "5$$ in c1", "own": "theirs", "named": "cm", "quoted": "q", "C": "$(quoted)"})
	if _, made := m.step(); made != nil {
		t.Errorf("sent again: %v", made)
	}
}

// What is sent names its kind, its place, and whose it is.
func TestWhatIsSentIsMarked(t *testing.T) {
	m := newModel(t, git("shop", "v1", ""), git("other", "v1", ""))
	u := Decide(&m.o).Writes[0].Object
	m.expect([]string{u.GetAPIVersion(), u.GetKind(), u.GetNamespace(), u.GetName()}, []string{v1alpha1.GroupVersion.String(), "Assemblage", "ns", "c1"})
	marks := u.GetAnnotations()
	m.expect([]string{vocabulary.ProxiedBy.Get(marks), vocabulary.SentSyncs.Get(marks)}, []string{"me", "other,shop"})
	if vocabulary.AppliedHash.Get(marks) == "" {
		t.Error("without a hash of its content")
	}
}

// As many as the hub takes in both phases, and the name of the cluster, are 129: what an
// Assemblage takes.
func TestOfBindingsAtMost129AreSent(t *testing.T) {
	var here, there, used strings.Builder
	for i := range 64 {
		fmt.Fprintf(&here, "{name: h%d, value: x}, ", i)
		fmt.Fprintf(&there, "{name: t%d, value: x}, ", i)
		fmt.Fprintf(&used, "$(h%d)", i)
	}
	m := newModel(t, git("shop", "v1", "controlPlaneBindings: ["+here.String()+"]\nbindings: ["+there.String()+"]\n"+
		"package: {kustomize: {substitute: {x: '"+used.String()+" $(CLUSTER_NAME)'}}}"))
	m.step()
	m.expect(len(m.o.Live.Spec.Syncs[0].Bindings), 129)
}

// While the cluster has not looked at the newest version, what it said before stands; of
// another assignment it says nothing.
func TestAStatusIsCopiedOnlyOfWhatWasSent(t *testing.T) {
	m := newModel(t, git("shop", "v1", ""))
	m.step()
	m.expect(m.says(), "shop-v1 updating: sending to the cluster")
	m.answers("shop", "shop-v1", v1alpha1.StateSucceeded)
	m.step()
	m.expect(m.says(), "shop-v1 succeeded: says the cluster")
	m.wants(git("shop", "v2", ""))
	m.step()
	m.expect(m.says(), "shop-v2 updating: sending to the cluster")
	m.step()
	m.expect(m.says(), "shop-v2 updating: sending to the cluster")
	m.answers("shop", "shop-v1", v1alpha1.StateSucceeded)
	m.step()
	m.expect(m.says(), "shop-v2 updating: sending to the cluster")
	m.answers("shop", "shop-v2", v1alpha1.StateFailed)
	m.step()
	m.expect(m.says(), "shop-v2 failed: says the cluster")
	m.wants(git("shop", "v2", ""), git("other", "v1", "")) // another one moves
	m.step()
	m.expect(m.says(), "shop-v2 failed: says the cluster, other-v1 updating: sending to the cluster")
	m.step()
	m.expect(m.says(), "shop-v2 failed: says the cluster, other-v1 updating: sending to the cluster")
	m.o.Proxy.Status.Syncs = m.o.Proxy.Status.Syncs[1:] // nothing was said of it before
	m.o.Proxy.Status.Syncs[0].State = v1alpha1.StateUnreachable
	m.step()
	m.expect(m.says(), "shop-v2 updating: the cluster has not observed it yet, other-v1 updating: the cluster has not observed it yet")
}

func TestABadBindingIsSentAsItWasSent(t *testing.T) {
	m := newModel(t, git("a", "v1", ""), git("b", "v1", ""))
	m.step()
	m.wants(git("a", "v2", "controlPlaneBindings: [{name: A, value: $(A)}]\npackage: {kustomize: {substitute: {x: $(A)}}}"), git("b", "v2", ""))
	m.step()
	m.expect(m.o.Live.Spec.Syncs[0].Revision, "a-v1")
	m.expect(m.o.Live.Spec.Syncs[1].Revision, "b-v2")
	m.expect(m.says(), `a-v2 failed: binding "A": refers to itself: A -> A, b-v2 updating: sending to the cluster`)
}

// That what runs is to stay is sent also where the rest of a sync is kept back, and is
// said once the cluster says so of what was sent.
func TestWhatIsToStayIsSaidOnceTheClusterSaysSo(t *testing.T) {
	const bound = "controlPlaneBindings: [{name: A, value: $(A)}]\npackage: {kustomize: {substitute: {x: $(A)}}}\n"
	for name, wants := range map[string]string{
		"nothing in the way": git("shop", "v1", "deletionPolicy: Orphan"), "a bad binding": git("shop", "v2", bound+"deletionPolicy: Orphan"),
	} {
		t.Run(name, func(t *testing.T) {
			m := newModel(t, git("shop", "v1", ""))
			m.step()
			m.answers("shop", "shop-v1", v1alpha1.StateSucceeded)
			m.step()
			stays := func() v1alpha1.DeletionPolicy { m.step(); return m.o.Proxy.Status.Syncs[0].DeletionPolicy }
			m.wants(wants)
			m.o.Problem = &cluster.UnreachableError{Reason: "timeout"}
			m.expect(stays(), v1alpha1.DeletionPolicy(""))
			m.o.Problem = nil
			m.expect(stays(), v1alpha1.DeletionPolicy(""))
			m.expect(m.o.Live.Spec.Syncs[0].DeletionPolicy, v1alpha1.Orphan)
			m.expect(m.o.Live.Spec.Syncs[0].Revision, "shop-v1")
			m.expect(stays(), v1alpha1.DeletionPolicy(""))
			m.answers("shop", "shop-v1", v1alpha1.StateSucceeded)
			m.expect(stays(), v1alpha1.DeletionPolicy("")) // it has seen it, and Flux has not been told yet
			m.o.Live.Status.Syncs[0].DeletionPolicy = v1alpha1.Orphan
			m.expect(stays(), v1alpha1.Orphan)
			m.wants(git("shop", "v1", ""))
			m.expect(stays(), v1alpha1.DeletionPolicy(""))
		})
	}
}

// What a cluster refuses is said of what was sent. That one sync is not valid is no
// failure of another that was sent with it.
func TestARefusalIsOfWhatWasSent(t *testing.T) {
	m := newModel(t, git("shop", "v1", ""))
	m.step()
	m.answers("shop", "shop-v1", v1alpha1.StateSucceeded)
	m.step()
	m.o.Refusal = &outcome.Refusal{State: v1alpha1.StateFailed, Message: "no"}
	says := func(syncs ...string) {
		m.wants(syncs...)
		m.o.Proxy.Status = Decide(&m.o).Status
	}
	says(git("shop", "v1", ""), git("other", "v1", ""))
	m.expect(m.says(), "shop-v1 succeeded: says the cluster, other-v1 failed: no")
	says(git("shop", "v2", ""), git("other", "v1", ""))
	m.expect(m.says(), "shop-v2 waiting: no, other-v1 waiting: no")
	says()
	m.expect(m.o.Proxy.Status.Conditions[0].Message, "no")
}

// A commit in the place of its tag may be refused as well. Then what succeeded there is not
// what is to run.
func TestARefusalOfACommitInPlaceOfItsTagIsToldOfIt(t *testing.T) {
	commit := strings.Repeat("0", 40)
	m := newModel(t, git("shop", "v1", ""))
	m.step()
	m.answers("shop", "shop-v1", v1alpha1.StateSucceeded)
	m.o.Live.Status.Syncs[0].Resolved = "v1@sha1:" + commit
	m.step()
	m.o.Refusal = &outcome.Refusal{State: v1alpha1.StateFailed, Message: "no"}
	m.wants(strings.Replace(git("shop", "v1", ""), "{tag: v1}", "{revision: '"+commit+"'}", 1))
	m.o.Proxy.Status = Decide(&m.o).Status
	m.expect(m.says(), "shop-v1 failed: no")
}

// A cluster that has not answered yet, and one to which the connection broke, are not said
// to be anything new.
func TestNothingNewIsReportedOfAnUnknownCluster(t *testing.T) {
	for _, problem := range []error{errUnproven, errBroken} {
		m := newModel(t, git("shop", "v1", ""))
		m.step()
		m.answers("shop", "shop-v1", v1alpha1.StateSucceeded)
		m.step()
		m.o.Problem, m.o.Live = problem, nil
		if p, made := m.step(); p.Changes || made != nil {
			t.Errorf("%v: %v, changes %v", problem, made, p.Changes)
		}
		m.o.Proxy.DeletionTimestamp = &metav1.Time{}
		if p, made := m.step(); p.Changes || made != nil {
			t.Errorf("%v, and it is deleted: %v, changes %v", problem, made, p.Changes)
		}
	}
}

// While it is updating there, a cluster is asked again whether it answers, also if it is watched:
// one that was lost says nothing.
func TestAClusterIsAskedAgainWhileItIsUpdating(t *testing.T) {
	wakes := func(m *model) time.Duration {
		if p, _ := m.step(); !p.Wake.IsZero() {
			return p.Wake.Sub(m.o.Now)
		}
		return 0
	}
	m := newModel(t, git("shop", "v1", ""))
	if m.step(); wakes(m) != 5*time.Second {
		t.Errorf("asked again after %s", wakes(m))
	}
	m.answers("shop", "shop-v1", v1alpha1.StateUpdating)
	m.step()
	if m.o.Now = m.o.Now.Add(10 * time.Minute); wakes(m) != 50*time.Second {
		t.Errorf("after ten minutes it is asked again after %s", wakes(m))
	}
	m.o.Problem = &cluster.UnreachableError{Reason: "no answer in time"}
	if wakes(m) != 0 {
		t.Errorf("it does not answer, and is asked again after %s", wakes(m))
	}
	m.o.Problem = nil
	if m.answers("shop", "shop-v1", v1alpha1.StateSucceeded); wakes(m) != 0 {
		t.Errorf("it is ready, and asked again after %s", wakes(m))
	}
}

func TestTheEnd(t *testing.T) {
	down := &cluster.UnreachableError{Reason: "connection refused"}
	for name, test := range map[string]struct {
		change func(*Observed)
		want   []string
		saying string
	}{
		"released, deleted, and let go": {func(*Observed) {}, []string{"Send", "Delete", "RemoveFinalizer"}, ""},
		"gone already":                  {func(o *Observed) { o.Live = nil }, []string{"RemoveFinalizer"}, ""},
		"another owner's":               {func(o *Observed) { o.Live.Annotations[vocabulary.ProxiedBy.Native] = "other" }, []string{"RemoveFinalizer"}, ""},
		"the kind is missing":           {func(o *Observed) { o.Live, o.KindMissing = nil, true }, []string{"RemoveFinalizer"}, ""},
		"being deleted":                 {func(o *Observed) { o.Live.DeletionTimestamp = &metav1.Time{} }, nil, "waiting for the Assemblage on the cluster to be deleted"},
		"lost":                          {func(o *Observed) { o.Live, o.Problem = nil, down }, nil, "cannot be removed: the cluster does not answer: connection refused; annotate it with spillway.dev/abandon-cluster=true"},
		"without a kubeconfig":          {func(o *Observed) { o.Live, o.Problem = nil, cluster.ErrMissing }, nil, "cannot be removed: Secret c1-kubeconfig with a kubeconfig not found"},
		"taken away":                    {func(o *Observed) { o.Live, o.Problem, o.Lost = nil, cluster.ErrMissing, true }, []string{"RemoveFinalizer"}, ""},
		"refused":                       {func(o *Observed) { o.Live, o.Refused = nil, "forbidden" }, nil, "cannot be removed: the cluster refuses"},
		"given up": {func(o *Observed) {
			o.Live, o.Problem = nil, down
			o.Proxy.Annotations = map[string]string{vocabulary.AbandonCluster.Native: "true"}
		}, []string{"RemoveFinalizer"}, ""},
		"abandoned, and it exists": {func(o *Observed) {
			o.Proxy.Annotations = map[string]string{vocabulary.AbandonCluster.Native: "true"}
		}, []string{"Disown", "RemoveFinalizer"}, ""},
	} {
		t.Run(name, func(t *testing.T) {
			m := newModel(t, git("shop", "v1", ""))
			m.step()
			m.o.Proxy.DeletionTimestamp = &metav1.Time{}
			test.change(&m.o)
			var all []string
			for range 5 {
				_, made := m.step()
				all = append(all, made...)
			}
			m.expect(all, test.want)
			said := ""
			if len(m.o.Proxy.Status.Conditions) > 0 {
				said = m.o.Proxy.Status.Conditions[0].Message
			}
			if !strings.Contains(said, test.saying) {
				t.Errorf("it says %q, not %q", said, test.saying)
			}
		})
	}
}

// What is not watched is read sooner while something is updating, with jitter.
// What is changed on the cluster by another client, or taken out, is sent again.
func TestWhatIsChangedOnTheClusterIsSentAgain(t *testing.T) {
	for name, change := range map[string]func(*v1alpha1.Assemblage){
		"changed":   func(a *v1alpha1.Assemblage) { a.Spec.Syncs[0].Source.Git.Version.Tag = "v0" },
		"taken out": func(a *v1alpha1.Assemblage) { a.Spec.Syncs = nil },
	} {
		m := newModel(t, git("shop", "v1", ""), git("other", "v1", ""))
		m.step()
		m.o.Live = m.o.Live.DeepCopy()
		change(m.o.Live)
		if p, made := m.step(); fmt.Sprint(made) != "[Send]" || p.Writes[0].UID != "there" {
			t.Errorf("%s: %v, over %v", name, made, p.Writes)
		}
		if _, made := m.step(); made != nil {
			t.Errorf("%s: sent again: %v", name, made)
		}
	}
}

// A cluster that is not watched is looked at while it deletes what was sent, as often as while
// it is updating.
func TestADeletionIsLookedAt(t *testing.T) {
	m := newModel(t, git("shop", "v1", ""))
	m.o.Watched = false
	m.step()
	m.answers("shop", "shop-v1", v1alpha1.StateUpdating)
	m.step()
	m.o.Now = m.o.Now.Add(10 * time.Minute)
	updating, _ := m.step()
	m.o.Proxy.DeletionTimestamp, m.o.Live.DeletionTimestamp = &metav1.Time{}, &metav1.Time{}
	deleting, _ := m.step()
	m.expect(deleting.Wake, updating.Wake)
	if deleting.Wake.IsZero() {
		t.Error("it is not looked at")
	}
}

// That a cluster refuses what takes things away there is reported, as long as it does.
func TestARemovalThatIsRefusedIsReported(t *testing.T) {
	for act, live := range map[assemblage.Act]map[string]string{
		Send:   {vocabulary.ProxiedBy.Native: "me", vocabulary.AppliedHash.Native: "1"},
		Delete: {vocabulary.ProxiedBy.Native: "me"},
	} {
		m := newModel(t)
		m.o.Live = &v1alpha1.Assemblage{ObjectMeta: metav1.ObjectMeta{UID: "there", Annotations: live}}
		m.o.Proxy.DeletionTimestamp = &metav1.Time{}
		m.o.Refusal = &outcome.Refusal{State: v1alpha1.StateFailed, Message: "no"}
		if _, made := m.step(); fmt.Sprint(made) != fmt.Sprintf("[%s]", act) {
			t.Errorf("it makes %v, want %s", made, act)
		}
		m.expect(m.o.Proxy.Status.Conditions[0].Message, "cannot be removed: no; annotate it with spillway.dev/abandon-cluster=true to leave everything there")
	}
}

// An Assemblage in which others have syncs stays for them, without the mark of who goes.
func TestWhatOthersHaveStays(t *testing.T) {
	m := newModel(t)
	m.o.Live = &v1alpha1.Assemblage{ObjectMeta: metav1.ObjectMeta{UID: "there", Annotations: map[string]string{vocabulary.ProxiedBy.Native: "me"}}}
	m.o.Live.Spec.Syncs = make([]v1alpha1.NamedSync, 1)
	m.o.Proxy.DeletionTimestamp = &metav1.Time{}
	p := Decide(&m.o)
	if len(p.Writes) != 1 || p.Writes[0].Act != Send {
		t.Fatalf("it makes %v", p.Writes)
	}
	m.expect(p.Writes[0].Object.GetAnnotations(), map[string]string(nil))
}

func TestPollingIsAdaptiveAndNotInStep(t *testing.T) {
	m := newModel(t, git("shop", "v1", ""))
	m.o.Watched = false
	m.step()
	m.answers("shop", "shop-v1", v1alpha1.StateWaiting)
	m.step()
	for chance, want := range map[float64]time.Duration{0: 16 * time.Second, 1: 24 * time.Second} {
		m.o.Chance = chance
		p, _ := m.step()
		m.expect(p.Wake.Sub(m.o.Now).Round(time.Second), want)
	}
	m.answers("shop", "shop-v1", v1alpha1.StateSucceeded)
	m.step()
	for chance, want := range map[float64]time.Duration{0: 4 * time.Minute, 1: 6 * time.Minute} {
		m.o.Chance = chance
		p, _ := m.step()
		m.expect(p.Wake.Sub(m.o.Now).Round(time.Second), want)
	}
	m.o.Watched = true
	if p, _ := m.step(); !p.Wake.IsZero() {
		t.Error("it is watched, and looked at all the same")
	}
}

// That the commit takes the place of its tag changes nothing that runs there, so what
// was said of it stands. Of anything else it does not.
func TestWhatSucceededStaysSoWhenItsTagIsReplacedByItsCommit(t *testing.T) {
	commit := strings.Repeat("0", 40)
	exact := strings.Replace(git("shop", "v1", ""), "{tag: v1}", "{revision: '"+commit+"'}", 1)
	for name, test := range map[string]struct{ wants, saying string }{
		"its commit":              {exact, "shop-v1 succeeded: says the cluster"},
		"another commit":          {strings.Replace(exact, commit, "1"+commit[1:], 1), "shop-v1 updating: sending to the cluster"},
		"another folder":          {exact + "package: {kustomize: {path: deploy}}", "shop-v1 updating: sending to the cluster"},
		"another assignment":      {strings.Replace(exact, "shop-v1", "shop-v2", 1), "shop-v2 updating: sending to the cluster"},
		"another tag all the way": {git("shop", "v2", ""), "shop-v2 updating: sending to the cluster"},
	} {
		t.Run(name, func(t *testing.T) {
			m := newModel(t, git("shop", "v1", ""))
			m.step()
			m.answers("shop", "shop-v1", v1alpha1.StateSucceeded)
			m.o.Live.Status.Syncs[0].Resolved = "v1@sha1:" + commit
			m.step()
			m.wants(test.wants)
			_, made := m.step()
			m.expect(made, []string{"Send"})
			m.expect(m.says(), test.saying)
		})
	}
}

// An orphaned ProxyAssemblage is deleted once the cluster has its last state,
// and not while it is not known whether it has.
func TestADesertedOneGoesOnceThatHasComeToTheCluster(t *testing.T) {
	m := newModel(t, git("shop", "v1", ""))
	m.step()
	m.wants()
	m.o.Orphaned = true
	m.o.Problem = &cluster.UnreachableError{Reason: "timeout"}
	_, made := m.step()
	m.expect(made, []string(nil))
	m.o.Problem = nil
	_, made = m.step()
	m.expect(made, []string{"Send"})
	_, made = m.step()
	m.expect(made, []string{"Retire"})
	m.o.Orphaned = false // another client has written it
	_, made = m.step()
	m.expect(made, []string(nil))
}

// What bindings refer to is asked for before anything is sent.
func TestWhatBindingsReferToIsLookedAtBeforeAnythingIsSent(t *testing.T) {
	const bound = "controlPlaneBindings: [{name: place, objectFieldRef: {kind: ConfigMap, name: region, fieldPath: /data/name}}]\npackage: {kustomize: {substitute: {x: $(place)}}}"
	m := newModel(t, git("shop", "v1", bound), git("other", "v1", ""))
	p, made := m.step()
	m.expect(made, []string(nil))
	if len(p.Needs) != 1 || p.Needs[0].Kind != "ConfigMap" || p.Needs[0].Name != "region" {
		t.Errorf("it needs %v", p.Needs)
	}
}

// While nothing is known of the cluster the status stays as it is, whatever is wanted. A
// connection that broke is tried again soon; a cluster that is being probed wakes it.
func TestTheStatusStaysWhileNothingIsKnown(t *testing.T) {
	for name, test := range map[string]struct {
		change func(m *model)
		wake   time.Duration
	}{
		"the connection broke":      {func(m *model) { m.o.Problem = errBroken }, 2 * time.Second},
		"the cluster is probed":     {func(m *model) { m.o.Problem = errUnproven }, 0},
		"there is no finalizer yet": {func(m *model) { m.o.Proxy.Finalizers = nil }, 0},
	} {
		t.Run(name, func(t *testing.T) {
			m := newModel(t, git("shop", "v1", ""))
			m.step()
			m.answers("shop", "shop-v1", v1alpha1.StateSucceeded)
			m.step()
			was := *m.o.Proxy.Status.DeepCopy()
			m.wants(git("shop", "v2", ""))
			test.change(m)
			p := Decide(&m.o)
			m.expect(p.Status, was)
			wake := time.Duration(0)
			if !p.Wake.IsZero() {
				wake = p.Wake.Sub(m.o.Now)
			}
			m.expect(wake, test.wake)
			for _, w := range p.Writes {
				m.expect(w.Act, assemblage.AddFinalizer)
			}
		})
	}
}

// A sync that only pins the cluster is not sent, nor is the pin of another one; the names of
// what is sent are listed in order.
func TestPinsAreNotSent(t *testing.T) {
	m := newModel(t, "name: pinned\nhold: {by: alice}\n", git("z", "v1", "hold: {by: alice}\n"), git("a", "v1", ""))
	m.step()
	if m.o.Live == nil || len(m.o.Live.Spec.Syncs) != 2 {
		t.Fatalf("sent: %+v", m.o.Live)
	}
	for i := range m.o.Live.Spec.Syncs {
		if s := &m.o.Live.Spec.Syncs[i]; s.Hold != nil || s.Name == "pinned" {
			t.Errorf("sent: %+v", s)
		}
	}
	m.expect(vocabulary.SentSyncs.Get(m.o.Live.Annotations), "a,z")
	m.expect(m.says(), " waiting: pins the cluster only; nothing is assigned, z-v1 updating: sending to the cluster, a-v1 updating: sending to the cluster")
}

// A binding that must be corrected is evaluated again in a minute, because what it refers to
// may be what is wrong; one that waits is when its object changes.
func TestABadBindingIsEvaluatedAgain(t *testing.T) {
	m := newModel(t, git("a", "v1", "controlPlaneBindings: [{name: A, value: $(A)}]\npackage: {kustomize: {substitute: {x: $(A)}}}"))
	p, _ := m.step()
	m.expect(p.Wake.Sub(m.o.Now), time.Minute)
}

// The finalizer is added before anything is sent, and only if something is.
func TestTheFinalizerIsAddedBeforeAnythingIsSent(t *testing.T) {
	m := newModel(t)
	m.o.Proxy.Finalizers = nil
	m.expect(Decide(&m.o).Writes, []Write(nil))
	m.wants(git("shop", "v1", ""))
	m.expect(Decide(&m.o).Writes, []Write{{Act: assemblage.AddFinalizer}})
}

// A sync with a bad binding that was never sent is not, and one that cannot be sent is reported
// once.
func TestWhatCannotBeSentIsReportedOnce(t *testing.T) {
	m := newModel(t, git("a", "v1", ""))
	m.step()
	m.wants(git("a", "v1", ""), git("b", "v1", "controlPlaneBindings: [{name: A, value: $(A)}]\npackage: {kustomize: {substitute: {x: $(A)}}}"))
	m.step()
	m.expect(len(m.o.Live.Spec.Syncs), 1)
	m.wants(git("a", "v2", ""))
	m.o.Problem = &cluster.UnreachableError{Reason: "timeout"}
	m.step()
	m.expect(m.says(), "a-v2 unreachable: the cluster does not answer: timeout")
}
