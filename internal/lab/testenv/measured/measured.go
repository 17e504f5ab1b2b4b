// Package measured is a service that the gates of a test look at: it answers queries as the HTTP
// API of Prometheus does, and remembers them.
package measured

import (
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/spillway-dev/spillway/api/spillway/v1alpha1"
	"github.com/spillway-dev/spillway/internal/lab/testenv"
	"github.com/spillway-dev/spillway/internal/lab/testenv/fault"
	"github.com/spillway-dev/spillway/internal/manager"
	"github.com/spillway-dev/spillway/internal/outbound"
)

// Fine and Bad are error rates on both sides of the limit of [Service.Template].
const (
	Fine = "0.001"
	Bad  = "0.2"
)

// Query is what a service was asked.
type Query struct {
	// Text is in PromQL.
	Text string
	// Ran is what ran then, as the test says.
	Ran string
}

// Service answers queries.
type Service struct {
	// URL is its address.
	URL string
	// Runs says what runs at the moment, nil if the test does not care.
	Runs func() string

	mu    sync.Mutex
	rates map[string]string
	asked []Query
	// by is through what the manager that asks reaches its API server, nil if that is not known; managers is how many
	// have asked.
	by       *fault.Injector
	managers int
}

// New starts a service whose error rate is fine.
func New(t testing.TB) *Service {
	t.Helper()
	s := &Service{rates: map[string]string{}}
	server := httptest.NewServer(s)
	t.Cleanup(server.Close)
	s.URL = server.URL
	return s
}

// ServeHTTP implements [http.Handler].
func (s *Service) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	ran := ""
	if s.Runs != nil {
		ran = s.Runs()
	}
	w.Header().Set("Content-Type", "application/json")
	rate := s.answer(Query{Text: r.FormValue("query"), Ran: ran})
	_, _ = io.WriteString(w, `{"status":"success","data":{"resultType":"vector","result":[{"metric":{},"value":[0,"`+rate+`"]}]}}`)
}

func (s *Service) answer(q Query) string {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.by == nil || !s.by.HasStopped() {
		s.asked = append(s.asked, q)
	}
	for of, rate := range s.rates {
		if strings.Contains(q.Text, of) {
			return rate
		}
	}
	return Fine
}

// Says sets the error rate of what a query names, such as a stage.
func (s *Service) Says(of, rate string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.rates[of] = rate
}

// Asked are the queries so far that name something.
func (s *Service) Asked(of string) []Query {
	s.mu.Lock()
	defer s.mu.Unlock()
	var found []Query
	for _, q := range s.asked {
		if strings.Contains(q.Text, of) {
			found = append(found, q)
		}
	}
	return found
}

// Reached has a manager measure gates, at the servers of a test.
func Reached(t testing.TB) func(*manager.Options) {
	t.Helper()
	hosts, err := outbound.ParseHosts([]string{"127.0.0.1"})
	if err != nil {
		t.Fatal(err)
	}
	return func(o *manager.Options) { o.Gates.Off, o.Gates.Hosts = false, hosts }
}

// ReachedBy is [Reached] for the manager that an injector stops. From its stop until another one
// begins, what is asked is not counted: the manager would have gone, and the one of a test tries
// again until the test has noticed.
func (s *Service) ReachedBy(t testing.TB, i *fault.Injector) func(*manager.Options) {
	t.Helper()
	s.mu.Lock()
	defer s.mu.Unlock()
	s.by = i
	s.managers++
	return Reached(t)
}

// most is how often may be asked for so many measurements: once more by each manager that follows one which has stopped,
// and twice for each.
func (s *Service) most(measurements int) int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return measurements + min(measurements, max(1, s.managers-1))
}

// Template is a GateTemplate that asks once for the error rate of a stage.
func (s *Service) Template(namespace, name string) *v1alpha1.GateTemplate {
	return &v1alpha1.GateTemplate{
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name},
		Spec: v1alpha1.GateTemplateSpec{Prometheus: &v1alpha1.PrometheusGate{
			Address: s.URL, Query: `sum(rate(errors{stage="{{ .stage }}", revision="{{ .revision }}"}[1m]))`, Condition: "value < 0.01",
		}},
	}
}

// window is the time between two measurements of [Service.TwoWindows], the shortest that the
// kind allows.
const window = 5 * time.Second

// TwoWindows is a [Service.Template] that passes after two good measurements, and is refused
// after two bad ones.
func (s *Service) TwoWindows(namespace, name string) *v1alpha1.GateTemplate {
	two, one := int32(2), int32(1)
	t := s.Template(namespace, name)
	t.Spec.Interval, t.Spec.Count, t.Spec.FailureLimit = &metav1.Duration{Duration: window}, &two, &one
	return t
}

