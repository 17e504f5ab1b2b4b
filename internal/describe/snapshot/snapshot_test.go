package snapshot

import (
	"context"
	"fmt"
	"testing"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/spillway-dev/spillway/internal/describe/describetest"
)

// Whatever is asked for, and however often, more than a few requests are one list.
func TestSnapshotAsksOnce(t *testing.T) {
	c, requests := describetest.ClientAs(t, "")
	n := 3 * Singly
	namespace := describetest.SomeConfig(t, c, n)
	for scope, within := range map[string]string{"of a namespace": namespace, "of all": ""} {
		t.Run(scope, func(t *testing.T) {
			s := New(c, c.Scheme(), within)
			before := len(requests.Requests())
			for i := range n {
				got := get(t, s, namespace, fmt.Sprintf("c%d", i))
				got.Data["k"] = "mine" // it is the caller's own
			}
			if got := get(t, s, namespace, "c1"); got.Data["k"] != "v" || got.ManagedFields != nil {
				t.Errorf("an object is somebody else's, or has what nobody needs: %v", got)
			}
			even := &corev1.ConfigMapList{}
			if err := s.List(t.Context(), even, client.InNamespace(namespace), client.MatchingLabels{"even": "true"}); err != nil || len(even.Items) != n/2 || even.ResourceVersion == "" {
				t.Errorf("%d of %d, at %q: %v", len(even.Items), n/2, even.ResourceVersion, err)
			}
			err := s.Get(t.Context(), client.ObjectKey{Namespace: namespace, Name: "nobody"}, &corev1.ConfigMap{})
			if !apierrors.IsNotFound(err) {
				t.Errorf("what is not there: %v", err)
			}
			if asked := len(requests.Requests()) - before; asked != Singly+1 {
				t.Errorf("%d requests", asked)
			}
		})
	}
}

func get(t *testing.T, s *Snapshot, namespace, name string) *corev1.ConfigMap {
	t.Helper()
	obj := &corev1.ConfigMap{}
	if err := s.Get(t.Context(), client.ObjectKey{Namespace: namespace, Name: name}, obj); err != nil {
		t.Fatal(err)
	}
	return obj
}

// Who may not list, but may get, sees all the same; who may do neither is told.
func TestSnapshotOfWhoMayNotList(t *testing.T) {
	c, _ := describetest.ClientAs(t, "nobody")
	s := New(c, c.Scheme(), "")
	err := s.List(t.Context(), &corev1.SecretList{})
	if !apierrors.IsForbidden(err) {
		t.Error(err)
	}
	reader := &onlyGets{Client: c}
	s = New(reader, c.Scheme(), "")
	for range 2 * Singly {
		if err := s.Get(t.Context(), client.ObjectKey{Namespace: "x", Name: "y"}, &corev1.Secret{}); err != nil {
			t.Fatal(err)
		}
	}
	if reader.gets != 2*Singly {
		t.Errorf("%d gets", reader.gets)
	}
}

// onlyGets lets everybody get, and nobody list.
type onlyGets struct {
	client.Client

	gets int
}

// Get implements [client.Reader].
func (o *onlyGets) Get(context.Context, client.ObjectKey, client.Object, ...client.GetOption) error {
	o.gets++
	return nil
}
