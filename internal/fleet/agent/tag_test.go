package agent

import (
	"strings"
	"testing"
	"time"

	kustomizev1 "github.com/fluxcd/kustomize-controller/api/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/spillway-dev/spillway/api/fleet/v1alpha1"
)

const commit = "0123456789012345678901234567890123456789"

func TestASourceNamesTheVeryThing(t *testing.T) {
	git := func(v v1alpha1.GitVersion) *v1alpha1.Source {
		return &v1alpha1.Source{Git: &v1alpha1.GitSource{Version: v}}
	}
	oci := func(v v1alpha1.OCIVersion) *v1alpha1.Source {
		return &v1alpha1.Source{OCI: &v1alpha1.OCISource{Version: v}}
	}
	for name, test := range map[string]struct {
		source   *v1alpha1.Source
		revision string
		want     bool
	}{
		"the commit of a tag":    {git(v1alpha1.GitVersion{Revision: commit}), "v1@sha1:" + commit, true},
		"the commit itself":      {git(v1alpha1.GitVersion{Revision: commit}), "sha1:" + commit, true},
		"another commit":         {git(v1alpha1.GitVersion{Revision: commit}), "v1@sha1:1" + commit[1:], false},
		"a tag":                  {git(v1alpha1.GitVersion{Tag: "v1"}), "v1@sha1:" + commit, false},
		"the digest of a tag":    {oci(v1alpha1.OCIVersion{Digest: "sha256:" + commit}), "v1@sha256:" + commit, true},
		"another digest":         {oci(v1alpha1.OCIVersion{Digest: "sha256:1" + commit[1:]}), "v1@sha256:" + commit, false},
		"a tag of an artifact":   {oci(v1alpha1.OCIVersion{Tag: "v1"}), "v1@sha256:" + commit, false},
		"nothing that succeeded": {git(v1alpha1.GitVersion{Revision: commit}), "", false},
		"no source":              {nil, "sha1:" + commit, false},
	} {
		t.Run(name, func(t *testing.T) {
			if got := Names(test.source, test.revision); got != test.want {
				t.Errorf("%v, want %v", got, test.want)
			}
		})
	}
}

// byCommit is the sync of git that names the commit of its tag.
func byCommit(name, tag, more string) string {
	return strings.Replace(git(name, tag, more), "version: {tag: "+tag+"}", "version: {revision: '"+commit+"'}", 1)
}

// newTagged is a model in which a tag has been applied that is the commit.
func newTagged(t *testing.T) (*model, *kustomizev1.Kustomization) {
	t.Helper()
	m := newModel(t, git("shop", "v1", ""))
	m.settles()
	k := m.o.Kustomizations["c1-shop"]
	m.o.Sources[fetchedKey(&m.o.Assemblage.Syncs[0])].Revision, k.Status.LastAppliedRevision = "v1@sha1:"+commit, "v1@sha1:"+commit
	m.settles()
	m.expect(m.says("shop"), "shop-v1 succeeded Applied: applied v1@sha1:"+commit)
	return m, k
}

// isFetched has Flux not have looked yet, where it was only told: the source has no
// artifact, and the Kustomization is as it was before.
func (m *model) isFetched(yes bool) {
	source := m.o.Sources[fetchedKey(&m.o.Assemblage.Syncs[0])]
	k := m.o.Kustomizations["c1-shop"]
	if source.Revision, source.ObservedGeneration = "", 0; yes {
		source.Revision, source.ObservedGeneration = "sha1:"+commit, 1
		k.Status.LastAppliedRevision = source.Revision
		return
	}
	k.Status.ObservedGeneration--
	k.Status.LastAppliedRevision = "v1@sha1:" + commit
	k.Status.Conditions[0].ObservedGeneration--
}

// That the commit takes the place of its tag changes nothing that runs, so it is not
// said to be updating again, nor to be ready since another moment.
func TestWhatSucceededStaysSoWhenItsTagIsReplacedByItsCommit(t *testing.T) {
	m, _ := newTagged(t)
	since := m.o.Assemblage.Status.Syncs[0].LastTransitionTime
	m.o.Now = m.o.Now.Add(time.Hour)
	m.wants(byCommit("shop", "v1", ""))
	_, made := m.step()
	m.expect(made, []string{"Apply GitRepository " + fetchedKey(&m.o.Assemblage.Syncs[0]).Name})
	m.expect(m.says("shop"), "shop-v1 succeeded Applied: applied v1@sha1:"+commit)
	m.hasArtifact("")
	if _, made = m.step(); len(made) > 0 {
		t.Errorf("it is pointed to a missing source: %v", made)
	}
	m.hasArtifact("sha1:" + commit)
	_, made = m.step()
	m.expect(made, []string{"Apply Kustomization c1-shop"})
	m.expect(m.says("shop"), "shop-v1 succeeded Applied: applied v1@sha1:"+commit)
	m.isFetched(false)
	if _, made = m.step(); len(made) > 0 {
		t.Errorf("it is reported twice: %v", made)
	}
	m.expect(m.says("shop"), "shop-v1 succeeded Applied: applied v1@sha1:"+commit)
	m.isFetched(true)
	m.o.Kustomizations["c1-shop"].Status.Conditions[0].ObservedGeneration++
	m.settles()
	m.expect(m.says("shop"), "shop-v1 succeeded Applied: applied sha1:"+commit)
	if got := m.o.Assemblage.Status.Syncs[0].LastTransitionTime; !got.Equal(since) {
		t.Errorf("it is ready since %s, and was since %s", got, since)
	}
}

