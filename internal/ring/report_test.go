package ring_test

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/go-logr/logr/funcr"
	"github.com/prometheus/client_golang/prometheus"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/log"

	"github.com/spillway-dev/spillway/internal/ring"
)

func counter() *prometheus.CounterVec {
	return prometheus.NewCounterVec(prometheus.CounterOpts{Name: "writes_total", Help: "Writes."}, []string{"act", "result"})
}

func TestWritesAreCountedByResult(t *testing.T) {
	t.Parallel()
	r := ring.Reporter{Writes: counter()}
	for _, err := range []error{nil, nil, aConflict(), errDenied} {
		r.Wrote(context.Background(), change("Delete", "a"), err, "zone", "b")
	}
	for result, want := range map[string]float64{"made": 2, "conflict": 1, "failed": 1} {
		if got := gathered(t, r.Writes)["Delete "+result]; got != want {
			t.Errorf("%s: %v, want %v", result, got, want)
		}
	}
}

// A write that was made is in the log, one that failed as an error, and one that lost a
// conflict only for those who want to know more.
func TestWritesAreLogged(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		err  error
		want string
	}{
		{nil, `"level"=0 "msg"="write made" "act"="Delete" "object"="a" "zone"="b"`},
		{aConflict(), `"level"=1 "msg"="conflict, observing again"`},
		{errDenied, `"msg"="write failed, retrying later" "error"="denied by a webhook"`},
	} {
		var lines []string
		sink := funcr.New(func(_, line string) { lines = append(lines, line) }, funcr.Options{Verbosity: 1})
		r := ring.Reporter{Writes: counter()}
		r.Wrote(log.IntoContext(context.Background(), sink), change("Delete", "a"), c.err, "zone", "b")
		if len(lines) != 1 || !strings.HasPrefix(lines[0], c.want) {
			t.Errorf("%v: %q", c.err, lines)
		}
	}
}

// gathered are the series of a metric, by the values of their labels.
func gathered(t *testing.T, c prometheus.Collector) map[string]float64 {
	t.Helper()
	registry := prometheus.NewRegistry()
	registry.MustRegister(c)
	families, err := registry.Gather()
	if err != nil {
		t.Fatal(err)
	}
	series := map[string]float64{}
	for _, family := range families {
		for _, m := range family.GetMetric() {
			var labels []string
			for _, l := range m.GetLabel() {
				labels = append(labels, l.GetValue())
			}
			series[strings.Join(labels, " ")] = m.GetCounter().GetValue() + m.GetGauge().GetValue()
		}
	}
	return series
}

// recorder keeps Events as text.
type recorder struct{ events []string }

// Eventf records an Event.
func (r *recorder) Eventf(_, _ runtime.Object, kind, reason, _, note string, args ...any) {
	r.events = append(r.events, kind+" "+reason+": "+fmt.Sprintf(note, args...))
}

func TestTurned(t *testing.T) {
	t.Parallel()
	fine, stuck := ring.Course{Progress: "1/2 Pods updated"}, ring.Course{Stalled: true, Message: "a failed"}
	paused := ring.Course{Paused: true, Message: "paused by b"}
	for _, c := range []struct {
		was, is ring.Course
		want    []string
	}{
		{fine, fine, nil}, {stuck, stuck, nil}, {paused, paused, nil},
		{fine, stuck, []string{"Warning RolloutStuck: a failed"}},
		{stuck, fine, []string{"Normal RolloutResumed: the rollout continues: 1/2 Pods updated"}},
		{fine, paused, []string{"Normal RolloutPaused: paused by b"}},
		{paused, fine, []string{"Normal RolloutResumed: the rollout continues: 1/2 Pods updated"}},
	} {
		events := &recorder{}
		r := ring.Reporter{Events: events, Action: "Roll"}
		if r.Turned(aConfigMap("1", 1), c.was, c.is); !slices.Equal(events.events, c.want) {
			t.Errorf("%+v to %+v: %q, want %q", c.was, c.is, events.events, c.want)
		}
	}
}

func TestSaidOnce(t *testing.T) {
	t.Parallel()
	var said ring.Said
	for i, c := range []struct {
		about, sentence string
		want            bool
	}{
		{"a", "", false}, {"a", "x", true}, {"a", "x", false}, {"b", "x", true}, {"a", "y", true}, {"a", "", false}, {"a", "y", true},
	} {
		if got := said.IsNew(c.about, c.sentence); got != c.want {
			t.Errorf("%d: %q about %s is new: %v", i, c.sentence, c.about, got)
		}
	}
}

// Series that an object does not show any more end, and those of others go on.
func TestGauges(t *testing.T) {
	t.Parallel()
	vec := prometheus.NewGaugeVec(prometheus.GaugeOpts{Name: "g", Help: "G."}, []string{"object", "state"})
	var a, b ring.Gauges
	of := func(object, state string) ring.Series { return ring.SeriesOf(vec, object, state) }
	a.Show(map[ring.Series]float64{of("a", "ready"): 1, of("a", ""): 2})
	b.Show(map[ring.Series]float64{of("b", "ready"): 3})
	a.Show(map[ring.Series]float64{of("a", "ready"): 4})
	if got := gathered(t, vec); !maps.Equal(got, map[string]float64{"a ready": 4, "b ready": 3}) {
		t.Errorf("series: %v", got)
	}
	a.Show(nil)
	if got := gathered(t, vec); !maps.Equal(got, map[string]float64{"b ready": 3}) {
		t.Errorf("series of an object that is gone: %v", got)
	}
}
