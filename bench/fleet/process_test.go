package fleet_test

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"os"
	"os/exec"
	"runtime"
	"strconv"
	"strings"
	"testing"
	"time"

	"k8s.io/client-go/tools/clientcmd"

	"github.com/spillway-dev/spillway/internal/lab/testenv"
	"github.com/spillway-dev/spillway/internal/manager"
)

// The variables by which a process of its own, whose memory is not the test's, gets its task.
const (
	kubeconfigVariable = "SPILLWAY_BENCH_CHILD"
	namespaceVariable  = "SPILLWAY_BENCH_NAMESPACE"
)

// process is a manager in a process of its own.
type process struct {
	started time.Time
	cmd     *exec.Cmd
	in      io.Writer
	out     *bufio.Scanner
}

// process starts a manager that ends with the test.
func (w *world) process() *process {
	w.t.Helper()
	p := &process{started: time.Now(), cmd: exec.CommandContext(context.Background(), os.Args[0])}
	p.cmd.Env = append(os.Environ(), kubeconfigVariable+"="+testenv.Shared().Kubeconfig(), namespaceVariable+"="+w.namespace)
	p.cmd.Stderr = os.Stderr
	in, err := p.cmd.StdinPipe()
	if err != nil {
		w.t.Fatal(err)
	}
	out, err := p.cmd.StdoutPipe()
	if err != nil {
		w.t.Fatal(err)
	}
	p.in, p.out = in, bufio.NewScanner(out)
	if err := p.cmd.Start(); err != nil {
		w.t.Fatal(err)
	}
	w.t.Cleanup(func() {
		_ = in.Close()
		if err := p.cmd.Wait(); err != nil {
			w.t.Error(err)
		}
	})
	return p
}

// heap is its live heap in MiB.
func (p *process) heap(t *testing.T) float64 {
	t.Helper()
	_, _ = io.WriteString(p.in, "measure\n")
	p.out.Scan()
	mib, err := strconv.ParseFloat(p.out.Text(), 64)
	if err != nil {
		t.Fatal(err)
	}
	return mib
}

// peak is the most memory that it had at a time, in MiB; zero where the system does
// not tell.
func (p *process) peak(t *testing.T) float64 {
	t.Helper()
	raw, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", p.cmd.Process.Pid))
	if err != nil {
		return 0
	}
	_, rest, _ := strings.Cut(string(raw), "VmHWM:")
	kib := 0.0
	if _, err := fmt.Sscan(rest, &kib); err != nil {
		t.Fatal(err)
	}
	return kib / 1024
}

// child is a manager that tells its live heap when it is asked, and ends with its input.
func child() int {
	cfg, err := clientcmd.BuildConfigFromFlags("", os.Getenv(kubeconfigVariable))
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	done := make(chan error, 1)
	go func() { done <- manager.Run(ctx, cfg, options(os.Getenv(namespaceVariable))) }()
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
