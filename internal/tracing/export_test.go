package tracing

import (
	"context"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/go-logr/logr"

	"github.com/spillway-dev/spillway/internal/lab/testenv/traced"
	"github.com/spillway-dev/spillway/internal/tracing/identity"
	"github.com/spillway-dev/spillway/internal/tracing/span"
)

var noon = time.Date(2026, 5, 4, 12, 0, 0, 0, time.UTC)

// The tests share what the SDK reads from the environment.
func TestMain(m *testing.M) {
	_ = os.Setenv("OTEL_BSP_SCHEDULE_DELAY", "10")
	_ = os.Setenv("OTEL_EXPORTER_OTLP_HEADERS", "x-who=me%20too")
	os.Exit(m.Run())
}

func variables(pairs ...string) func(string) (string, bool) {
	return func(name string) (string, bool) {
		for _, pair := range pairs {
			if value, ok := strings.CutPrefix(pair, name+"="); ok {
				return value, true
			}
		}
		return "", false
	}
}

// TestReceiverOf checks what the variables mean that the SDK does not read, or would log.
func TestReceiverOf(t *testing.T) {
	t.Parallel()
	const endpoint = "OTEL_EXPORTER_OTLP_ENDPOINT=http://collector:4318"
	for text, want := range map[string]string{
		"":             "",
		endpoint:       "http://collector:4318/v1/traces",
		endpoint + "/": "http://collector:4318/v1/traces",
		endpoint + " OTEL_EXPORTER_OTLP_TRACES_ENDPOINT=https://other/x":             "https://other/x",
		endpoint + " OTEL_EXPORTER_OTLP_HEADERS=authorization=Bearer%20x,a=b,":       "http://collector:4318/v1/traces",
		endpoint + " OTEL_EXPORTER_OTLP_PROTOCOL=http/protobuf":                      "http://collector:4318/v1/traces",
		endpoint + " OTEL_SDK_DISABLED=true":                                         "",
		endpoint + " OTEL_TRACES_EXPORTER=none":                                      "",
		endpoint + " OTEL_EXPORTER_OTLP_PROTOCOL=grpc":                               `OTEL_EXPORTER_OTLP_PROTOCOL: "grpc" is not supported; use http/protobuf, whose port is 4318 by default`,
		"OTEL_EXPORTER_OTLP_ENDPOINT=collector:4317":                                 "OTEL_EXPORTER_OTLP_ENDPOINT: not a valid http or https URL",
		endpoint + " OTEL_EXPORTER_OTLP_TRACES_ENDPOINT=http://u:secret@other:port":  "OTEL_EXPORTER_OTLP_TRACES_ENDPOINT: not a valid http or https URL",
		endpoint + " OTEL_EXPORTER_OTLP_HEADERS=secret":                              "OTEL_EXPORTER_OTLP_HEADERS: not of the form name=value,name=value",
		endpoint + " OTEL_EXPORTER_OTLP_HEADERS=a=%zsecret":                          "OTEL_EXPORTER_OTLP_HEADERS: not of the form name=value,name=value",
		endpoint + " OTEL_EXPORTER_OTLP_TRACES_HEADERS=authorization:Bearer/secret=": "OTEL_EXPORTER_OTLP_TRACES_HEADERS: not of the form name=value,name=value",
	} {
		got, err := ReceiverOf(variables(strings.Fields(text)...))
		if err != nil {
			got += err.Error()
		}
		if got != want {
			t.Errorf("%s: %s, want %s", text, got, want)
		}
	}
}

// spans are some of a trace.
func spans(object string, n int) []span.Span {
	trace := traceOf(object)
	all := make([]span.Span, n)
	for i := range all {
		name := fmt.Sprint(i)
		all[i] = span.Span{
			Trace: trace, ID: identity.Span(trace, name), Kind: "Zone", Name: name, Start: noon, End: noon.Add(time.Minute), Outcome: "Failed", Message: "why",
			Object: span.Object{Ring: "zones", Kind: "RolloutGroup", Namespace: "shop", Name: "ingester", Rollout: "3"},
		}
		if i > 0 {
			all[i].Parent, all[i].Outcome = all[0].ID, "Complete"
		}
	}
	return all
}

