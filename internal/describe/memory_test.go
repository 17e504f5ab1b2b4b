package describe

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/spillway-dev/spillway/internal/config"
	"github.com/spillway-dev/spillway/internal/config/decision"
	"github.com/spillway-dev/spillway/internal/describe/describetest"
	"github.com/spillway-dev/spillway/internal/describe/snapshot"
	"github.com/spillway-dev/spillway/internal/kube"
	"github.com/spillway-dev/spillway/internal/lab/testenv"
)

// remembering is a world that is described with a memory, and without one.
type remembering struct {
	*random

	t       *testing.T
	client  client.Client
	watched *snapshot.Watched
	look    Options
	now     time.Time
	spaces  []string
	manager *config.Offline
	// wake is what the last description said, done what has happened.
	wake time.Time
	done []string
	// kept counts by ring how often it was not described again, states what was said.
	kept   map[string]int
	states map[string]bool
}

type random struct{ *rand.Rand }

func (r *random) of(texts ...string) string { return texts[r.IntN(len(texts))] }

// A description that was made from what is remembered is the one that is made from nothing,
// whatever happens and however much time passes.
func TestAMemoryChangesNoDescription(t *testing.T) {
	seeds, steps := []uint64{1, 2, 3, 4}, 50
	if testing.Short() {
		seeds, steps = seeds[:1], 25
	}
	for _, seed := range seeds {
		t.Run(fmt.Sprint(seed), func(t *testing.T) {
			w := newRemembering(t, seed)
			w.furnish()
			for range steps {
				w.step()
				w.compare()
			}
			w.rest()
			testenv.Eventually(t, w.keptAll) // other tests change other objects of what is watched
			t.Logf("of %d descriptions these were not recreated: %v; there were: %s", steps, w.kept, strings.Join(slices.Sorted(maps.Keys(w.states)), ", "))
		})
	}
}

func newRemembering(t *testing.T, seed uint64) *remembering {
	t.Helper()
	c, _ := describetest.ClientAs(t, "")
	for _, kinds := range []string{"config", "zones", "plans", "fleet", "gates"} {
		testenv.InstallKinds(t, c, "../../charts/spillway/generated/"+kinds+"/*_*.yaml")
	}
	w := &remembering{
		random: &random{rand.New(rand.NewPCG(seed, 0))}, t: t, client: c, now: time.Now().Truncate(time.Second).Add(time.Second / 2), kept: map[string]int{}, states: map[string]bool{},
		spaces: []string{testenv.Namespace(t), testenv.Namespace(t)},
	}
	w.watched, _ = watchedAs(t, "", "")
	w.look = Options{Memory: NewMemory(), Config: config.Options{
		Options:    decision.Options{MaxRolling: 2, CoalesceWindow: time.Minute, UpdateRate: 0.01, UpdateBurst: 3},
		Namespaces: w.spaces, Zones: true, Now: func() time.Time { return w.now },
	}}
	w.manager = config.NewOffline(kube.Offline{Client: c}, w.look.Config)
	t.Cleanup(func() { w.drop("ClusterConfigPolicy", "", "everywhere") })
	return w
}

// compare waits until the watches have shown what has happened. Then both descriptions must be
// the same.
func (w *remembering) compare() {
	w.t.Helper()
	var seen Description
	testenv.Eventually(w.t, func(ctx context.Context) error {
		var err error
		if seen, err = w.described(ctx); err != nil {
			return err
		}
		fresh, err := Describe(ctx, w.client, w.look)
		if err != nil {
			return err
		}
		if !fresh.Says(&seen) {
			return fmt.Errorf("after %s: (-fresh +remembered)\n%s", strings.Join(w.done[max(0, len(w.done)-5):], ", "), cmp.Diff(fresh.Units, seen.Units))
		}
		return nil
	})
	w.wake = seen.Wake
	w.note(seen.Units)
}

// note remembers which states there were.
func (w *remembering) note(units []Unit) {
	for i := range units {
		u := &units[i]
		w.states[fmt.Sprintf("%s %s %s", u.Ring, u.Phase, u.Reason)] = true
		w.note(u.Units)
	}
}

