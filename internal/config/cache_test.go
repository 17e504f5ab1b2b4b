package config

import (
	"context"
	"slices"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/spillway-dev/spillway/internal/config/content"
	"github.com/spillway-dev/spillway/internal/config/decision"
	"github.com/spillway-dev/spillway/internal/vocabulary"
)

// values are what Secrets contain, by their names, or what the cache keeps of that.
type values struct {
	client.Reader

	of     map[string]string
	cached bool
}

// Get implements [client.Reader].
func (v values) Get(_ context.Context, key client.ObjectKey, obj client.Object, _ ...client.GetOption) error {
	s := obj.(*corev1.Secret)
	s.Namespace, s.Name, s.UID, s.ResourceVersion = key.Namespace, key.Name, "u", v.of[key.Name]
	if s.Data = map[string][]byte{"p": []byte(v.of[key.Name])}; v.cached {
		content.Digest(s)
	}
	return nil
}

// TestWhatAWorkloadWouldBeRolledFor checks what a workload is rolled for next: what has changed since
// the ring has rolled it, also if that was at the same moment; and after an undo not only what changes then.
func TestWhatAWorkloadWouldBeRolledFor(t *testing.T) {
	for name, test := range map[string]struct {
		undone bool
		want   []string
	}{
		"rolled": {false, []string{"Secret a: p"}},
		"undone": {true, nil},
	} {
		t.Run(name, func(t *testing.T) {
			now, live := time.Now(), values{of: map[string]string{"a": "1", "b": "1"}}
			e, d := &entry{}, usesSecrets("a", "b")
			look := func() {
				l := content.Source{Digests: values{of: live.of, cached: true}, Values: live}.Lookup()
				changed, err := l.Observe(t.Context(), &e.config, e.version, e.workload.Demand)
				if err != nil {
					t.Fatal(err)
				}
				if changed {
					e.changes.saw(now, "shop", e.config.Facts())
				}
				if errs := l.Hash(t.Context(), []*content.Known{&e.config}); slices.ContainsFunc(errs, func(err error) bool { return err != nil }) {
					t.Fatal(errs)
				}
			}
			write := func(version, hash string) {
				d.ResourceVersion = version
				d.Spec.Template.Annotations = map[string]string{vocabulary.ConfigHash.Native: hash}
				e.read(d.DeepCopy(), nil, nil, now)
			}
			write("1", "old")
			look()
			live.of["b"] = "2"
			look()
			if write("2", e.config.Hashes().Desired); test.undone {
				write("3", "old")
			}
			live.of["a"] = "2"
			look()
			if got := e.changes.pending.Keys; !slices.Equal(got, test.want) {
				t.Errorf("%q, want %q", got, test.want)
			}
		})
	}
}

// TestAHashOfNewerValuesSaysWhatHasChanged is that a workload is rolled also for what the cache did not show yet
// when its values were read: else others would follow it as if it had proven that.
func TestAHashOfNewerValuesSaysWhatHasChanged(t *testing.T) {
	now, seen, live := time.Now(), values{of: map[string]string{"a": "1", "b": "1"}, cached: true}, values{of: map[string]string{"a": "1", "b": "1"}}
	o := newObserver(Options{Now: func() time.Time { return now }}, nil, content.Source{Digests: seen, Values: live})
	d := usesSecrets("a", "b")
	pass := func(version, hash string) *entry {
		d.ResourceVersion, d.Spec.Template.Annotations = version, map[string]string{vocabulary.ConfigHash.Native: hash}
		p := &pass{observer: o, now: now, lookup: o.source.Lookup(), refusals: o.retries.Refusals(now)}
		e := o.read(t.Context(), d.DeepCopy(), nil, now)
		if err := p.observeWorkload(t.Context(), e); err != nil {
			t.Fatal(err)
		}
		p.hash(t.Context(), []*entry{e})
		p.snapshot([]*entry{e}, nil)
		now = now.Add(time.Minute)
		return e
	}
	hash := pass("1", "old").config.Hashes().Desired
	pass("2", hash)
	seen.of["a"], live.of["a"], live.of["b"] = "2", "2", "2"
	want := []string{"Secret a: p", "Secret b: p"}
	for range 2 {
		if got := pass("2", hash).changes.pending.Keys; !slices.Equal(got, want) {
			t.Errorf("%q, want %q", got, want)
		}
		seen.of["b"] = "2"
	}
}

// TestNoneRollsForWhatAnotherFoundToBeOld is that no workload is rolled for what the cache has of an object, if another
// one was hashed with a newer version: these would be two releases, and one would go first for each.
func TestNoneRollsForWhatAnotherFoundToBeOld(t *testing.T) {
	now, live := time.Now(), values{of: map[string]string{"a": "1"}}
	o := newObserver(Options{Now: func() time.Time { return now }}, nil, content.Source{Digests: values{of: map[string]string{"a": "1"}, cached: true}, Values: live})
	pass := func(names ...string) []decision.Workload {
		p := &pass{observer: o, now: now, lookup: o.source.Lookup(), refusals: o.retries.Refusals(now)}
		var seen []*entry
		for _, name := range names {
			d := usesSecrets("a")
			d.Name, d.UID, d.ResourceVersion, d.Spec.Template.Annotations = name, types.UID(name), "1", map[string]string{vocabulary.ConfigHash.Native: "old"}
			e := o.read(t.Context(), d, nil, now)
			if err := p.observeWorkload(t.Context(), e); err != nil {
				t.Fatal(err)
			}
			seen = append(seen, e)
		}
		p.hash(t.Context(), seen)
		o.cache.keep(seen)
		return p.snapshot(seen, nil).Workloads
	}
	if before := pass("x"); before[0].Hashes == nil {
		t.Fatal("it was not hashed")
	}
	live.of["a"] = "2"
	if all := pass("x", "y"); all[0].Hashes != nil || all[1].Hashes == nil {
		t.Errorf("the hash of what is old is %v, that of what was read %v", all[0].Hashes, all[1].Hashes)
	}
}

// usesSecrets is a Deployment of which the containers get Secrets.
func usesSecrets(names ...string) *appsv1.Deployment {
	c := corev1.Container{Name: "c"}
	for _, name := range names {
		c.EnvFrom = append(c.EnvFrom, corev1.EnvFromSource{SecretRef: &corev1.SecretEnvSource{LocalObjectReference: corev1.LocalObjectReference{Name: name}}})
	}
	d := &appsv1.Deployment{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "w", Annotations: map[string]string{vocabulary.ConfigTracked.Native: "true"}}}
	d.Spec.Template.Spec.Containers = []corev1.Container{c}
	return d
}
