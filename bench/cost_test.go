package bench_test

import (
	"context"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/spillway-dev/spillway/api/record"
	"github.com/spillway-dev/spillway/api/spillway/v1alpha1"
	"github.com/spillway-dev/spillway/internal/kube"
	"github.com/spillway-dev/spillway/internal/lab/testenv"
	"github.com/spillway-dev/spillway/internal/lab/testenv/fault"
)

// TestOneConfigMapOfManyWorkloads edits a ConfigMap that all of them use: one
// write each, one read, no list, and at most one write a second of the record; and how
// long that takes compared with a bare loop of the same patches. Then nothing is asked.
func TestOneConfigMapOfManyWorkloads(t *testing.T) {
	c, ns := recording(t), testenv.Namespace(t)
	seed(t, c, ns)
	counted, timed := fault.New(), &stopwatch{}
	manage(t, timed.wrap(counted.Wrap(testenv.Shared().Config())), options(ns))
	wait(t, c, ns, "")

	ratios, spillway, bare := edits(t, c, ns, counted, timed, checkRequests)
	fmt.Printf("| %d workloads on one ConfigMap | median of %d rounds |\n", workloads, rounds)
	fmt.Printf("| from the edit to the last write | %.2f s |\n| a bare loop of the same patches | %.2f s |\n", median(spillway), median(bare))
	fmt.Printf("| ratio (target: at most 1.2) | %.2f, of %s |\n", median(ratios), list(ratios))
	fmt.Printf("| writes, reads, lists | %d, 1, 0 |\n", workloads)
	records, seconds := timed.records()
	fmt.Printf("| writes of the record in %d rounds, in %.1f s with those of the bare loop | %d |\n", rounds, seconds, records)
	if most := rounds*recordsARound + int(seconds); records > most {
		t.Errorf("the record was written %d times in %.1f s, want at most %d", records, seconds, most)
	}
	restsAfter(t, c, ns, counted)
}

// recordsARound is how many writes of the record a round has besides one a second: the content is recorded before the first
// workload gets it, and once all have it.
const recordsARound = 3

// restsAfter fails unless nothing is asked once the record is complete, but for the roll of one more workload.
func restsAfter(t *testing.T, c client.Client, ns string, counted *fault.Injector) {
	t.Helper()
	testenv.Eventually(t, func(ctx context.Context) error {
		r := &v1alpha1.ConfigRollout{}
		err := c.Get(ctx, client.ObjectKey{Namespace: ns, Name: "configmap-app"}, r)
		if err == nil && (r.Rollout == nil || r.Rollout.FinishedAt == nil || r.Rollout.Units != record.Counts{Total: workloads, Complete: workloads}) {
			err = fmt.Errorf("it is recorded: %+v", r.Rollout)
		}
		return err
	})
	counted.Reset()
	if err := c.Create(t.Context(), deployment(ns, name("tracked", workloads), useConfigMap("app"), map[string]string{tracked: "true"})); err != nil {
		t.Fatal(err)
	}
	wait(t, c, ns, "")
	n := requests(counted)
	if delete(n, "get configmaps"); len(n) != 1 || n["patch deployments"] != 1 {
		t.Errorf("at rest one more workload costs %v", n)
	}
}

// recording is a client of a cluster in which the manager can record what it does.
func recording(t *testing.T) client.Client {
	t.Helper()
	scheme, err := kube.NewScheme()
	if err != nil {
		t.Fatal(err)
	}
	c, err := client.New(testenv.Shared().Config(), client.Options{Scheme: scheme})
	if err != nil {
		t.Fatal(err)
	}
	testenv.InstallKinds(t, c, "../charts/spillway/generated/config/*_*.yaml")
	return c
}

// edits edits the ConfigMap once a round. It returns how many seconds the writes took, and
// those of the bare loop, and the ratio of both.
func edits(t *testing.T, c client.Client, ns string, counted *fault.Injector, timed *stopwatch, check func(*testing.T, *fault.Injector)) (ratios, spillway, bare []float64) {
	t.Helper()
	for round := range rounds {
		before := oneHash(t, c, ns)
		counted.Reset()
		timed.start()
		edit(t, c, ns, "app", fmt.Sprint(round))
		waitWrites(t, counted) // without asking the API server anything
		spillway = append(spillway, timed.seconds())
		wait(t, c, ns, before)
		check(t, counted)
		bare = append(bare, bareLoop(t, c, ns, round))
		ratios = append(ratios, spillway[round]/bare[round])
	}
	return ratios, spillway, bare
}