// described describes with the memory, and counts the rings of which that was known.
func (w *remembering) described(ctx context.Context) (Description, error) {
	before := maps.Clone(w.look.Memory.rings)
	d, err := Describe(ctx, w.watched, w.look)
	for name, was := range before {
		if w.look.Memory.rings[name] == was {
			w.kept[name]++
		}
	}
	return d, err
}

// keptAll describes once more, and is nil if something was known of each ring at some time. Of the config ring
// nothing is where a Lease is asked for.
func (w *remembering) keptAll(ctx context.Context) error {
	if _, err := w.described(ctx); err != nil {
		return err
	}
	for _, ring := range Rings() {
		if w.kept[ring] == 0 {
			return fmt.Errorf("ring %s was described again every time, so that nothing was tested", ring)
		}
	}
	return nil
}

// rest lets the time pass from one moment that changes something to the next.
func (w *remembering) rest() {
	for range 10 {
		w.passes("")
		w.compare()
	}
}

// Who may not list a kind, or asks the API server, has nothing kept for her that no watch keeps up
// with.
func TestAMemoryKeepsOnlyWhatIsWatched(t *testing.T) {
	c, _ := describetest.ClientAs(t, "")
	namespace := describetest.SomeConfig(t, c, 1)
	m, _ := watchedAs(t, "", namespace)
	testenv.Eventually(t, func(ctx context.Context) error { // a watch may begin before it shows all; and Kubernetes adds one to each namespace a moment later
		return errors.Join(
			m.Get(ctx, client.ObjectKey{Namespace: namespace, Name: "c0"}, &corev1.ConfigMap{}),
			m.Get(ctx, client.ObjectKey{Namespace: namespace, Name: "kube-root-ca.crt"}, &corev1.ConfigMap{}),
		)
	})
	read := func(how func(*snapshot.Reading) error) *snapshot.Reading {
		r := m.Reading()
		if err := how(r); err != nil {
			t.Error(err)
		}
		return r
	}
	key, list := client.ObjectKey{Namespace: namespace, Name: "c0"}, client.InNamespace(namespace)
	watched := []*snapshot.Reading{
		read(func(r *snapshot.Reading) error { return r.Get(t.Context(), key, &corev1.ConfigMap{}) }),
		read(func(r *snapshot.Reading) error { return r.List(t.Context(), &corev1.ConfigMapList{}, list) }),
	}
	everywhere := read(func(r *snapshot.Reading) error { return r.List(t.Context(), &corev1.ConfigMapList{}) })
	if everywhere.Asked() { // whether it holds, other tests decide
		t.Error("ConfigMaps everywhere are not watched")
	}
	other := read(func(r *snapshot.Reading) error { return r.List(t.Context(), &corev1.SecretList{}, list) })
	metadata := &metav1.PartialObjectMetadata{}
	metadata.SetGroupVersionKind(corev1.SchemeGroupVersion.WithKind("ConfigMap"))
	for i, r := range []*snapshot.Reading{
		read(func(r *snapshot.Reading) error { return r.Values().Get(t.Context(), key, &corev1.ConfigMap{}) }),
		read(func(r *snapshot.Reading) error { return r.Get(t.Context(), key, metadata) }),
		read(func(r *snapshot.Reading) error {
			return r.List(t.Context(), &corev1.PodList{}, list, client.MatchingFields{"spec.nodeName": "x"})
		}),
	} {
		if r.Holds() || !r.Asked() {
			t.Errorf("%d: what the API server was asked for is kept", i)
		}
	}
	if slices.ContainsFunc(watched, func(r *snapshot.Reading) bool { return !r.Holds() || r.Asked() }) {
		t.Error("what is watched and has not changed is not kept")
	}
	if err := c.Create(t.Context(), &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "new"}}); err != nil {
		t.Fatal(err)
	}
	testenv.Eventually(t, func(context.Context) error {
		if slices.ContainsFunc(watched, (*snapshot.Reading).Holds) {
			return errors.New("what has changed is kept")
		}
		return nil
	})
	if !other.Holds() {
		t.Error("another kind is not kept")
	}
}
