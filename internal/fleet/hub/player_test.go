package hub_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"

	"k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/watch"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/spillway-dev/spillway/api/fleet/v1alpha1"
	"github.com/spillway-dev/spillway/internal/ring"
)

// player does with ProxyAssemblages what their controller does: it reports what
// becomes of each sync, as the test wants it. It is also a witness: it sees every
// version of every assemblage, and knows at every moment which clusters are down.
type player struct {
	t         *testing.T
	client    client.WithWatch
	namespace string

	mu sync.Mutex
	// fate is what becomes of a tag, or of "cluster tag"; without one it succeeds.
	fate map[string]v1alpha1.State
	// commits are what a tag is, or one that a cluster fetches: "cluster tag".
	commits map[string]string
	// latest are the assemblages as they were last seen.
	latest map[string]*v1alpha1.ProxyAssemblage
	// disrupted are clusters that were assigned something while they were up.
	disrupted map[string]bool
	worst     int
	// paused is true while it reports nothing.
	paused bool
	// story is what clusters were assigned, in order: "a:v1".
	story []string
}

func newPlayer(t *testing.T, c client.WithWatch, namespace string) *player {
	t.Helper()
	p := &player{
		t: t, client: c, namespace: namespace, fate: map[string]v1alpha1.State{}, commits: map[string]string{},
		latest: map[string]*v1alpha1.ProxyAssemblage{}, disrupted: map[string]bool{},
	}
	ctx, cancel := context.WithCancel(context.Background())
	events, err := c.Watch(ctx, &v1alpha1.ProxyAssemblageList{}, client.InNamespace(namespace))
	if err != nil {
		t.Fatal(err)
	}
	done := make(chan struct{})
	go func() {
		defer close(done)
		for e := range events.ResultChan() {
			p.see(ctx, e)
		}
	}()
	t.Cleanup(func() { cancel(); events.Stop(); <-done })
	return p
}

