package content

import (
	"context"
	"errors"
	"fmt"
	"sync/atomic"
	"testing"

	"golang.org/x/sync/errgroup"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// interrupted reads Secrets whose names are known, unless it has an error.
type interrupted struct {
	client.Reader

	err error
}

// Get implements [client.Reader].
func (i *interrupted) Get(_ context.Context, key client.ObjectKey, obj client.Object, _ ...client.GetOption) error {
	obj.SetName(key.Name)
	obj.SetNamespace(key.Namespace)
	obj.SetResourceVersion("1")
	return i.err
}

// What could not be read is read by the next pass, and is not taken for missing.
func TestAReadThatFailsIsNoAnswer(t *testing.T) {
	reader := &interrupted{err: errors.New("timeout")}
	source := Source{Digests: reader}
	d := Demand{Namespace: "shop", Uses: []Reference{{Object: Object{Secret, "shop", "db"}, Required: true}}}
	k := &Known{}
	if _, err := source.Lookup().Observe(t.Context(), k, "1", d); err == nil {
		t.Fatal("the error is lost")
	}
	reader.err = nil
	if _, err := source.Lookup().Observe(t.Context(), k, "1", d); err != nil || len(k.Missing()) > 0 {
		t.Errorf("missing %v: %v", k.Missing(), err)
	}
}

// What has not changed is known; another version of it is read.
func TestOnlyAnotherVersionIsReadAgain(t *testing.T) {
	o := Object{Secret, "shop", "db"}
	secret := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{UID: "u", ResourceVersion: "1"}}
	known := &Known{version: "1", facts: Facts{o: factOf(secret)}}
	for version, want := range map[string]bool{"1": true, "2": false} {
		l := Source{Digests: versioned{version: version}}.Lookup()
		if got := l.isUnchanged(t.Context(), known, "1"); got != want {
			t.Errorf("version %s is the same: %t", version, got)
		}
		if f := l.facts[o]; f.version != "u/"+version {
			t.Errorf("version %s is known as %q", version, f.version)
		}
	}
}

// versioned has every object at a version.
type versioned struct {
	client.Reader

	version string
}

// Get implements [client.Reader].
func (v versioned) Get(_ context.Context, _ client.ObjectKey, obj client.Object, _ ...client.GetOption) error {
	obj.SetUID("u")
	obj.SetResourceVersion(v.version)
	return nil
}

// has is a Secret with a value, or none if it is empty.
type has struct {
	client.Reader

	value *string
}

// Get implements [client.Reader].
func (h has) Get(_ context.Context, key client.ObjectKey, obj client.Object, _ ...client.GetOption) error {
	if *h.value == "" {
		return apierrors.NewNotFound(schema.GroupResource{Resource: "secrets"}, key.Name)
	}
	s := obj.(*corev1.Secret)
	s.Name, s.UID, s.ResourceVersion, s.Data = key.Name, "u", *h.value, map[string][]byte{"p": []byte(*h.value)}
	return nil
}

// A hash is of what was read: once the cache has moved on it does not stand for what the cache had before, and
// what is deleted has none.
func TestAHashIsOfWhatWasRead(t *testing.T) {
	cached, live := "1", "2"
	source := Source{Digests: Digesting(has{value: &cached}), Values: has{value: &live}}
	d := Demand{Namespace: "shop", Uses: []Reference{{Object: Object{Secret, "shop", "db"}, Required: true}}}
	k := &Known{}
	look := func() *Hashes {
		if _, err := source.Lookup().Observe(t.Context(), k, "1", d); err != nil {
			t.Fatal(err)
		}
		return k.Hashes()
	}
	look()
	if errs := source.Lookup().Hash(t.Context(), []*Known{k}); errs[0] != nil {
		t.Fatal(errs)
	}
	for _, test := range []struct {
		cached string
		known  bool
	}{{"1", true}, {"2", true}, {"1", false}} {
		if cached = test.cached; look() != nil != test.known {
			t.Errorf("the cache has %s, known %v", cached, !test.known)
		}
	}
	live = ""
	if errs := source.Lookup().Hash(t.Context(), []*Known{k}); errs[0] == nil || k.Hashes() != nil {
		t.Errorf("%v, %v", errs, k.Hashes())
	}
}

// large has ConfigMaps of a MiB, and notes how much was held at most when one was read.
type large struct {
	client.Reader

	values      *values
	reads, most atomic.Int64
}

// Get implements [client.Reader].
func (l *large) Get(_ context.Context, key client.ObjectKey, obj client.Object, _ ...client.GetOption) error {
	l.reads.Add(1)
	for held, most := l.values.held.Load(), l.most.Load(); held > most && !l.most.CompareAndSwap(most, held); most = l.most.Load() {
	}
	m := obj.(*corev1.ConfigMap)
	m.Name, m.UID, m.ResourceVersion, m.BinaryData = key.Name, "u", "1", map[string][]byte{"k": make([]byte, 1<<20)}
	return nil
}

// What a tenant stores in many large objects is not in memory at the same time, however many workloads name
// them; what fits is read once.
func TestWhatIsHeldIsBounded(t *testing.T) {
	const workloads, each = 20, 25
	for objects, want := range map[int]func(reads int64) bool{
		30:               func(n int64) bool { return n == 30 },
		workloads * each: func(n int64) bool { return n == workloads*each },
		120:              func(n int64) bool { return n >= 120 && n <= workloads*each },
	} {
		var due []*Known
		for i := range workloads {
			k := &Known{demand: Demand{Namespace: "shop"}, facts: Facts{}}
			for j := range each {
				o := Object{ConfigMap, "shop", fmt.Sprintf("c%d", (i*each+j)%objects)}
				k.demand.Uses = append(k.demand.Uses, Reference{Object: o})
				k.facts[o] = fact{exists: true}
			}
			due = append(due, k)
		}
		reader := &large{}
		reader.values = newValues(reader, due)
		var group errgroup.Group
		for _, k := range due {
			group.Go(func() error { return k.compute(t.Context(), reader.values) })
		}
		if err := group.Wait(); err != nil {
			t.Fatal(err)
		}
		if most, left := reader.most.Load(), reader.values.held.Load(); most > 2*MostBytes || left != 0 || !want(reader.reads.Load()) {
			t.Errorf("%d objects: %d reads, %d MiB were held at most, %d bytes are left", objects, reader.reads.Load(), most>>20, left)
		}
	}
}
