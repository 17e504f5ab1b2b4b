package status_test

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/client"

	fleetv1 "github.com/spillway-dev/spillway/api/fleet/v1alpha1"
	"github.com/spillway-dev/spillway/internal/cli"
	"github.com/spillway-dev/spillway/internal/cli/command"
	"github.com/spillway-dev/spillway/internal/lab/testenv"
)

const (
	// viewers follow the first page at the same time.
	viewers = 50
	// apart is how much later than the last page of one change the next one is made: a change of its own.
	apart = 2 * time.Second
)

// TestDashboardOfMuch serves the pages of a large cluster to many viewers. What they cost the
// API server is the same as for one: nothing, once the kinds are watched.
func TestDashboardOfMuch(t *testing.T) {
	w := newWorld(t)
	w.make(seen)
	kubeconfig, requests := w.counting()
	d := w.dashboard(kubeconfig, "-A")
	first, named, whole := d.fills()
	d.read("/why/module/" + w.module(seen) + "?namespace=" + w.namespace)
	warm := median(5, func() { d.read("/") })
	before := requests.Load()
	amid := d.follow(w.workloadChanges(0))
	w.awaitControllers()
	spent := processorTime(t)
	updates := d.follow(w.workloadChanges(changes))
	spent = processorTime(t) - spent
	modules := d.follow(w.moduleChanges())
	if more := requests.Load() - before; more > 0 {
		t.Errorf("%d viewers and %d changes cost %d requests", viewers, 3*changes, more)
	}
	fmt.Printf("| dashboard of %d workloads and %d clusters: the first page; again (target: 1 s) | %.2f s; %.3f s |\n", seen.workloads, seen.clusters, first.Seconds(), warm.Seconds())
	fmt.Printf("| … until it names workloads; until it shows all | %.2f s; %.2f s |\n", named.Seconds(), whole.Seconds())
	fmt.Printf("| %d viewers, from a change of a workload to the page that shows it (target: 0.2 s): p50; p90 | %s |\n", viewers, percentiles(updates))
	fmt.Printf("| … of a Module | %s |\n", percentiles(modules))
	fmt.Printf("| … of a workload, while the status of all others changes | %s |\n", percentiles(amid))
	fmt.Printf("| requests to the API server for %d changes | %d |\n", 3*changes, requests.Load()-before)
	fmt.Printf("| processor time for each change of a workload, with that of %d clients | %.2f s |\n", viewers, spent.Seconds()/changes)
	fmt.Printf("| heap of the command, and of the test around it | %d MiB |\n", testenv.Heap()>>20)
	d.paint()
}

// counting is a kubeconfig by which requests are counted.
func (w *world) counting() (kubeconfig string, requests *atomic.Int64) {
	w.t.Helper()
	requests = &atomic.Int64{}
	return testenv.Between(w.t, func(next http.Handler) http.Handler {
		return http.HandlerFunc(func(rw http.ResponseWriter, r *http.Request) {
			if !strings.HasPrefix(r.URL.Path, "/readyz") && !strings.HasPrefix(r.URL.Path, "/version") {
				requests.Add(1)
			}
			next.ServeHTTP(rw, r)
		})
	}), requests
}

// dashboard is one that runs.
type dashboard struct {
	t                    *testing.T
	printed, base, token string
}

var address = regexp.MustCompile(`(http://127\.0\.0\.1:\d+)/\?token=(\w+)`)

func (w *world) dashboard(kubeconfig string, of ...string) *dashboard {
	w.t.Helper()
	d := &dashboard{t: w.t}
	out, ended := &testenv.Buffer{}, make(chan int, 1)
	ctx, stop := context.WithCancel(w.t.Context())
	go func() {
		ended <- cli.Run(ctx, command.Environment{
			Args: append([]string{"spillway", "dashboard", "--port", "0", "--kubeconfig", kubeconfig}, of...), Out: out, Err: out, Lookup: os.LookupEnv, Now: time.Now,
		})
	}()
	w.t.Cleanup(func() {
		stop()
		if code := <-ended; code != 0 {
			w.t.Errorf("exit code %d: %s", code, out)
		}
	})
	testenv.Eventually(w.t, func(context.Context) error {
		found := address.FindStringSubmatch(out.String())
		if found == nil {
			return fmt.Errorf("no address in %q", out)
		}
		d.printed, d.base, d.token = found[0], found[1], found[2]
		return nil
	})
	return d
}

func (d *dashboard) get(ctx context.Context, path string) *http.Response {
	r, err := http.NewRequestWithContext(ctx, http.MethodGet, d.base+path, http.NoBody)
	if err != nil {
		d.t.Fatal(err)
	}
	r.Header.Set("Authorization", "Bearer "+d.token)
	answer, err := http.DefaultClient.Do(r)
	if err != nil {
		d.t.Fatal(err)
	}
	if answer.StatusCode != http.StatusOK {
		d.t.Errorf("%s: status %d", path, answer.StatusCode)
	}
	return answer
}