// see reads a version of an assemblage, and answers it.
func (p *player) see(ctx context.Context, e watch.Event) {
	a, ok := e.Object.(*v1alpha1.ProxyAssemblage)
	if !ok {
		return
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	if e.Type == watch.Deleted {
		delete(p.latest, a.Name)
		delete(p.disrupted, a.Name)
		return
	}
	p.testify(p.latest[a.Name], a)
	p.latest[a.Name] = a
	p.play(ctx, a)
}

// done is nil once every assemblage that there is was seen, and answered.
func (p *player) done(ctx context.Context) error {
	list := &v1alpha1.ProxyAssemblageList{}
	if err := p.client.List(ctx, list, client.InNamespace(p.namespace)); err != nil {
		return fmt.Errorf("list assemblages: %w", err)
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	for i := range list.Items {
		a := &list.Items[i]
		if seen := p.latest[a.Name]; seen == nil || seen.UID != a.UID || ring.Older(seen.ResourceVersion, a.ResourceVersion) {
			return fmt.Errorf("assemblage %s is not seen by the player", a.Name)
		}
	}
	if len(p.latest) > len(list.Items) {
		return errors.New("the player has yet to see that an assemblage is gone")
	}
	return nil
}

// testify notes what was taken down, and what is up again.
func (p *player) testify(before, after *v1alpha1.ProxyAssemblage) {
	was, is := assigned(before), assigned(after)
	if is != "" && was != is {
		p.story = append(p.story, after.Name+":"+is)
		if was != "" && isUp(before) {
			p.disrupted[after.Name] = true
		}
	}
	if isUp(after) || is == "" {
		delete(p.disrupted, after.Name)
	}
	p.worst = max(p.worst, len(p.disrupted))
}

func assigned(a *v1alpha1.ProxyAssemblage) string {
	if a == nil {
		return ""
	}
	for _, s := range a.Spec.Assemblage.Syncs {
		if s.Name == app && s.Source != nil {
			return strings.Join(append([]string{s.Source.Git.Version.Tag + s.Source.Git.Version.Revision}, s.Overrides...), "+")
		}
	}
	return ""
}

// silent is the fate of a tag of which nothing is reported: what was said before stays.
const silent v1alpha1.State = "silent"

// suspended is the fate of a tag whose Kustomization a user has suspended.
const suspended v1alpha1.State = "suspended"

// dependent is the fate of a tag that waits for something that it depends on.
const dependent v1alpha1.State = "dependent"

// play reports what becomes of the syncs of an assemblage. What another client was faster
// with is seen, and answered, again.
func (p *player) play(ctx context.Context, a *v1alpha1.ProxyAssemblage) {
	status := v1alpha1.AssemblageStatus{ObservedGeneration: a.Generation}
	for i := range a.Spec.Assemblage.Syncs {
		if s := &a.Spec.Assemblage.Syncs[i]; s.Source != nil {
			status.Syncs = append(status.Syncs, p.report(a, s))
		}
	}
	isSilent := func(s v1alpha1.SyncStatus) bool { return s.State == silent }
	if p.paused || slices.ContainsFunc(status.Syncs, isSilent) || equality.Semantic.DeepEqual(status, a.Status) {
		return
	}
	answer := a.DeepCopy()
	answer.Status = status
	if err := p.client.Status().Update(ctx, answer); err != nil && ctx.Err() == nil && client.IgnoreNotFound(err) != nil && !isConflict(err) {
		p.t.Error(err)
	}
}

func (p *player) report(a *v1alpha1.ProxyAssemblage, s *v1alpha1.ProxySync) v1alpha1.SyncStatus {
	tag := s.Source.Git.Version.Tag
	state := v1alpha1.StateSucceeded
	resolved := "sha1:" + tag + s.Source.Git.Version.Revision
	whole := tag // of app, with its overrides
	if s.Name == app {
		whole = assigned(a)
	}
	for _, key := range []string{whole, tag, a.Name + " " + tag} {
		if fate, ok := p.fate[key]; ok {
			state = fate
		}
		if commit, ok := p.commits[key]; ok && tag != "" {
			resolved = tag + "@sha1:" + commit
		}
	}
	before := v1alpha1.SyncStatus{}
	for _, old := range a.Status.Syncs {
		if old.Name == s.Name {
			before = old
		}
	}
	report := v1alpha1.SyncStatus{
		Name: s.Name, Revision: s.Revision, AssignedAt: s.AssignedAt, State: state, ObservedGeneration: a.Generation,
		LastTransitionTime: before.LastTransitionTime, LastSucceededRevision: before.LastSucceededRevision, LastSucceededAssignedAt: before.LastSucceededAssignedAt, Resolved: before.Resolved,
		DeletionPolicy: s.DeletionPolicy,
	}
	switch state {
	case suspended:
		report.State, report.Reason, report.Message = v1alpha1.StateWaiting, "Suspended", "Kustomization app is suspended"
	case dependent:
		report.State, report.Reason, report.Message = v1alpha1.StateWaiting, "DependencyNotReady", "dependency 'team/base' is not ready"
	default:
	}
	if before.Revision != report.Revision || !before.AssignedAt.Equal(report.AssignedAt) || before.State != report.State {
		now := metav1.NowMicro()
		report.LastTransitionTime = &now
	}
	switch state {
	case v1alpha1.StateSucceeded:
		report.LastSucceededRevision, report.LastSucceededAssignedAt, report.Resolved = s.Revision, s.AssignedAt, resolved
	case v1alpha1.StateFailed:
		report.Reason, report.Message = "HealthCheckFailed", "Deployment web is not ready"
	default:
	}
	return report
}

// decree says what becomes of a tag from now on, or of "cluster tag": and of those
// that have it already.
func (p *player) decree(state v1alpha1.State, keys ...string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, key := range keys {
		p.fate[key] = state
	}
	for _, a := range p.latest {
		p.play(p.t.Context(), a)
	}
}

// pause leaves the reports as they are until resume.
func (p *player) pause() { p.mu.Lock(); defer p.mu.Unlock(); p.paused = true }

func (p *player) resume() {
	p.mu.Lock()
	p.paused = false
	p.mu.Unlock()
	p.decree("")
}

// atMost is that never more clusters than that were down because of us.
func (p *player) atMost(n int) {
	p.t.Helper()
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.worst > n {
		p.t.Errorf("%d clusters were down at a time, at most %d may be: %s", p.worst, n, strings.Join(p.story, " "))
	}
}

// told is what clusters were assigned of a tag so far, in order: "a b".
func (p *player) told(tag string) string {
	p.mu.Lock()
	defer p.mu.Unlock()
	var names []string
	for _, word := range p.story {
		if name, ok := strings.CutSuffix(word, ":"+tag); ok {
			names = append(names, name)
		}
	}
	return strings.Join(names, " ")
}

// happens is that a cluster was assigned a tag at some time.
func (w *world) happens(word string) {
	w.t.Helper()
	w.then(func() error {
		w.player.mu.Lock()
		defer w.player.mu.Unlock()
		if !slices.Contains(w.player.story, word) {
			return fmt.Errorf("no %s in %v", word, w.player.story)
		}
		return nil
	})
}
