package fleet_test

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"os/exec"
	"runtime"
	"runtime/debug"
	"strings"
	"testing"
	"time"

	"k8s.io/client-go/tools/clientcmd"
	ctrl "sigs.k8s.io/controller-runtime"

	"github.com/spillway-dev/spillway/internal/fleet/cluster"
	"github.com/spillway-dev/spillway/internal/fleet/proxy"
	"github.com/spillway-dev/spillway/internal/lab/testenv"
	"github.com/spillway-dev/spillway/internal/lab/testenv/fault"
	"github.com/spillway-dev/spillway/internal/manager"
)

// The variables by which a process of its own, whose memory is not the test's, gets its task.
const (
	kubeconfigVariable = "SPILLWAY_BENCH_CHILD"
	namespaceVariable  = "SPILLWAY_BENCH_NAMESPACE"
	taskVariable       = "SPILLWAY_BENCH_TASK"
)

// The tasks of a manager: to decide alone, or to connect to the clusters as well.
const (
	decidingTask  = "decide"
	connectedTask = "connect"
)

// memoryOf is the memory of a process in MiB, once it has returned what it does not use.
type memoryOf struct {
	Heap     float64 `json:"heap"`
	Stacks   float64 `json:"stacks"`
	Resident float64 `json:"-"`
	Peak     float64 `json:"-"`
}

// process is a manager in a process of its own.
type process struct {
	started time.Time
	cmd     *exec.Cmd
	in      io.Writer
	out     *bufio.Scanner
}

// process starts a manager that ends with the test.
func (w *world) process(task string) *process {
	w.t.Helper()
	p := &process{started: time.Now(), cmd: exec.CommandContext(context.Background(), os.Args[0])}
	p.cmd.Env = append(os.Environ(), taskVariable+"="+task, kubeconfigVariable+"="+testenv.Shared().Kubeconfig(), namespaceVariable+"="+w.namespace)
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

// ask has the process answer.
func (p *process) ask(t *testing.T, what string, into any) {
	t.Helper()
	_, _ = io.WriteString(p.in, what+"\n")
	p.out.Scan()
	if err := json.Unmarshal(p.out.Bytes(), into); err != nil {
		t.Fatal(err)
	}
}

func (p *process) memory(t *testing.T) (m memoryOf) {
	t.Helper()
	p.ask(t, "measure", &m)
	m.Resident, m.Peak = p.status(t, "VmRSS:"), p.peak(t)
	return m
}

// settled are its requests since it began, once it makes none any more.
func (p *process) settled(t *testing.T) map[string]int {
	t.Helper()
	for before := -1; ; {
		var calls map[string]int
		p.ask(t, "requests", &calls)
		now := 0
		for _, n := range calls {
			now += n
		}
		if now == before {
			return calls
		}
		before = now
		<-time.After(2 * time.Second)
	}
}

// peak is the most memory that it had at a time, in MiB; zero where the system does
// not tell.
func (p *process) peak(t *testing.T) float64 {
	t.Helper()
	return p.status(t, "VmHWM:")
}

func (p *process) status(t *testing.T, what string) float64 {
	t.Helper()
	raw, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", p.cmd.Process.Pid))
	if err != nil {
		return 0
	}
	_, rest, _ := strings.Cut(string(raw), what)
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
	o, requests := options(os.Getenv(namespaceVariable)), fault.New()
	if os.Getenv(taskVariable) == connectedTask {
		o.Fleet.Looks = true
		o.Fleet.Assemblages = func(ctx context.Context, mgr ctrl.Manager, clusters *cluster.Directory) error {
			return proxy.SetupHub(ctx, mgr, proxy.Options{Namespaces: o.Namespaces, Now: o.Fleet.Now, Directory: clusters})
		}
	}
	done := make(chan error, 1)
	go func() { done <- manager.Run(ctx, requests.Wrap(cfg), o) }()
	for in := bufio.NewScanner(os.Stdin); in.Scan(); {
		if in.Text() == "requests" {
			_ = json.NewEncoder(os.Stdout).Encode(callsOf(requests.Requests())) //nolint:errchkjson // it can be written, and who does not read it has ended
			continue
		}
		requests.Reset()
		runtime.GC()
		debug.FreeOSMemory()
		var m runtime.MemStats
		runtime.ReadMemStats(&m)
		_ = json.NewEncoder(os.Stdout).Encode(memoryOf{Heap: float64(m.HeapAlloc) / (1 << 20), Stacks: float64(m.StackInuse) / (1 << 20)}) //nolint:errchkjson // it can be written, and who does not read it has ended
	}
	cancel()
	if err := <-done; err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	return 0
}
