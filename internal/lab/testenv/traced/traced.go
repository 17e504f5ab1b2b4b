// Package traced is a receiver of OTLP for tests. It decodes requests with the messages of
// OpenTelemetry's own protocol.
package traced

import (
	"context"
	"encoding/hex"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	collector "go.opentelemetry.io/proto/otlp/collector/trace/v1"
	trace "go.opentelemetry.io/proto/otlp/trace/v1"
	"google.golang.org/protobuf/proto"

	"github.com/spillway-dev/spillway/internal/lab/testenv"
)

// Receiver receives spans.
type Receiver struct {
	t   *testing.T
	url string

	mu    sync.Mutex
	spans []*trace.Span
	// Service is the name in the resource that was sent last.
	service string
}

// New serves a receiver until the test ends.
func New(t *testing.T) *Receiver {
	t.Helper()
	r := &Receiver{t: t}
	server := httptest.NewServer(r)
	t.Cleanup(server.Close)
	r.url = server.URL
	_ = os.Setenv("OTEL_BSP_SCHEDULE_DELAY", "100") // for all tests of the process: none waits for a batch to fill
	return r
}

// ServeHTTP implements [http.Handler].
func (r *Receiver) ServeHTTP(w http.ResponseWriter, req *http.Request) {
	body, err := io.ReadAll(req.Body)
	request := &collector.ExportTraceServiceRequest{}
	if err == nil {
		err = proto.UnmarshalOptions{}.Unmarshal(body, request)
	}
	if err != nil || req.URL.Path != "/v1/traces" || req.Header.Get("Content-Type") != "application/x-protobuf" || len(request.ProtoReflect().GetUnknown()) > 0 {
		r.t.Errorf("a request that is no OTLP: %s %q, %v", req.URL, req.Header, err)
		w.WriteHeader(http.StatusBadRequest)
		return
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, of := range request.GetResourceSpans() {
		for _, a := range of.GetResource().GetAttributes() {
			if a.GetKey() == "service.name" {
				r.service = a.GetValue().GetStringValue()
			}
		}
		for _, scope := range of.GetScopeSpans() {
			r.spans = append(r.spans, scope.GetSpans()...)
		}
	}
}

// URL is where the receiver is.
func (r *Receiver) URL() string { return r.url + "/v1/traces" }

// Service is the name of the service that sent last.
func (r *Receiver) Service() string {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.service
}

// Traces are the ids of all traces, in order.
func (r *Receiver) Traces() []string {
	var ids []string
	for _, s := range r.all() {
		ids = append(ids, hex.EncodeToString(s.GetTraceId()))
	}
	slices.Sort(ids)
	return slices.Compact(ids)
}

// Spans is a trace as lines: "parent > name: event message", each once, in order. A parent
// that was not received has no name.
func (r *Receiver) Spans(id string) []string {
	r.t.Helper()
	byID := map[string]*trace.Span{}
	for _, s := range r.all() {
		if hex.EncodeToString(s.GetTraceId()) == id {
			byID[string(s.GetSpanId())] = s
		}
	}
	var lines []string
	for _, s := range byID {
		line := lineOf(s)
		if len(s.GetParentSpanId()) > 0 {
			line = byID[string(s.GetParentSpanId())].GetName() + " > " + line
		}
		if s.GetEndTimeUnixNano() < s.GetStartTimeUnixNano() || s.GetStartTimeUnixNano() == 0 || s.GetFlags()&1 == 0 {
			r.t.Errorf("span %s: %v", line, s)
		}
		lines = append(lines, line)
	}
	slices.Sort(lines)
	return lines
}

func lineOf(s *trace.Span) string {
	parts := []string{s.GetName()}
	for _, e := range s.GetEvents() {
		part := e.GetName()
		for _, a := range e.GetAttributes() { // there is one
			part = e.GetName() + " " + a.GetValue().GetStringValue()
		}
		parts = append(parts, part)
	}
	line := strings.Join(parts, ": ")
	if s.GetStatus().GetCode() == trace.Status_STATUS_CODE_ERROR {
		line += " (error)"
	}
	return line
}

// Took is how long the spans with a name took.
func (r *Receiver) Took(name string) (took []time.Duration) {
	for _, s := range r.all() {
		if s.GetName() == name {
			took = append(took, time.Duration(s.GetEndTimeUnixNano()-s.GetStartTimeUnixNano()))
		}
	}
	return took
}

// Twice are the spans that came more than once and were not the same each time.
func (r *Receiver) Twice() []string {
	seen, twice := map[string]*trace.Span{}, []string{}
	for _, s := range r.all() {
		key := string(s.GetTraceId()) + string(s.GetSpanId())
		if known := seen[key]; known != nil && !proto.Equal(known, s) {
			twice = append(twice, fmt.Sprintf("%s and %s", known, s))
		}
		seen[key] = s
	}
	return twice
}

// Has is why the receiver does not have these lines of a trace, each by its beginning.
func (r *Receiver) Has(id string, want ...string) error {
	r.t.Helper()
	got := r.Spans(id)
	for _, line := range want {
		if !slices.ContainsFunc(got, func(g string) bool { return strings.HasPrefix(g, line) }) {
			return fmt.Errorf("no span %q in\n%s", line, strings.Join(got, "\n"))
		}
	}
	return nil
}

// Trace waits for a trace that has these lines, each by its beginning, and returns its id.
func (r *Receiver) Trace(want ...string) (id string) {
	r.t.Helper()
	testenv.Eventually(r.t, func(context.Context) error {
		var said []string
		for _, id = range r.Traces() {
			err := r.Has(id, want...)
			if err == nil {
				return nil
			}
			said = append(said, err.Error())
		}
		return fmt.Errorf("no trace has %q: %s", want, strings.Join(said, "\n"))
	})
	return id
}

func (r *Receiver) all() []*trace.Span {
	r.mu.Lock()
	defer r.mu.Unlock()
	return slices.Clone(r.spans)
}
