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
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/tools/clientcmd"

	"github.com/spillway-dev/spillway/internal/lab/controlplane"
	"github.com/spillway-dev/spillway/internal/lab/testenv"
	"github.com/spillway-dev/spillway/internal/lab/testenv/fault"
	"github.com/spillway-dev/spillway/internal/manager"
)

const (
	// childVariable holds the kubeconfig for this program as a manager whose
	// heap is measured, so that the test's own is not.
	childVariable = "SPILLWAY_BENCH_CHILD"
	// childNamespace holds the namespace that it watches, all if empty.
	childNamespace = "SPILLWAY_BENCH_NAMESPACE"
	secretSize     = 16 << 10
	usedShare      = 100 // one in so many is used
	heapTarget     = 16  // MiB
	// secretsTarget is how many MiB the program may have resident with 6,000 Secrets: here it has more of them.
	secretsTarget = 70
)

// TestMemoryOfManySecrets measures the live heap of a manager on a cluster with
// many Secrets of which few are used, above that on an empty one.
func TestMemoryOfManySecrets(t *testing.T) {
	c, ns := newClient(t), testenv.Namespace(t)
	first := startProcess(t, "")
	empty := first.live(t)
	first.stop(t)
	each(t, secrets, func(i int) error {
		return c.Create(t.Context(), &corev1.Secret{
			ObjectMeta: metav1.ObjectMeta{Namespace: ns, Name: name("secret", i)},
			Data:       map[string][]byte{"value": []byte(strings.Repeat(strconv.Itoa(i%10), secretSize))},
		})
	})
	each(t, secrets/usedShare, func(i int) error {
		return c.Create(t.Context(), deployment(ns, name("tracked", i), useSecret(name("secret", i*usedShare)), map[string]string{tracked: "true"}))
	})
	p, above := startProcess(t, ""), 0.0
	testenv.Eventually(t, func(context.Context) error {
		if n := hashes(atRest(t, c, ns), "tracked")[""]; n > 0 {
			return fmt.Errorf("%d workloads have no hash yet", n)
		}
		if above = p.live(t) - empty; above > heapTarget { // during a pass, objects are alive that the cache has replaced
			return fmt.Errorf("%.1f MiB of live heap, want at most %d", above, heapTarget)
		}
		return nil
	})
	p.stop(t)
	fmt.Printf("| live heap for %d Secrets of 16 KiB, %d used, above an empty cluster (target: at most %d MiB) | %.1f MiB |\n",
		secrets, secrets/usedShare, heapTarget, above)
	if full {
		if has := program(t, fmt.Sprintf("%d Secrets", secrets), ns); has > secretsTarget {
			t.Errorf("%.0f MiB are resident, want at most %d", has, secretsTarget)
		}
	}
}

// process is a manager in a process of its own.
type process struct {
	cmd   *exec.Cmd
	in    io.WriteCloser
	lines *bufio.Scanner
	begun time.Time
}

// startProcess starts a manager, and returns when it has seen the cluster.
func startProcess(t *testing.T, namespace string) *process {
	t.Helper()
	p := &process{cmd: exec.CommandContext(t.Context(), os.Args[0]), begun: time.Now()}
	p.cmd.Env = append(os.Environ(), childVariable+"="+testenv.Shared().Kubeconfig(), childNamespace+"="+namespace)
	p.cmd.Stderr = os.Stderr
	var err error
	if p.in, err = p.cmd.StdinPipe(); err != nil {
		t.Fatal(err)
	}
	out, err := p.cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := p.cmd.Start(); err != nil {
		t.Fatal(err)
	}
	p.lines = bufio.NewScanner(out)
	p.lines.Scan()
	return p
}

// ask returns the answer to a question.
func (p *process) ask(t *testing.T, question string) string {
	t.Helper()
	if _, err := io.WriteString(p.in, question+"\n"); err != nil {
		t.Fatal(err)
	}
	p.lines.Scan()
	return p.lines.Text()
}

func (p *process) stop(t *testing.T) {
	t.Helper()
	_ = p.in.Close()
	if err := p.cmd.Wait(); err != nil {
		t.Fatal(err)
	}
}

// resident is the MiB of memory that the process has.
func (p *process) resident(t *testing.T) float64 {
	t.Helper()
	return p.memory(t, "VmRSS:")
}

// memory is a number of MiB that the kernel counts for the process.
func (p *process) memory(t *testing.T, what string) float64 {
	t.Helper()
	raw, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", p.cmd.Process.Pid))
	if err != nil {
		t.Fatal(err)
	}
	for line := range strings.Lines(string(raw)) {
		if fields := strings.Fields(line); len(fields) == 3 && fields[0] == what {
			kib, err := strconv.ParseFloat(fields[1], 64)
			if err != nil {
				t.Fatal(err)
			}
			return kib / 1024
		}
	}
	t.Fatal("the process has ended")
	return 0
}

// child is a manager that answers how large its live heap is, and how many ConfigMaps it has
// read. It ends with its input.
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
	o, counted := options(os.Getenv(childNamespace)), fault.New()
	o.ProbeAddress = "127.0.0.1:" + strconv.Itoa(port)
	go func() { done <- manager.Run(ctx, counted.Wrap(cfg), o) }()
	for !ready("http://" + o.ProbeAddress + "/readyz") {
		runtime.Gosched()
	}
	fmt.Println("ready")
	for in := bufio.NewScanner(os.Stdin); in.Scan(); {
		if in.Text() == "reads" {
			fmt.Println(reads(counted))
			continue
		}
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

// reads is how many ConfigMaps were read one by one.
func reads(counted *fault.Injector) int {
	n := 0
	for _, r := range counted.Requests() {
		if r.Verb == "get" && r.Resource == "configmaps" {
			n++
		}
	}
	return n
}

func ready(url string) bool {
	res, err := http.Get(url)
	if err != nil {
		return false
	}
	_ = res.Body.Close()
	return res.StatusCode == http.StatusOK
}