// seed makes a ConfigMap, the workloads that use it, and as many that are not
// tracked, for the bare loop.
func seed(t *testing.T, c client.Client, ns string) {
	t.Helper()
	if err := c.Create(t.Context(), &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: ns, Name: "app"}}); err != nil {
		t.Fatal(err)
	}
	each(t, 2*workloads, func(i int) error {
		if i%2 == 0 {
			return c.Create(t.Context(), deployment(ns, name("tracked", i/2), useConfigMap("app"), map[string]string{tracked: "true"}))
		}
		return c.Create(t.Context(), deployment(ns, name("bare", i/2), useConfigMap("app"), map[string]string{"tracked": "no"}))
	})
}

// wait waits until every tracked workload has one and the same hash, another
// than before, and all is at rest.
func wait(t *testing.T, c client.Client, ns, before string) {
	t.Helper()
	testenv.Eventually(t, func(context.Context) error {
		found := hashes(atRest(t, c, ns), "tracked")
		if found[before] > 0 || len(found) != 1 {
			return fmt.Errorf("hashes: %v", found)
		}
		return nil
	})
}

// waitWrites waits until the manager has made a write for every workload.
func waitWrites(t *testing.T, counted *fault.Injector) {
	t.Helper()
	testenv.Eventually(t, func(context.Context) error {
		if n := len(counted.Writes()); n < workloads {
			return fmt.Errorf("%d writes", n)
		}
		return nil
	})
}

func oneHash(t *testing.T, c client.Client, ns string) string {
	t.Helper()
	for h := range hashes(atRest(t, c, ns), "tracked") {
		return h
	}
	return ""
}

// requests are those that were made, but for watches, Events, leases, and the look for kinds that are not installed, which
// has no resource.
func requests(counted *fault.Injector) map[string]int {
	n := map[string]int{}
	for _, r := range counted.Requests() {
		if r.Resource != "events" && r.Resource != "leases" && r.Resource != "" && r.Verb != "watch" {
			n[r.Verb+" "+r.Resource]++
		}
	}
	return n
}

// checkRequests fails unless there was one write for each workload, at most one
// read, and no list. Those of the record are counted by the second.
func checkRequests(t *testing.T, counted *fault.Injector) {
	t.Helper()
	n := requests(counted)
	delete(n, "create configrollouts")
	delete(n, "update configrollouts")
	reads := n["get configmaps"]
	delete(n, "get configmaps")
	if writes := n["patch deployments"]; writes != workloads {
		t.Errorf("%d patches for %d workloads", writes, workloads)
	}
	delete(n, "patch deployments")
	for request, times := range n {
		t.Errorf("%d times %s", times, request)
	}
	if reads > 1 {
		t.Errorf("the ConfigMap was read %d times", reads)
	}
}

// bareLoop makes the same patches to the other workloads, as many at a time, and
// returns how many seconds that took.
func bareLoop(t *testing.T, c client.Client, ns string, round int) float64 {
	t.Helper()
	bare := slices.DeleteFunc(atRest(t, c, ns), func(d appsv1.Deployment) bool { return !strings.HasPrefix(d.Name, "bare") })
	patches := make([]client.Patch, len(bare))
	for i := range bare {
		patches[i] = client.RawPatch(types.JSONPatchType, []byte(patchOf(&bare[i], round)))
	}
	started := time.Now()
	each(t, len(bare), func(i int) error {
		d := &appsv1.Deployment{ObjectMeta: metav1.ObjectMeta{Namespace: ns, Name: bare[i].Name}}
		return c.Patch(t.Context(), d, patches[i], client.FieldOwner("bare"))
	})
	return time.Since(started).Seconds()
}

