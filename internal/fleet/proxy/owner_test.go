package proxy

import (
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/spillway-dev/spillway/api/fleet/v1alpha1"
	"github.com/spillway-dev/spillway/internal/vocabulary"
)

// rebuilt is a model whose hub was lost after its cluster had these syncs and reported
// success: the ProxyAssemblage is another one of the same name, and is to have others.
func rebuilt(t *testing.T, had []string, wants ...string) *model {
	t.Helper()
	m := newModel(t, had...)
	m.moment(1)
	if _, made := m.step(); len(made) != 1 {
		t.Fatal(made)
	}
	m.succeed()
	m.o.Proxy.UID, m.o.Proxy.Status = "another", v1alpha1.AssemblageStatus{}
	m.wants(wants...)
	m.moment(2)
	return m
}

// moment has the syncs be assigned at a moment.
func (m *model) moment(minute int) {
	for i := range m.o.Proxy.Spec.Assemblage.Syncs {
		at := metav1.NewMicroTime(time.Unix(int64(60*minute), 0))
		m.o.Proxy.Spec.Assemblage.Syncs[i].AssignedAt = &at
	}
}

// succeed has the cluster report success of all that it was sent.
func (m *model) succeed() {
	live := m.o.Live
	live.Status = v1alpha1.AssemblageStatus{ObservedGeneration: live.Generation}
	for _, s := range live.Spec.Syncs {
		live.Status.Syncs = append(live.Status.Syncs, v1alpha1.SyncStatus{
			Name: s.Name, Revision: s.Revision, AssignedAt: s.AssignedAt, State: v1alpha1.StateSucceeded, Message: "applied", Resolved: "sha1:abc",
		})
	}
}

// makes is what a few passes write on the cluster.
func (m *model) makes() string {
	m.Helper()
	var all []string
	for range 4 {
		_, made := m.step()
		all = append(all, made...)
	}
	return strings.Join(all, " ")
}

func TestEqualContentIsAdoptedAndTheNextRevisionIsSent(t *testing.T) {
	v1, web := git("shop", "v1", ""), git("web", "v1", "")
	m := rebuilt(t, []string{v1, web}, v1)
	m.expect(m.makes(), "")
	m.expect(m.says(), "shop-v1 succeeded: applied")
	m.expect(m.o.Proxy.Status.Adopted, "") // it would take web away
	m.wants(v1, web)
	m.moment(3)
	m.expect(m.makes(), "")
	m.expect(m.says(), "shop-v1 succeeded: applied, web-v1 succeeded: applied")
	m.wants(git("shop", "v2", ""), web)
	m.moment(4)
	m.expect(m.makes(), "Send")
	m.expect(vocabulary.ProxiedBy.Get(m.o.Live.Annotations), "another")
	m.expect(m.o.Proxy.Status.Adopted, "")
}

func TestACommitStandsForItsTag(t *testing.T) {
	tag := git("shop", "v1", "")
	commit := strings.Replace(tag, "tag: v1", "revision: abc", 1)
	m := rebuilt(t, []string{commit}, tag)
	m.expect(m.makes(), "")
	m.expect(m.says(), "shop-v1 succeeded: applied")
	m.wants(commit)
	m.moment(3)
	m.expect(m.makes(), "")
	m = rebuilt(t, []string{strings.Replace(commit, "git.test/x", "git.test/y", 1)}, tag)
	m.expect(m.makes(), "")
	if !strings.Contains(m.says(), "failed: Assemblage c1 has other content") {
		t.Error(m.says())
	}
}

func TestOtherContentIsTakenOverWhenAUserSaysSo(t *testing.T) {
	m := rebuilt(t, []string{git("shop", "v1", "")}, git("shop", "v2", ""))
	m.expect(m.makes(), "")
	if !strings.HasSuffix(m.says(), "to take it over: kubectl annotate proxyassemblage c1 -n ns --overwrite spillway.dev/take-over=me") {
		t.Error(m.says())
	}
	m.o.Proxy.Annotations = map[string]string{vocabulary.TakeOver.Native: "me"}
	m.expect(m.makes(), "Send")
	m.o.Live.Annotations[vocabulary.ProxiedBy.Native] = "a third" // it takes it over in turn
	m.expect(m.makes(), "")
}

// What was adopted and then written by another hub of the same name is left to that.
func TestTwoHubsOfTheSameNameDoNotWriteInTurns(t *testing.T) {
	v1 := git("shop", "v1", "")
	m := rebuilt(t, []string{v1}, v1)
	m.expect(m.makes(), "")
	other := *m
	other.o.Proxy = m.o.Proxy.DeepCopy()
	other.o.Proxy.UID, other.o.Proxy.Status.Adopted = types.UID("me"), ""
	other.wants(git("shop", "v2", ""))
	other.o.Live = m.o.Live.DeepCopy()
	other.expect(other.makes(), "Send")
	m.o.Live = other.o.Live
	m.wants(git("shop", "v3", ""))
	m.expect(m.makes(), "")
	if !strings.Contains(m.says(), "to take it over") {
		t.Error(m.says())
	}
}

// Another hub has another name, and what it wrote is not like one's own.
func TestWhatAHubOfAnotherNameWroteIsForeign(t *testing.T) {
	v1 := git("shop", "v1", "")
	m := rebuilt(t, []string{v1}, v1)
	m.o.Hub = "west"
	m.expect(m.makes(), "")
	if !strings.Contains(m.says(), "is written by another ProxyAssemblage") {
		t.Error(m.says())
	}
}
