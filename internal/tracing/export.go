package tracing

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"time"

	"github.com/go-logr/logr"
	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/codes"
	"go.opentelemetry.io/otel/exporters/otlp/otlptrace/otlptracehttp"
	"go.opentelemetry.io/otel/sdk/resource"
	sdk "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/trace"

	"github.com/spillway-dev/spillway/internal/ring"
	"github.com/spillway-dev/spillway/internal/tracing/span"
)

// stopTimeout bounds how long what is queued is sent, once the manager is to stop.
const stopTimeout = time.Second

// exporter sends spans by the SDK of OpenTelemetry.
type exporter struct {
	provider *sdk.TracerProvider
	tracer   trace.Tracer
}

// newExporter returns an exporter whose receiver is at a URL; the environment says the rest.
func newExporter(ctx context.Context, receiver string, log logr.Logger) (*exporter, error) {
	to, err := otlptracehttp.New(ctx, otlptracehttp.WithEndpointURL(receiver), otlptracehttp.WithProxy(proxy))
	if err != nil {
		return nil, fmt.Errorf("send traces: %w", err)
	}
	// What is wrong in the environment is logged by WithResource, which reads it as well.
	program, _ := resource.New(ctx, resource.WithTelemetrySDK(), resource.WithAttributes(attribute.String("service.name", "spillway")), resource.WithFromEnv())
	e := &exporter{provider: sdk.NewTracerProvider(sdk.WithBatcher(&persistent{to, log}), sdk.WithIDGenerator(derived{}), sdk.WithResource(program))}
	e.tracer = e.provider.Tracer("spillway.dev")
	return e, nil
}

var errRedirect = errors.New("the receiver redirects to another address")

// proxy returns the proxy of the environment. It refuses to follow a redirect, because headers
// may be credentials.
func proxy(r *http.Request) (*url.URL, error) {
	if r.Response != nil {
		return nil, errRedirect
	}
	return http.ProxyFromEnvironment(r) //nolint:wrapcheck // it says it all
}

// run sends what is queued until the context ends, and then what is left.
func (e *exporter) run(ctx context.Context) error {
	<-ctx.Done()
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), stopTimeout)
	defer cancel()
	_ = e.provider.Shutdown(ctx) // what is lost is logged
	return nil
}

// write queues spans. It never waits: when the queue is full, new spans are dropped.
func (e *exporter) write(ctx context.Context, spans ...span.Span) {
	for i := range spans {
		e.queue(ctx, &spans[i])
	}
}

func (e *exporter) queue(ctx context.Context, s *span.Span) {
	if s.Parent != "" { // this parent is not sent: it tells the sampler what is decided for the root
		ctx, _ = e.tracer.Start(withID(ctx, s.Trace, s.Parent), "") //nolint:spancheck // it does not end
	}
	_, sent := e.tracer.Start(withID(ctx, s.Trace, s.ID), s.Title(), trace.WithTimestamp(s.Start), trace.WithAttributes(attributes(
		"spillway.ring", s.Object.Ring, "spillway.kind", s.Object.Kind, "spillway.name", s.Object.Name, "spillway.rollout", s.Object.Rollout,
		"k8s.namespace.name", s.Object.Namespace, "spillway.unit", s.Kind, "spillway.outcome", s.Outcome)...))
	if reason := s.Reason(); reason != "" {
		sent.AddEvent(reason, trace.WithTimestamp(s.End), trace.WithAttributes(attributes("message", s.Message)...))
	}
	if s.IsError() {
		sent.SetStatus(codes.Error, s.Message)
	}
	sent.End(trace.WithTimestamp(s.End))
}

// attributes are those that have a value, of names and values in turn.
func attributes(pairs ...string) []attribute.KeyValue {
	var all []attribute.KeyValue
	for pair := range slices.Chunk(pairs, 2) {
		if name, value := pair[0], pair[1]; value != "" {
			all = append(all, attribute.String(name, value))
		}
	}
	return all
}

// derived gives spans the ids of their context, which follow from states.
type derived struct{}

type idKey struct{}

func withID(ctx context.Context, ofTrace, ofSpan string) context.Context {
	var id trace.SpanContextConfig
	id.TraceID, _ = trace.TraceIDFromHex(ofTrace)
	id.SpanID, _ = trace.SpanIDFromHex(ofSpan)
	return context.WithValue(ctx, idKey{}, id)
}

// NewIDs implements [sdk.IDGenerator].
func (derived) NewIDs(ctx context.Context) (trace.TraceID, trace.SpanID) {
	id, _ := ctx.Value(idKey{}).(trace.SpanContextConfig)
	return id.TraceID, id.SpanID
}

// NewSpanID implements [sdk.IDGenerator].
func (derived) NewSpanID(ctx context.Context, _ trace.TraceID) trace.SpanID {
	id, _ := ctx.Value(idKey{}).(trace.SpanContextConfig)
	return id.SpanID
}

// persistent makes a request again that no receiver has answered, which the SDK does not, and
// logs what is lost.
type persistent struct {
	sdk.SpanExporter

	log logr.Logger
}

// ExportSpans implements [sdk.SpanExporter]. The context ends after the timeout of an export.
func (p *persistent) ExportSpans(ctx context.Context, spans []sdk.ReadOnlySpan) error {
	err := p.SpanExporter.ExportSpans(ctx, spans)
	for try := 0; isUnanswered(err) && ctx.Err() == nil; try++ {
		pause, cancel := context.WithTimeout(ctx, ring.Backoff{First: time.Second, Most: 30 * time.Second}.After(try))
		<-pause.Done()
		cancel()
		err = p.SpanExporter.ExportSpans(ctx, spans)
	}
	if err != nil {
		p.log.Error(err, "spans of traces dropped", "spans", len(spans))
	}
	return nil
}

func isUnanswered(err error) bool {
	_, isOfRequest := errors.AsType[*url.Error](err)
	return isOfRequest && !errors.Is(err, errRedirect) && !errors.Is(err, context.Canceled)
}
