package bench_test

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"runtime"
	"strconv"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/tools/clientcmd"

	"github.com/spillway-dev/spillway/internal/lab/controlplane"
	"github.com/spillway-dev/spillway/internal/lab/testenv"
	"github.com/spillway-dev/spillway/internal/manager"
)

const (
	// childVariable holds the kubeconfig for this program as a manager whose
	// heap is measured, so that the test's own is not.
	childVariable = "SPILLWAY_BENCH_CHILD"
	secretSize    = 16 << 10
	usedShare     = 100 // one in so many is used
	heapTarget    = 16  // MiB
)

// TestMemoryOfManySecrets measures the live heap of a manager on a cluster with
// many Secrets of which few are used, above that on an empty one.
func TestMemoryOfManySecrets(t *testing.T) {
	c, ns := newClient(t), testenv.Namespace(t)
	empty := heapOf(t, func() {})
	each(t, secrets, func(i int) error {
		return c.Create(t.Context(), &corev1.Secret{
			ObjectMeta: metav1.ObjectMeta{Namespace: ns, Name: name("secret", i)},
			Data:       map[string][]byte{"value": []byte(strings.Repeat(strconv.Itoa(i%10), secretSize))},
		})
	})
	each(t, secrets/usedShare, func(i int) error {
		return c.Create(t.Context(), deployment(ns, name("tracked", i), useSecret(name("secret", i*usedShare)), map[string]string{tracked: "true"}))
	})
	loaded := heapOf(t, func() {
		testenv.Eventually(t, func(context.Context) error {
			if n := hashes(atRest(t, c, ns), "tracked")[""]; n > 0 {
				return fmt.Errorf("%d workloads have no hash yet", n)
			}
			return nil
		})
	})
	above := loaded - empty
	fmt.Printf("| live heap for %d Secrets of 16 KiB, %d used, above an empty cluster (target: at most %d MiB) | %.1f MiB |\n",
		secrets, secrets/usedShare, heapTarget, above)
	if above > heapTarget {
		t.Errorf("%.1f MiB of live heap above an empty cluster, want at most %d", above, heapTarget)
	}
}

// heapOf starts a manager in a process of its own, and returns the MiB of its
// live heap once until has returned.
func heapOf(t *testing.T, until func()) float64 {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), os.Args[0])
	cmd.Env = append(os.Environ(), childVariable+"="+testenv.Shared().Kubeconfig())
	cmd.Stderr = os.Stderr
	in, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	lines := bufio.NewScanner(out)
	lines.Scan() // it has seen the cluster
	until()
	_, _ = io.WriteString(in, "measure\n")
	lines.Scan()
	mib, err := strconv.ParseFloat(lines.Text(), 64)
	if err != nil {
		t.Fatal(err)
	}
	_ = in.Close()
	if err := cmd.Wait(); err != nil {
		t.Fatal(err)
	}
	return mib
}

// child is a manager that tells its live heap when it is asked, and ends with
// its input.
func child() int {
	cfg, err := clientcmd.BuildConfigFromFlags("", os.Getenv(childVariable))
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	done := make(chan error, 1)
	port, err := controlplane.FreePort()
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	o := options("")
	o.ProbeAddress = "127.0.0.1:" + strconv.Itoa(port)
	go func() { done <- manager.Run(ctx, cfg, o) }()
	for !ready("http://" + o.ProbeAddress + "/readyz") {
		runtime.Gosched()
	}
	fmt.Println("ready")
	for in := bufio.NewScanner(os.Stdin); in.Scan(); {
		runtime.GC()
		runtime.GC()
		var m runtime.MemStats
		runtime.ReadMemStats(&m)
		fmt.Println(float64(m.HeapAlloc) / (1 << 20))
	}
	cancel()
	if err := <-done; err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	return 0
}

func ready(url string) bool {
	res, err := http.Get(url)
	if err != nil {
		return false
	}
	_ = res.Body.Close()
	return res.StatusCode == http.StatusOK
}