// EachStop tells a story of [Service.TwoWindows] by managers each of which stops at the first write of its gate that it
// can, of which there are exactly so many: after those of one that passes, and before those of one that is refused; both
// ways where tests run at their whole size.
func EachStop(t *testing.T, writes int, story func(t *testing.T, begin fault.Begin, rate string)) {
	t.Helper()
	eachStop(t, story, func(_ string, n int) error {
		if n != writes {
			return fmt.Errorf("%d writes of the gate were made, want %d", n, writes)
		}
		return nil
	})
}

// EachStopDuring is EachStop for a story of [Service.Throughout]. As many writes as given are made until its gate was
// measured once, by which it may be refused; one that passes is then told of the end of its stage, and measured again.
func EachStopDuring(t *testing.T, until int, story func(t *testing.T, begin fault.Begin, rate string)) {
	t.Helper()
	eachStop(t, story, func(rate string, n int) error {
		if least := map[string]int{Fine: until + 2, Bad: until}[rate]; n < least {
			return fmt.Errorf("%d writes of the gate were made, want at least %d", n, least)
		}
		return nil
	})
}

func eachStop(t *testing.T, story func(t *testing.T, begin fault.Begin, rate string), check func(rate string, writes int) error) {
	t.Helper()
	ofGates := func(r fault.Request) bool { return r.Resource == "rolloutgates" }
	tell := func(when fault.When, rate string) {
		t.Run(fmt.Sprintf("%s each write of a gate, error rate %s", when, rate), func(t *testing.T) {
			if err := check(rate, fault.Relay(when, ofGates, func(begin fault.Begin) { story(t, begin, rate) })); err != nil {
				t.Error(err)
			}
		})
	}
	for _, when := range []fault.When{fault.After, fault.Before}[:testenv.Size(1, 2)] {
		tell(when, Fine)
		tell(1-when, Bad)
	}
}

// CheckTwoWindows is nil if a gate of [Service.TwoWindows] was decided by two measurements with
// one result, an interval apart, and if the same ran all along. A manager that does not live to
// write a measurement makes it again.
func (s *Service) CheckTwoWindows(g *v1alpha1.RolloutGate, rate, ran string) error {
	m := g.Status.Measurement
	if m == nil || len(m.Last) != 2 || m.Errors+m.NoData != 0 {
		return fmt.Errorf("%s was measured: %+v", g.Name, m)
	}
	want := v1alpha1.VerdictPassed
	if rate == Bad {
		want = v1alpha1.VerdictRefused
	}
	if m.Verdict != want || m.Last[0].Result != m.Last[1].Result {
		return fmt.Errorf("%s is %s after %+v", g.Name, m.Verdict, m.Last)
	}
	if between := m.Last[0].At.Sub(m.Last[1].At.Time); between < window {
		return fmt.Errorf("%s was measured again after %s", g.Name, between)
	}
	asked := s.Asked(`stage="` + g.Spec.Stage + `"`)
	if len(asked) < 2 || len(asked) > s.most(2) {
		return fmt.Errorf("it was asked %v", asked)
	}
	for _, q := range asked {
		if q.Ran != ran {
			return fmt.Errorf("%q ran while %s was measured, and not %q", q.Ran, g.Name, ran)
		}
	}
	return nil
}

// Throughout is a [Service.Template] that asks again and again while a stage rolls.
func (s *Service) Throughout(namespace, name string) *v1alpha1.GateTemplate {
	t := s.Template(namespace, name)
	t.Spec.Interval = &metav1.Duration{Duration: window}
	return t
}

// CheckThroughout is nil if a gate of [Service.Throughout] was refused by the first measurement,
// or has passed by one after the end of its stage; if measurements are an interval apart, and if
// each was asked for once, or again by the successor of a manager that did not live to write it.
func (s *Service) CheckThroughout(g *v1alpha1.RolloutGate, rate string) error {
	m := g.Status.Measurement
	if m == nil || m.Errors+m.NoData != 0 || len(m.Last) == 0 {
		return fmt.Errorf("%s was measured: %+v", g.Name, m)
	}
	switch {
	case rate == Bad && (m.Verdict != v1alpha1.VerdictRefused || len(m.Last) != 1):
		return fmt.Errorf("%s is %q after %+v", g.Name, m.Verdict, m.Last)
	case rate == Fine && (m.Verdict != v1alpha1.VerdictPassed || g.Spec.EndedAt == nil || m.Last[0].At.Before(g.Spec.EndedAt)):
		return fmt.Errorf("%s is %q after %+v, its stage has ended at %s", g.Name, m.Verdict, m.Last, g.Spec.EndedAt)
	}
	for i := 1; i < len(m.Last); i++ {
		if between := m.Last[i-1].At.Sub(m.Last[i].At.Time); between < window {
			return fmt.Errorf("%s was measured again after %s", g.Name, between)
		}
	}
	counted := int(m.Succeeded + m.Failed)
	if asked := len(s.Asked(`stage="` + g.Spec.Stage + `", revision="` + g.Spec.Revision + `"`)); asked < counted || asked > s.most(counted) {
		return fmt.Errorf("it was asked %d times, and %d counted", asked, counted)
	}
	return nil
}
