package fault_test

import (
	"context"
	"errors"
	"fmt"
	"testing"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"

	"github.com/spillway-dev/spillway/internal/lab/testenv"
	"github.com/spillway-dev/spillway/internal/lab/testenv/fault"
)

func TestMain(m *testing.M) { testenv.Main(m, testenv.Options{}) }

func setUp(t *testing.T) (*fault.Injector, *kubernetes.Clientset, string) {
	t.Helper()
	t.Parallel()
	inj := fault.New()
	c, err := kubernetes.NewForConfig(inj.Wrap(testenv.Shared().Config()))
	if err != nil {
		t.Fatal(err)
	}
	return inj, c, testenv.Namespace(t)
}

func create(t *testing.T, c *kubernetes.Clientset, ns, name string) error {
	t.Helper()
	_, err := c.CoreV1().ConfigMaps(ns).Create(t.Context(), &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: name}}, metav1.CreateOptions{})
	return err
}

func exists(t *testing.T, ns, name string) bool {
	t.Helper()
	c, err := testenv.Shared().Clientset()
	if err != nil {
		t.Fatal(err)
	}
	_, err = c.CoreV1().ConfigMaps(ns).Get(t.Context(), name, metav1.GetOptions{})
	return err == nil
}

func TestCountsExactly(t *testing.T) {
	inj, c, ns := setUp(t)
	cms := c.CoreV1().ConfigMaps(ns)
	if err := create(t, c, ns, "a"); err != nil {
		t.Fatal(err)
	}
	_, _ = cms.Get(t.Context(), "a", metav1.GetOptions{})
	_, _ = cms.List(t.Context(), metav1.ListOptions{})
	_ = cms.Delete(t.Context(), "a", metav1.DeleteOptions{})
	_, _ = c.AppsV1().Deployments(ns).GetScale(t.Context(), "web", metav1.GetOptions{})
	want := []fault.Request{
		{Verb: "create", Resource: "configmaps", Namespace: ns},
		{Verb: "get", Resource: "configmaps", Namespace: ns, Name: "a"},
		{Verb: "list", Resource: "configmaps", Namespace: ns},
		{Verb: "delete", Resource: "configmaps", Namespace: ns, Name: "a"},
		{Verb: "get", Group: "apps", Resource: "deployments", Namespace: ns, Name: "web", Subresource: "scale"},
	}
	if got := inj.Requests(); fmt.Sprint(got) != fmt.Sprint(want) {
		t.Errorf("requests = %+v", got)
	}
	if n := len(inj.Writes()); n != 2 {
		t.Errorf("%d writes, want 2", n)
	}
}

func TestStopsBeforeAndAfterAWrite(t *testing.T) {
	for when, made := range map[fault.When]bool{fault.Before: false, fault.After: true} {
		t.Run(when.String(), func(t *testing.T) {
			inj, c, ns := setUp(t)
			inj.StopAt(2, when)
			if err := create(t, c, ns, "first"); err != nil {
				t.Fatal(err)
			}
			if err := create(t, c, ns, "second"); !errors.Is(err, fault.ErrStopped) {
				t.Errorf("the second write: %v", err)
			}
			<-inj.Stopped()
			if got := exists(t, ns, "second"); got != made {
				t.Errorf("the second write was made: %v", got)
			}
			if _, err := c.CoreV1().ConfigMaps(ns).List(t.Context(), metav1.ListOptions{}); !errors.Is(err, fault.ErrStopped) {
				t.Errorf("a request after the stop: %v", err)
			}
		})
	}
}

func TestConflictsAreNotSent(t *testing.T) {
	inj, c, ns := setUp(t)
	inj.Conflict(func(r fault.Request) bool { return r.Verb == "create" })
	if err := create(t, c, ns, "a"); !apierrors.IsConflict(err) {
		t.Errorf("err = %v", err)
	}
	inj.Conflict(nil)
	if err := create(t, c, ns, "a"); err != nil {
		t.Errorf("err = %v", err)
	}
}

func TestCutAndRestore(t *testing.T) {
	inj, c, ns := setUp(t)
	inj.Cut()
	if err := create(t, c, ns, "a"); err == nil {
		t.Error("a request went through")
	}
	inj.Restore()
	if err := create(t, c, ns, "a"); err != nil {
		t.Error(err)
	}
}

func TestHeldWatchesDeliverLater(t *testing.T) {
	inj, c, ns := setUp(t)
	w, err := c.CoreV1().ConfigMaps(ns).Watch(t.Context(), metav1.ListOptions{FieldSelector: "metadata.name=a"})
	if err != nil {
		t.Fatal(err)
	}
	defer w.Stop()
	release := inj.HoldWatches()
	if err := create(t, c, ns, "a"); err != nil {
		t.Fatal(err)
	}
	testenv.Eventually(t, func(context.Context) error {
		if !exists(t, ns, "a") {
			return errors.New("not there yet")
		}
		return nil
	})
	select {
	case e := <-w.ResultChan():
		t.Errorf("delivered while held: %v", e)
	default:
	}
	release()
	if e := <-w.ResultChan(); e.Type != "ADDED" {
		t.Errorf("after the release: %v", e)
	}
}
