package hub_test

import (
	"fmt"
	"maps"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/spillway-dev/spillway/api/fleet/v1alpha1"
	"github.com/spillway-dev/spillway/internal/fleet/hub/model"
)

// The commits that tags are, as a repository has them.
var (
	commitOne   = strings.Repeat("1", 40)
	commitTwo   = strings.Repeat("2", 40)
	commitThree = strings.Repeat("3", 40)
)

// tagged has tags, or tags as one cluster fetches them, be commits from now on.
func (p *player) tagged(commits map[string]string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	maps.Copy(p.commits, commits)
}

// A tag that moves during a rollout: the canary follows it until it has succeeded; from
// then on all get the commit that the canary got, also those that join, also from a hub
// that was away meanwhile, and also when an older revision is gone back to.
func TestATagThatMovesMovesNoCluster(t *testing.T) {
	w := newWorld(t)
	stop := w.manage()
	w.clusters("a canary=true", "b", "c")
	w.player.tagged(map[string]string{"v1": commitOne, "v2": commitTwo})
	w.module("v1", canary)
	w.comes("a:" + commitOne)
	w.player.tagged(map[string]string{"v1": commitThree})
	stop()
	w.manage()
	w.decide("canary", "True")
	w.complete("a:" + commitOne + " b:" + commitOne + " c:" + commitOne)
	if told := w.player.told("v1"); told != "a" {
		t.Errorf("the tag itself got to %q, and may get to the canary alone", told)
	}
	first := w.status().CurrentRevision
	w.clusters("d")
	w.complete("a:" + commitOne + " b:" + commitOne + " c:" + commitOne + " d:" + commitOne)
	w.module("v2", canary)
	w.comes("a:" + commitTwo + " b:" + commitOne + " c:" + commitOne + " d:" + commitOne)
	w.decide("canary", "True")
	w.complete("a:" + commitTwo + " b:" + commitTwo + " c:" + commitTwo + " d:" + commitTwo)
	w.module("v2", canary+", targetRevision: "+first)
	w.decide("canary", "True")
	w.complete("a:" + commitOne + " b:" + commitOne + " c:" + commitOne + " d:" + commitOne)
	w.still("a tag has moved")
}

// Of clusters that are assigned a tag at the same time one may fetch what it was and
// another what it is: the first that succeeds counts, and the other is put right.
func TestClustersThatFetchATagWhileItMovesEndAtOneCommit(t *testing.T) {
	w := newWorld(t)
	w.manage()
	w.clusters("a", "b", "c")
	w.player.tagged(map[string]string{"v1": commitOne, "b v1": commitTwo})
	w.player.decree(v1alpha1.StateUpdating, "a v1", "b v1", "c v1")
	w.module("v1", everywhere)
	w.comes("a:v1! b:v1! c:v1!") // none succeeds before all have the tag: the others would get its commit
	w.player.decree(v1alpha1.StateSucceeded, "a v1")
	w.comes("a:" + commitOne + " b:v1! c:v1!")
	w.player.decree(v1alpha1.StateFailed, "c v1")
	w.player.decree(v1alpha1.StateSucceeded, "b v1")
	w.complete("a:" + commitOne + " b:" + commitOne + " c:" + commitOne)
	w.still("all are at one commit")
}

// One that is put right is not ready because it has said so before: the success is that of
// another commit, or of what a user had edited.
func TestASuccessFromBeforeACorrectionIsNone(t *testing.T) {
	w := newWorld(t)
	w.manage()
	w.clusters("a", "b")
	w.player.tagged(map[string]string{"v1": commitOne, "b v1": commitTwo})
	w.player.decree(v1alpha1.StateUpdating, "a v1", "b v1")
	w.player.decree(silent, "b ") // once the commit is written to it
	w.module("v1", everywhere)
	w.comes("a:v1! b:v1!")
	w.player.decree(v1alpha1.StateSucceeded, "a v1")
	w.comes("a:" + commitOne + " b:v1!")
	w.player.decree(v1alpha1.StateSucceeded, "b v1")
	w.waits("Progressing", "b is updating: corrected, and not reported ready since")
	w.player.decree(v1alpha1.StateSucceeded, "b ")
	w.complete("a:" + commitOne + " b:" + commitOne)
	w.player.decree(silent, "a ")
	w.then(func() error {
		edited := &v1alpha1.ProxyAssemblage{}
		if err := w.get(edited, "a"); err != nil {
			return err
		}
		edited.Spec.Assemblage.Syncs[0].Source.Git.Version.Revision = commitThree
		return w.client.Update(t.Context(), edited, client.FieldOwner("human"))
	})
	w.waits("Progressing", "a is updating: corrected, and not reported ready since")
	w.player.decree(v1alpha1.StateSucceeded, "a ")
	w.complete("a:" + commitOne + " b:" + commitOne)
}

// A tag that is said to move is followed by each cluster.
func TestATagThatIsSaidToMoveIsFollowed(t *testing.T) {
	w := newWorld(t)
	w.manage()
	w.clusters("a", "b")
	w.player.tagged(map[string]string{"stable": commitOne})
	source := &v1alpha1.Source{Git: &v1alpha1.GitSource{URL: "https://x.test/a", Version: v1alpha1.GitVersion{Tag: "stable", Mutable: true}}}
	w.create(&v1alpha1.Module{ObjectMeta: metav1.ObjectMeta{Name: app}, Spec: v1alpha1.ModuleSpec{
		Selector: &metav1.LabelSelector{}, Template: &v1alpha1.ModuleTemplate{Spec: v1alpha1.TemplateSpec{Sync: v1alpha1.Sync{Source: source}}},
	}})
	w.complete("a:stable b:stable")
	w.player.tagged(map[string]string{"stable": commitTwo})
	w.player.decree(v1alpha1.StateSucceeded, "stable")
	w.then(func() error {
		a := &v1alpha1.ProxyAssemblage{}
		if err := w.get(a, "a"); err != nil || a.Status.Syncs[0].Resolved != "stable@sha1:"+commitTwo {
			return fmt.Errorf("a runs %s: %w", a.Status.Syncs[0].Resolved, err)
		}
		return nil
	})
	w.still("a tag was followed")
}

// A BootstrapModule likewise: the second cluster is assigned what the first has told, and
// so is the first.
func TestATagOfABootstrapModuleThatMovesMovesNoCluster(t *testing.T) {
	w := newWorld(t)
	w.manage()
	w.clusters("a", "b")
	w.apply(model.KindBootstrap, "v1", oneByOne)
	w.eventually(func() error {
		for name, commit := range map[string]string{"a": commitOne, "b": commitTwo} { // which the tag is by then
			if w.remotes(name+":v1") == nil {
				w.remoteSucceedsWith(name, "v1@sha1:"+commit)
			}
			for _, exact := range []string{commitOne, commitTwo} { // the other waits for one that has the commit
				if w.remotes(name+":"+exact) == nil {
					w.remoteSucceedsWith(name, "sha1:"+exact)
				}
			}
		}
		if w.remotes("a:"+commitOne, "b:"+commitOne) == nil || w.remotes("a:"+commitTwo, "b:"+commitTwo) == nil {
			return nil
		}
		return w.remotes("both at one commit")
	})
}