// patchOf has the operations that the manager's patch has.
func patchOf(d *appsv1.Deployment, round int) string {
	template := ""
	if d.Spec.Template.Annotations == nil {
		template = `{"op":"add","path":"/spec/template/metadata/annotations","value":{}},`
	}
	return fmt.Sprintf(`[{"op":"test","path":"/metadata/uid","value":%q},{"op":"test","path":"/metadata/generation","value":%d},`+
		`{"op":"test","path":"/metadata/annotations/tracked","value":"no"},%s`+
		`{"op":"add","path":"/spec/template/metadata/annotations/spillway.dev~1config-hash","value":"%064d"},`+
		`{"op":"add","path":"/metadata/annotations/spillway.dev~1config-change","value":"{\"at\":\"2026-01-01T00:00:00.%03dZ\",\"changed\":[\"ConfigMap app: k\"]}"}]`,
		d.UID, d.Generation, template, round+1, round)
}

// TestUnusedConfig edits a ConfigMap and a Secret that no workload uses.
func TestUnusedConfig(t *testing.T) {
	c, ns := recording(t), testenv.Namespace(t)
	counted := fault.New()
	manage(t, counted.Wrap(testenv.Shared().Config()), options(ns))
	for _, cm := range []string{"app", "unused"} {
		if err := c.Create(t.Context(), &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: ns, Name: cm}}); err != nil {
			t.Fatal(err)
		}
	}
	if err := c.Create(t.Context(), deployment(ns, "tracked", useConfigMap("app"), map[string]string{tracked: "true"})); err != nil {
		t.Fatal(err)
	}
	wait(t, c, ns, "")
	counted.Reset()
	for i := range 100 {
		edit(t, c, ns, "unused", fmt.Sprint(i))
	}
	before := oneHash(t, c, ns)
	edit(t, c, ns, "app", "2") // proves that all before it was seen
	wait(t, c, ns, before)
	n := 0
	for request, times := range requests(counted) {
		if request != "create configrollouts" { // that of the roll that proves it
			n += times
		}
	}
	if n != 2 { // the read and the write of the workload that proves it
		t.Errorf("%d requests, want 2: %v", n, counted.Requests())
	}
	fmt.Printf("| requests for 100 changes of unused config | %d |\n", n-2)
}

// stopwatch takes the time from start to the response of the last patch of a
// workload.
type stopwatch struct {
	mu          sync.Mutex
	begun, last time.Time
	// written is how often a record was written since the first round began.
	first   time.Time
	written int
}

func (s *stopwatch) start() {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.begun = time.Now(); s.first.IsZero() {
		s.first, s.written = s.begun, 0
	}
}

// records is how often a record was written since the first start, and how many seconds ago that was.
func (s *stopwatch) records() (written int, seconds float64) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.written, time.Since(s.first).Seconds()
}

func (s *stopwatch) seconds() float64 {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.last.Sub(s.begun).Seconds()
}

func (s *stopwatch) wrap(cfg *rest.Config) *rest.Config {
	cfg.Wrap(func(next http.RoundTripper) http.RoundTripper {
		return roundTripper(func(req *http.Request) (*http.Response, error) {
			res, err := next.RoundTrip(req)
			if req.Method == http.MethodPatch && strings.Contains(req.URL.Path, "/deployments/") {
				s.mu.Lock()
				s.last = time.Now()
				s.mu.Unlock()
			}
			if strings.Contains(req.URL.Path, "/configrollouts") && (req.Method == http.MethodPost || req.Method == http.MethodPut) {
				s.mu.Lock()
				s.written++
				s.mu.Unlock()
			}
			return res, err
		})
	})
	return cfg
}

type roundTripper func(*http.Request) (*http.Response, error)

func (f roundTripper) RoundTrip(r *http.Request) (*http.Response, error) { return f(r) }

func median(values []float64) float64 {
	sorted := slices.Sorted(slices.Values(values))
	return sorted[len(sorted)/2]
}

func list(values []float64) string {
	parts := make([]string, 0, len(values))
	for _, v := range values {
		parts = append(parts, fmt.Sprintf("%.2f", v))
	}
	return strings.Join(parts, " ")
}
