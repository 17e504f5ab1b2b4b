package describe

import (
	"context"
	"fmt"
	"testing"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/spillway-dev/spillway/internal/kube"
	"github.com/spillway-dev/spillway/internal/lab/testenv"
	"github.com/spillway-dev/spillway/internal/lab/testenv/fault"
)

func TestMain(m *testing.M) {
	testenv.Parallel(10) // planted situations wait for controllers most of the time
	testenv.Main(m, testenv.Options{Nodes: 3})
}

// clientAs is a client of which the requests are counted, as somebody if that is not empty.
func clientAs(t *testing.T, user string) (client.Client, *fault.Injector) {
	t.Helper()
	scheme, err := kube.NewScheme()
	if err != nil {
		t.Fatal(err)
	}
	requests, cfg := fault.New(), rest.CopyConfig(testenv.Shared().Config())
	cfg.QPS, cfg.Impersonate.UserName = -1, user
	c, err := client.New(requests.Wrap(cfg), client.Options{Scheme: scheme})
	if err != nil {
		t.Fatal(err)
	}
	return c, requests
}

// someConfig makes n ConfigMaps, every other of them with a label.
func someConfig(t *testing.T, c client.Client, n int) (namespace string) {
	t.Helper()
	namespace = testenv.Namespace(t)
	for i := range n {
		obj := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: fmt.Sprintf("c%d", i)}, Data: map[string]string{"k": "v"}}
		if i%2 == 0 {
			obj.Labels = map[string]string{"even": "true"}
		}
		if err := c.Create(t.Context(), obj); err != nil {
			t.Fatal(err)
		}
	}
	return namespace
}

// Whatever is asked for, and however often, more than a few requests are one list.
func TestSnapshotAsksOnce(t *testing.T) {
	c, requests := clientAs(t, "")
	n := 3 * Singly
	namespace := someConfig(t, c, n)
	for scope, within := range map[string]string{"of a namespace": namespace, "of all": ""} {
		t.Run(scope, func(t *testing.T) {
			s := newSnapshot(c, c.Scheme(), within)
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

func get(t *testing.T, s *snapshot, namespace, name string) *corev1.ConfigMap {
	t.Helper()
	obj := &corev1.ConfigMap{}
	if err := s.Get(t.Context(), client.ObjectKey{Namespace: namespace, Name: name}, obj); err != nil {
		t.Fatal(err)
	}
	return obj
}

// Who may not list, but may get, sees all the same; who may do neither is told.
func TestSnapshotOfWhoMayNotList(t *testing.T) {
	c, _ := clientAs(t, "nobody")
	s := newSnapshot(c, c.Scheme(), "")
	err := s.List(t.Context(), &corev1.SecretList{})
	if !apierrors.IsForbidden(err) {
		t.Error(err)
	}
	reader := &onlyGets{Client: c}
	s = newSnapshot(reader, c.Scheme(), "")
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