// hasArtifact has Flux have fetched the source, empty if it has not.
func (m *model) hasArtifact(revision string) {
	source := m.o.Sources[fetchedKey(&m.o.Assemblage.Syncs[0])]
	source.Revision, source.ObservedGeneration, source.Ready = revision, source.Generation, nil
}

// The commit of a tag that is on no branch cannot be fetched. It is said so, and what runs
// goes on with its tag; should it appear, that is noticed.
func TestATagIsKeptWhileItsCommitCannotBeFetched(t *testing.T) {
	m, k := newTagged(t)
	tag := k.Spec.SourceRef.Name
	m.wants(byCommit("shop", "v1", ""))
	m.step()
	m.hasArtifact("")
	source := m.o.Sources[fetchedKey(&m.o.Assemblage.Syncs[0])]
	source.Ready = &metav1.Condition{Status: metav1.ConditionFalse, ObservedGeneration: source.Generation, Message: "object not found"}
	for range 3 {
		if _, made := m.step(); len(made) > 0 || m.o.Kustomizations["c1-shop"].Spec.SourceRef.Name != tag {
			t.Fatalf("it is pointed to a missing source: %v", made)
		}
		m.expect(m.says("shop"), "shop-v1 waiting SourceNotReady: keeps its tag; its commit cannot be used: source cannot be fetched: object not found")
	}
	m.hasArtifact("sha1:" + commit)
	_, made := m.step()
	m.expect(made, []string{"Apply Kustomization c1-shop"})
	m.isFetched(true)
	m.settles()
	m.expect(m.says("shop"), "shop-v1 succeeded Applied: applied sha1:"+commit)
}

// A success is no success of anything else: not of another commit, not of another part
// of the same, not of what a user has changed meanwhile, and not once Flux has failed.
func TestASuccessIsKeptOnlyOfTheVeryThing(t *testing.T) {
	for name, test := range map[string]struct {
		wants  string
		before func(*model, *kustomizev1.Kustomization)
		after  func(*model, *kustomizev1.Kustomization)
		saying string
	}{
		"another commit":          {wants: strings.Replace(byCommit("shop", "v1", ""), commit, "f"+commit[1:], 1), saying: "updating"},
		"another folder":          {wants: byCommit("shop", "v1", "package: {kustomize: {path: deploy}}"), saying: "updating"},
		"another assignment":      {wants: strings.Replace(byCommit("shop", "v1", ""), "shop-v1", "shop-v2", 1), saying: "updating"},
		"it was not applied":      {before: func(_ *model, k *kustomizev1.Kustomization) { k.Status.LastAppliedRevision = "v1@sha1:0" }, saying: "updating"},
		"it was changed by hand":  {before: func(_ *model, k *kustomizev1.Kustomization) { k.Spec.Prune = false }, saying: "updating"},
		"it is changed meanwhile": {after: func(_ *model, k *kustomizev1.Kustomization) { k.Generation++ }, saying: "updating"},
		"it has failed": {after: func(m *model, k *kustomizev1.Kustomization) {
			m.isFetched(true)
			k.Status.Conditions[0].Status, k.Status.Conditions[0].Reason, k.Status.Conditions[0].ObservedGeneration = "False", "HealthCheckFailed", k.Generation
		}, saying: "failed"},
	} {
		t.Run(name, func(t *testing.T) {
			m, k := newTagged(t)
			if test.before != nil {
				test.before(m, k)
			}
			if test.wants == "" {
				test.wants = byCommit("shop", "v1", "")
			}
			m.wants(test.wants)
			m.step()
			m.hasArtifact("sha1:" + commit)
			m.step()
			m.isFetched(false)
			if test.after != nil {
				test.after(m, m.o.Kustomizations["c1-shop"])
			}
			m.step()
			if got := m.says("shop"); !strings.Contains(got, " "+test.saying+" ") {
				t.Errorf("it is said: %s", got)
			}
		})
	}
}