func traceOf(object string) string { return identity.Trace("u1", object, noon) }

// start runs an exporter, and returns how to stop it.
func start(t *testing.T, receiver string) (write func(...span.Span), stop func()) {
	t.Helper()
	e, err := newExporter(t.Context(), receiver, logr.Discard())
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan struct{})
	go func() {
		defer close(done)
		if err := e.run(ctx); err != nil {
			t.Error(err)
		}
	}()
	return func(s ...span.Span) { e.write(ctx, s...) }, func() { cancel(); <-done }
}

// TestReceived checks that a receiver decodes what is sent, and that what is queued is sent
// before the end.
func TestReceived(t *testing.T) {
	t.Parallel()
	r := traced.New(t)
	write, stop := start(t, r.URL())
	write(spans("3", 3)...)
	stop()
	want := []string{"Zone 0 > Zone 1: Complete why", "Zone 0 > Zone 2: Complete why", "Zone 0: Failed why (error)"}
	if got := r.Spans(traceOf("3")); !slices.Equal(got, want) || r.Service() != "spillway" {
		t.Errorf("%q of %s", got, r.Service())
	}
	if took := r.Took("Zone 1"); !slices.Equal(took, []time.Duration{time.Minute}) {
		t.Errorf("it took %s", took)
	}
}

// TestEnvironment checks that the name of a service is that of the environment, and that a
// sampler decides for a whole trace, of which the root is sent last.
func TestEnvironment(t *testing.T) {
	t.Setenv("OTEL_SERVICE_NAME", "boss")
	t.Setenv("OTEL_TRACES_SAMPLER", "parentbased_traceidratio")
	t.Setenv("OTEL_TRACES_SAMPLER_ARG", "0.5")
	r := traced.New(t)
	write, stop := start(t, r.URL())
	const rollouts, parts = 50, 4
	for i := range rollouts {
		all := spans(fmt.Sprint(i), parts)
		slices.Reverse(all)
		write(all...)
	}
	stop()
	traces := r.Traces()
	for _, id := range traces {
		if got := r.Spans(id); len(got) != parts {
			t.Errorf("%q", got)
		}
	}
	if len(traces) == 0 || len(traces) == rollouts || r.Service() != "boss" {
		t.Errorf("%d of %d traces, by %s", len(traces), rollouts, r.Service())
	}
}

// TestReceiverFails checks that a request is repeated that the receiver may accept later, and no
// other, and that no other address gets it.
func TestReceiverFails(t *testing.T) {
	t.Parallel()
	const noAnswer = 0
	for first, want := range map[int]int32{noAnswer: 2, http.StatusServiceUnavailable: 2, http.StatusBadRequest: 1, http.StatusFound: 1, http.StatusTemporaryRedirect: 1} {
		t.Run(fmt.Sprint(first), func(t *testing.T) {
			t.Parallel()
			var asked atomic.Int32
			done := make(chan struct{}, 9)
			server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				if who := r.Header.Get("X-Who"); who != "me too" || r.URL.Path != "/v1/traces" {
					t.Errorf("%s with headers %q", r.URL, r.Header)
				}
				defer func() { done <- struct{}{} }()
				if asked.Add(1) > 1 {
					return
				}
				if first == noAnswer {
					panic(http.ErrAbortHandler)
				}
				w.Header().Set("Location", "/elsewhere")
				w.WriteHeader(first)
			}))
			t.Cleanup(server.Close)
			write, stop := start(t, server.URL+"/v1/traces")
			write(spans("3", 1)...)
			for range want {
				<-done
			}
			write(spans("3", 1)...) // it is sent once the first one is done with
			<-done
			stop()
			if n := asked.Load(); n < want+1 || n > want+2 { // the last one may be cut off by the stop, and repeated
				t.Errorf("%d requests", n)
			}
		})
	}
}

// TestDeadReceiver checks that one that never answers holds up neither who writes nor the end,
// and that no more is kept than fits.
func TestDeadReceiver(t *testing.T) {
	t.Parallel()
	release := make(chan struct{})
	server := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { <-release }))
	t.Cleanup(server.Close)
	t.Cleanup(func() { close(release) })
	write, stop := start(t, server.URL)
	write(spans("3", 10000)...)
	stop()
}
