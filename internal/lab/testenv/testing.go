package testenv

import (
	"context"
	"fmt"
	"math"
	"runtime"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/wait"

	"github.com/spillway-dev/spillway/internal/lab/controlplane"
)

// patience is how long a test waits for a condition. It says nothing about how
// long anything may take: it is for a machine that runs other work too.
const patience = 3 * time.Minute

// Namespace makes a namespace for a test on the shared control plane, as [NamespaceOn]
// does.
func Namespace(t testing.TB) string {
	t.Helper()
	return NamespaceOn(t, Shared())
}

// NamespaceOn makes a namespace for a test on a control plane. On one that is thrown
// away at the end the namespace stays: to remove all that is in it costs more than most
// tests. On an existing cluster it is removed after the test.
func NamespaceOn(t testing.TB, cp *controlplane.ControlPlane) string {
	t.Helper()
	name := makeNamespace(t, cp)
	if cp.Dir == "" {
		removeNamespace(t, cp, name)
	}
	return name
}

func makeNamespace(t testing.TB, cp *controlplane.ControlPlane) string {
	t.Helper()
	c, err := cp.Clientset()
	if err != nil {
		t.Fatal(err)
	}
	ns, err := c.CoreV1().Namespaces().Create(t.Context(), &corev1.Namespace{
		ObjectMeta: metav1.ObjectMeta{GenerateName: "test-"},
	}, metav1.CreateOptions{})
	if err != nil {
		t.Fatal(err)
	}
	return ns.Name
}

func removeNamespace(t testing.TB, cp *controlplane.ControlPlane, name string) {
	t.Helper()
	c, err := cp.Clientset()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := c.CoreV1().Namespaces().Delete(context.Background(), name, metav1.DeleteOptions{}); err != nil {
			t.Log(err)
		}
	})
}

const (
	// lookFirst is how soon a test looks again; each time it waits a little longer, up
	// to lookLast, so that many tests that wait leave the API server time to work.
	lookFirst = 10 * time.Millisecond
	lookLast  = 150 * time.Millisecond
)

// Eventually waits until check returns nil, and fails the test with its last
// error if that takes too long.
func Eventually(t testing.TB, check func(context.Context) error) {
	t.Helper()
	if err := Until(t.Context(), check); err != nil {
		t.Fatal(err)
	}
}

// Until waits as [Eventually] does, for code without a test.
func Until(ctx context.Context, check func(context.Context) error) error {
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	var last error
	again := wait.Backoff{Duration: lookFirst, Factor: 1.3, Cap: lookLast, Steps: math.MaxInt}
	err := again.DelayFunc().Until(ctx, true, false, func(ctx context.Context) (bool, error) {
		err := check(ctx)
		if err == nil || ctx.Err() == nil {
			last = err
		}
		return err == nil, nil
	})
	if err != nil {
		return fmt.Errorf("not within %s: %w", patience, last)
	}
	return nil
}

// Heap is how many bytes are used on the heap, without what can be collected.
func Heap() int64 {
	var m runtime.MemStats
	runtime.GC()
	runtime.ReadMemStats(&m)
	return int64(m.HeapAlloc)
}