// read reads a page to its end.
func (d *dashboard) read(path string) string {
	answer := d.get(d.t.Context(), path)
	defer answer.Body.Close()
	text, err := io.ReadAll(answer.Body)
	if err != nil {
		d.t.Error(err)
	}
	return string(text)
}

var version = regexp.MustCompile(`data-version="(\d+)"`)

// fills reads the first page of a dashboard that has just begun, and again whenever it says that
// something has changed, and returns how long it took to be answered, to name workloads, and to show
// all.
func (d *dashboard) fills() (first, named, whole time.Duration) {
	began := time.Now()
	page := d.read("/")
	first = time.Since(began)
	events := d.get(d.t.Context(), "/live?version="+version.FindStringSubmatch(page)[1])
	defer events.Body.Close()
	for lines := bufio.NewScanner(events.Body); ; page = d.read("/") {
		if named == 0 && strings.Contains(page, "/why/deployment") {
			named = time.Since(began)
		}
		if !strings.Contains(page, "Still reading") {
			return first, named, time.Since(began)
		}
		for lines.Scan() && lines.Text() != "event: changed" {
		}
	}
}

// change is something that is done, and what a page shows that shows it.
type change struct {
	do    func()
	shows string
	at    time.Time
}

// follow has viewers read the page again whenever it says that something has changed, and
// returns how long each change took to be on their pages, in order.
func (d *dashboard) follow(all []change) []time.Duration {
	var (
		following sync.WaitGroup
		mu        sync.Mutex
		took      []time.Duration
		last      atomic.Pointer[change]
	)
	ctx, leave := context.WithCancel(d.t.Context())
	shown := make(chan struct{}, viewers)
	for range viewers {
		events := d.get(ctx, "/live")
		following.Go(func() {
			defer events.Body.Close()
			var seen *change
			for lines := bufio.NewScanner(events.Body); lines.Scan(); {
				if lines.Text() != "event: changed" {
					continue
				}
				if c, page := last.Load(), d.read("/"); c != nil && c != seen && strings.Contains(page, c.shows) {
					seen = c
					mu.Lock()
					took = append(took, time.Since(c.at))
					mu.Unlock()
					shown <- struct{}{}
				}
			}
		})
	}
	for i := range all {
		<-clock.RealClock{}.After(apart)
		c := &all[i]
		c.at = time.Now()
		last.Store(c)
		c.do()
		for range viewers {
			<-shown
		}
	}
	leave()
	following.Wait()
	slices.Sort(took)
	return took
}

func percentiles(sorted []time.Duration) string {
	return fmt.Sprintf("%.3f s; %.3f s", sorted[len(sorted)/2].Seconds(), sorted[len(sorted)*9/10].Seconds())
}

// processorTime is what this process has spent.
func processorTime(t *testing.T) time.Duration {
	t.Helper()
	var u syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &u); err != nil {
		t.Fatal(err)
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}

// workloadChanges record that one workload after the other is paused, from one on.
func (w *world) workloadChanges(from int) []change {
	all := make([]change, changes)
	for i := range all {
		name := fmt.Sprintf("of-%d-%d", seen.workloads, from+i)
		all[i].shows = "Deployment " + name + " is paused"
		all[i].do = func() { w.pause(name) }
	}
	return all
}

// moduleChanges record that the module on all clusters waits for something else.
func (w *world) moduleChanges() []change {
	all := make([]change, changes)
	for i := range all {
		why := fmt.Sprintf("change %d is paused", i)
		all[i].shows = "is waiting: " + why
		all[i].do = func() {
			module := &fleetv1.Module{}
			if err := w.client.Get(w.t.Context(), client.ObjectKey{Namespace: w.namespace, Name: w.module(seen)}, module); err != nil {
				w.t.Error(err)
			}
			w.recordModule(module, seen.clusters, why)
		}
	}
	return all
}

// paint says when a browser first shows something, where there is one.
func (d *dashboard) paint() {
	script := filepath.Join("..", "..", "site", "dashboard", "paint.mjs")
	if _, err := os.Stat(filepath.Join("..", "..", "site", "node_modules", "puppeteer-core")); err != nil {
		return
	}
	out, err := exec.CommandContext(d.t.Context(), "node", script, d.printed, "/").CombinedOutput()
	if err != nil {
		d.t.Errorf("%v: %s", err, out)
		return
	}
	ms, err := strconv.Atoi(strings.TrimSpace(string(out)))
	if err != nil {
		d.t.Error(err)
	}
	fmt.Printf("| from the request to the first paint in Chromium, median of 5 (target: 1 s) | %.3f s |\n", (time.Duration(ms) * time.Millisecond).Seconds())
}

func (w *world) module(s size) string { return fmt.Sprintf("of-%d", s.workloads) }

func took(do func()) time.Duration {
	began := time.Now()
	do()
	return time.Since(began)
}

// median is how long something takes that is done several times.
func median(times int, do func()) time.Duration {
	var all []time.Duration
	for range times {
		all = append(all, took(do))
	}
	slices.Sort(all)
	return all[times/2]
}
