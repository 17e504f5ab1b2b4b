package content

import (
	"context"
	"errors"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
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
