package zones_test

import (
	"context"
	"fmt"
	"maps"
	"net/http"
	"net/http/httptest"
	"slices"
	"sync"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/spillway-dev/spillway/api/spillway/v1alpha1"
	"github.com/spillway-dev/spillway/internal/kube"
	"github.com/spillway-dev/spillway/internal/lab/testenv"
	"github.com/spillway-dev/spillway/internal/lab/testenv/measured"
)

const (
	// gateInterval is the shortest that a GateTemplate may have.
	gateInterval = 5 * time.Second
	// gatesAtATime is how many gates of a namespace are measured at the same time.
	gatesAtATime = 2
)

// TestManyGates rolls a group while no gate is measured, and while many are: how often each is
// measured is bounded by its interval, how many are at the same time by the namespace, and a
// measurement is one write. The group is not much slower.
func TestManyGates(t *testing.T) {
	w, s := newWorld(t), newSource(t)
	w.group("ingester", appsv1.OnDeleteStatefulSetStrategyType, podsPerZone)
	w.manage(measured.Reached(t))
	w.settled("", len(theZones)*podsPerZone, "ingester")
	w.look.guard(podsPerZone, 1)
	without := w.idles("without")

	w.counted.Reset()
	began := time.Now()
	w.gates(s.url, manyGates)
	testenv.Eventually(t, func(context.Context) error {
		if n := len(s.counts()); n != manyGates {
			return fmt.Errorf("%d gates were measured", n)
		}
		return nil
	})
	all := time.Since(began)
	with := w.idles("with")
	span, asked := time.Since(began), 0
	for gate, n := range s.counts() {
		asked += n
		if most := int(span/gateInterval) + 1; n > most {
			t.Errorf("%s was measured %d times in %s, want at most %d", gate, n, span, most)
		}
	}
	writes := 0
	for _, r := range w.counted.Writes() {
		if r.Resource == "rolloutgates" {
			writes++
		}
	}
	if writes > asked {
		t.Errorf("%d writes of gates for %d measurements", writes, asked)
	}
	if most := s.most(); most > gatesAtATime {
		t.Errorf("%d were measured at the same time", most)
	}
	fmt.Printf("| %d gates of a namespace, measured every %s: until each was measured once | %.1f s |\n", manyGates, gateInterval, all.Seconds())
	fmt.Printf("| requests to their source a second, at the same time | %.0f, %d |\n", float64(asked)/span.Seconds(), s.most())
	fmt.Printf("| writes a measurement | %.2f |\n", float64(writes)/float64(asked))
	fmt.Printf("| from a zone that is Ready to the first write to the next, without and with them | p50 %s and %s, ratio %.2f; p99 %s and %s |\n",
		at(without, 50), at(with, 50), at(with, 50).Seconds()/at(without, 50).Seconds(), at(without, 99), at(with, 99))
}

// idles rolls the group again and again, and says how long the ring took between two zones.
func (w *world) idles(value string) []time.Duration {
	w.t.Helper()
	var idle []time.Duration
	for i := range rollouts {
		value := fmt.Sprint(value, i)
		w.clock.reset()
		w.edit("ingester", value)
		w.settled(value, len(theZones)*podsPerZone, "ingester")
		idle = append(idle, w.idle(value)...)
	}
	slices.Sort(idle)
	return idle
}

// gates makes gates that are reached, and stay undecided as long as the test may take.
func (w *world) gates(url string, n int) {
	w.t.Helper()
	scheme, err := kube.NewScheme()
	if err != nil {
		w.t.Fatal(err)
	}
	c, err := client.New(testenv.Shared().Config(), client.Options{Scheme: scheme})
	if err != nil {
		w.t.Fatal(err)
	}
	count, now := int32(1000), metav1.NowMicro()
	objects := []client.Object{&v1alpha1.GateTemplate{
		ObjectMeta: metav1.ObjectMeta{Namespace: w.namespace, Name: "check"},
		Spec: v1alpha1.GateTemplateSpec{
			Interval: &metav1.Duration{Duration: gateInterval}, Count: &count, HTTP: &v1alpha1.HTTPGate{URL: url + "/{{ .stage }}"},
		},
	}}
	for i := range n {
		g := &v1alpha1.RolloutGate{ObjectMeta: metav1.ObjectMeta{Namespace: w.namespace, Name: fmt.Sprintf("gate-%d", i)}}
		g.Spec = v1alpha1.RolloutGateSpec{
			TargetRef: v1alpha1.TargetReference{APIVersion: "x.test/v1", Kind: "X", Name: "x"}, Revision: "v2", Stage: g.Name, Gate: "check", When: "After", ReachedAt: &now,
		}
		objects = append(objects, g)
	}
	for _, obj := range objects {
		if err := c.Create(w.t.Context(), obj); err != nil {
			w.t.Fatal(err)
		}
	}
}

// source is what gates ask; it takes a while to answer.
type source struct {
	url string

	mu          sync.Mutex
	asked       map[string]int
	busy, crowd int
}

func newSource(t *testing.T) *source {
	t.Helper()
	s := &source{asked: map[string]int{}}
	server := httptest.NewServer(s)
	t.Cleanup(server.Close)
	s.url = server.URL
	return s
}

// ServeHTTP implements [http.Handler].
func (s *source) ServeHTTP(_ http.ResponseWriter, r *http.Request) {
	s.mu.Lock()
	s.asked[r.URL.Path]++
	s.busy++
	s.crowd = max(s.crowd, s.busy)
	s.mu.Unlock()
	defer func() {
		s.mu.Lock()
		defer s.mu.Unlock()
		s.busy--
	}()
	<-time.After(5 * time.Millisecond) // as a service in the same cluster takes
}

// counts are how often each gate was measured.
func (s *source) counts() map[string]int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return maps.Clone(s.asked)
}

// most is how many were measured at the same time.
func (s *source) most() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.crowd
}
