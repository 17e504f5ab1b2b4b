package describe

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	apimeta "k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/spillway-dev/spillway/internal/config"
	"github.com/spillway-dev/spillway/internal/describe/describetest"
	"github.com/spillway-dev/spillway/internal/describe/snapshot"
	"github.com/spillway-dev/spillway/internal/kube"
	"github.com/spillway-dev/spillway/internal/lab/testenv"
	"github.com/spillway-dev/spillway/internal/lab/testenv/fault"
)

// watchedAs is a watched namespace of which the requests are counted, for a user.
func watchedAs(t *testing.T, user, namespace string) (*snapshot.Watched, *fault.Injector) {
	t.Helper()
	scheme, err := kube.NewScheme()
	if err != nil {
		t.Fatal(err)
	}
	requests, cfg := fault.New(), rest.CopyConfig(testenv.Shared().Config())
	cfg.QPS, cfg.Impersonate.UserName = -1, user
	cfg = requests.Wrap(cfg)
	c, err := client.New(cfg, client.Options{Scheme: scheme})
	if err != nil {
		t.Fatal(err)
	}
	m, err := snapshot.Watch(t.Context(), cfg, c, namespace)
	if err != nil {
		t.Fatal(err)
	}
	return m, requests
}

// However often it is read, the API server is asked once; and a change is seen
// without asking.
func TestWatchedAsksOnce(t *testing.T) {
	c, _ := describetest.ClientAs(t, "")
	namespace := describetest.SomeConfig(t, c, 3)
	if err := c.Create(t.Context(), describetest.Tracked(namespace, "web")); err != nil {
		t.Fatal(err)
	}
	m, requests := watchedAs(t, "", namespace)
	look := Options{Namespace: namespace, Config: config.Options{Now: time.Now}}
	first := func() string {
		found, err := Describe(t.Context(), m, look)
		if err != nil {
			t.Fatal(err)
		}
		return found.Units[0].String()
	}
	if got := first(); got != "secret/db" {
		t.Errorf("without its Secret, the workload is beneath %s", got)
	}
	before := len(requests.Requests())
	for range 20 {
		first()
	}
	if after := len(requests.Requests()); after != before {
		t.Errorf("looking 20 times more took %d requests: %v", after-before, requests.Requests()[before:])
	}
	secret := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{
		Namespace: namespace, Name: "db", Annotations: map[string]string{corev1.LastAppliedConfigAnnotation: "hunter2"},
	}, Data: map[string][]byte{"password": []byte("hunter2")}}
	if err := c.Create(t.Context(), secret); err != nil {
		t.Fatal(err)
	}
	testenv.Eventually(t, func(ctx context.Context) error {
		select {
		case <-m.Changed():
		case <-ctx.Done():
			return ctx.Err()
		}
		if got := first(); got != "deployment/web" {
			return fmt.Errorf("with its Secret, the workload is beneath %s", got)
		}
		return nil
	})
	for range 20 {
		first()
	}
	if after := len(requests.Requests()); after != before+1 { // its values, of which the hash is kept
		t.Errorf("seeing the change took %d requests: %v", after-before, requests.Requests()[before:])
	}
	held := &corev1.Secret{}
	if err := m.Get(t.Context(), client.ObjectKeyFromObject(secret), held); err != nil {
		t.Fatal(err)
	}
	if text := fmt.Sprintf("%q", held); strings.Contains(text, "hunter2") || len(held.Data["password"]) == 0 {
		t.Errorf("the watched holds %s", text)
	}
}

// Lists of metadata alone, of what has no type here, and of all namespaces are watcheded as
// well.
func TestWatchedOfAllForms(t *testing.T) {
	c, _ := describetest.ClientAs(t, "")
	namespace, other := describetest.SomeConfig(t, c, 1), describetest.SomeConfig(t, c, 2)
	m, requests := watchedAs(t, "", namespace)
	kind := corev1.SchemeGroupVersion.WithKind("ConfigMapList")
	look := func() (inAll int) {
		metadata, untyped, all := &metav1.PartialObjectMetadataList{}, &unstructured.UnstructuredList{}, &corev1.ConfigMapList{}
		metadata.SetGroupVersionKind(kind)
		untyped.SetGroupVersionKind(kind)
		for _, list := range []client.ObjectList{metadata, untyped} {
			if err := m.List(t.Context(), list, client.InNamespace(namespace)); err != nil || apimeta.LenList(list) < 1 {
				t.Errorf("of %T there are %d: %v", list, apimeta.LenList(list), err)
			}
		}
		if err := m.List(t.Context(), all); err != nil {
			t.Error(err)
		}
		for i := range all.Items {
			if all.Items[i].Namespace == other {
				inAll++
			}
		}
		return inAll
	}
	if n := look(); n < 2 {
		t.Errorf("in the other namespace there are %d", n)
	}
	before := len(requests.Requests())
	look()
	if after := len(requests.Requests()); after != before {
		t.Errorf("looking again took %v", requests.Requests()[before:])
	}
}

// What may not be listed is an error immediately, not a watch that retries for ever; and what
// is in another namespace is asked for.
func TestWatchedKnowsItsLimits(t *testing.T) {
	c, _ := describetest.ClientAs(t, "")
	namespace, other := describetest.SomeConfig(t, c, 1), describetest.SomeConfig(t, c, 2)
	m, _ := watchedAs(t, "nouser", namespace)
	if err := m.List(t.Context(), &corev1.ConfigMapList{}, client.InNamespace(namespace)); !apierrors.IsForbidden(err) {
		t.Errorf("a user without permissions gets %v", err)
	}
	m, _ = watchedAs(t, "", namespace)
	list := &corev1.ConfigMapList{}
	err := m.List(t.Context(), list, client.InNamespace(other), client.MatchingLabels{"even": "true"})
	if err != nil || len(list.Items) != 1 {
		t.Errorf("of another namespace there are %d, %v", len(list.Items), err)
	}
	err = m.List(t.Context(), list, client.InNamespace(namespace), client.Limit(1))
	if err != nil || list.Continue != "" {
		t.Errorf("there is another page, %q: %v", list.Continue, err)
	}
	err = errors.Join(
		m.Get(t.Context(), client.ObjectKey{Namespace: namespace, Name: "c0"}, &corev1.ConfigMap{}),
		m.Get(t.Context(), client.ObjectKey{Namespace: other, Name: "c1"}, &corev1.ConfigMap{}),
	)
	if err != nil {
		t.Error(err)
	}
}
