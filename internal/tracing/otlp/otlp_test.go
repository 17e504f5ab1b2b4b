package otlp_test

import (
	"context"
	"fmt"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/go-logr/logr"

	"github.com/spillway-dev/spillway/internal/lab/testenv/traced"
	"github.com/spillway-dev/spillway/internal/tracing/identity"
	"github.com/spillway-dev/spillway/internal/tracing/otlp"
	"github.com/spillway-dev/spillway/internal/tracing/span"
)

var noon = time.Date(2026, 5, 4, 12, 0, 0, 0, time.UTC)

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

// TestEnvironment checks what the variables of OpenTelemetry mean.
func TestEnvironment(t *testing.T) {
	t.Parallel()
	const endpoint = "OTEL_EXPORTER_OTLP_ENDPOINT=http://collector:4318"
	for text, want := range map[string]string{
		"":                                    "off",
		endpoint:                              "http://collector:4318/v1/traces spillway map[] 10s false",
		endpoint + "/ OTEL_SERVICE_NAME=boss": "http://collector:4318/v1/traces boss map[] 10s false",
		endpoint + " OTEL_RESOURCE_ATTRIBUTES=service.name=other,a=b":                                         "http://collector:4318/v1/traces other map[] 10s false",
		endpoint + " OTEL_EXPORTER_OTLP_TRACES_ENDPOINT=https://other/x":                                      "https://other/x spillway map[] 10s false",
		endpoint + " OTEL_EXPORTER_OTLP_HEADERS=authorization=Bearer%20x,a=b OTEL_EXPORTER_OTLP_TIMEOUT=1500": "http://collector:4318/v1/traces spillway map[A:[b] Authorization:[Bearer x]] 1.5s false",
		endpoint + " OTEL_EXPORTER_OTLP_COMPRESSION=gzip OTEL_EXPORTER_OTLP_PROTOCOL=http/protobuf":           "http://collector:4318/v1/traces spillway map[] 10s true",
		endpoint + " OTEL_SDK_DISABLED=true":                                                                  "off",
		endpoint + " OTEL_TRACES_EXPORTER=none":                                                               "off",
		endpoint + " OTEL_EXPORTER_OTLP_PROTOCOL=grpc":                                                        `OTEL_EXPORTER_OTLP_PROTOCOL: "grpc" is not supported; use http/protobuf, whose port is 4318 by default`,
		"OTEL_EXPORTER_OTLP_ENDPOINT=collector:4317":                                                          "OTEL_EXPORTER_OTLP_ENDPOINT: not a valid http or https URL",
		endpoint + " OTEL_EXPORTER_OTLP_HEADERS=secret":                                                       "OTEL_EXPORTER_OTLP_HEADERS: not of the form name=value,name=value",
		endpoint + " OTEL_EXPORTER_OTLP_TIMEOUT=soon":                                                         `OTEL_EXPORTER_OTLP_TIMEOUT: "soon" is not a positive number of milliseconds`,
		endpoint + " OTEL_EXPORTER_OTLP_CERTIFICATE=/none":                                                    "OTEL_EXPORTER_OTLP_CERTIFICATE: no certificate in /none",
	} {
		s, err := otlp.FromEnvironment(variables(strings.Fields(text)...))
		got := "off"
		switch {
		case err != nil:
			got, _, _ = strings.Cut(err.Error(), "\n")
		case s != nil:
			got = fmt.Sprint(s.URL, " ", s.Resource["service.name"], " ", s.Header, " ", s.Timeout, " ", s.Gzip)
		}
		if got != want {
			t.Errorf("%s: %s, want %s", text, got, want)
		}
	}
}

// spans are some of a trace.
func spans(n int) []span.Span {
	trace := identity.Trace("u1", "3", noon)
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

// start runs an exporter, and returns how to stop it.
func start(t *testing.T, s *otlp.Settings) (e *otlp.Exporter, stop func()) {
	t.Helper()
	e = otlp.New(s, logr.Discard())
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan struct{})
	go func() {
		defer close(done)
		if err := e.Run(ctx); err != nil {
			t.Error(err)
		}
	}()
	return e, func() { cancel(); <-done }
}

// TestReceived checks that a receiver decodes what is sent, and that what is queued is sent
// before the end.
func TestReceived(t *testing.T) {
	t.Parallel()
	r := traced.New(t)
	e, stop := start(t, r.Settings())
	e.Write(spans(3)...)
	stop()
	want := []string{"Zone 0 > Zone 1: Complete why", "Zone 0 > Zone 2: Complete why", "Zone 0: Failed why (error)"}
	if got := r.Spans(identity.Trace("u1", "3", noon)); !slices.Equal(got, want) || r.Service() != "spillway" {
		t.Errorf("%q of %s", got, r.Service())
	}
	if took := r.Took("Zone 1"); !slices.Equal(took, []time.Duration{time.Minute}) {
		t.Errorf("it took %s", took)
	}
}

// TestReceiverFails checks that a request is repeated that the receiver may accept later, and no
// other.
func TestReceiverFails(t *testing.T) {
	t.Parallel()
	for first, want := range map[int]int32{http.StatusServiceUnavailable: 2, http.StatusBadRequest: 1, http.StatusFound: 1} {
		var asked atomic.Int32
		done := make(chan struct{}, 9)
		server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			if r.Header.Get("Content-Encoding") != "gzip" || r.Header.Get("X-Who") != "me" {
				t.Errorf("headers %q", r.Header)
			}
			if asked.Add(1) == 1 {
				w.Header().Set("Location", "/elsewhere")
				w.WriteHeader(first)
			}
			done <- struct{}{}
		}))
		t.Cleanup(server.Close)
		s, err := otlp.FromEnvironment(variables("OTEL_EXPORTER_OTLP_ENDPOINT="+server.URL, "OTEL_EXPORTER_OTLP_HEADERS=x-who=me", "OTEL_EXPORTER_OTLP_COMPRESSION=gzip"))
		if err != nil {
			t.Fatal(err)
		}
		e, stop := start(t, s)
		e.Write(spans(1)...)
		for range want {
			<-done
		}
		e.Write(spans(1)...) // it is sent once the first one is done with
		<-done
		stop()
		if n := asked.Load(); n < want+1 || n > want+2 { // the last one may be cut off by the stop, and repeated
			t.Errorf("after %d: %d requests", first, n)
		}
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
	s, err := otlp.FromEnvironment(variables("OTEL_EXPORTER_OTLP_ENDPOINT=" + server.URL))
	if err != nil {
		t.Fatal(err)
	}
	e, stop := start(t, s)
	e.Write(spans(10000)...)
	stop()
}
