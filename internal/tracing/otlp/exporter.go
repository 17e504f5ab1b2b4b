package otlp

import (
	"bytes"
	"compress/gzip"
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"net/http"
	"slices"
	"sync/atomic"
	"time"

	"github.com/go-logr/logr"

	"github.com/spillway-dev/spillway/internal/ring"
	"github.com/spillway-dev/spillway/internal/tracing/span"
)

const (
	// mostQueued bounds how many spans are not sent yet, and batch how many a request has.
	mostQueued = 2048
	batch      = 512
	// mostTries is how often a request is made that fails.
	mostTries = 5
	// stopTimeout bounds the last request, once the manager is to stop.
	stopTimeout = time.Second
	// answerLength bounds what is read of an answer.
	answerLength = 4096
)

// Exporter sends spans.
type Exporter struct {
	settings *Settings
	client   *http.Client
	log      logr.Logger
	queue    chan span.Span
	dropped  atomic.Int64
}

// New returns an Exporter that sends nothing until it runs.
func New(s *Settings, log logr.Logger) *Exporter {
	transport := &http.Transport{
		Proxy: http.ProxyFromEnvironment, ForceAttemptHTTP2: true, MaxIdleConns: 1, IdleConnTimeout: time.Minute,
		TLSClientConfig: &tls.Config{RootCAs: s.Roots, Certificates: s.Certificates, MinVersion: tls.VersionTLS12},
	}
	return &Exporter{settings: s, log: log, queue: make(chan span.Span, mostQueued), client: &http.Client{
		Transport: transport, CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}}
}

// Write queues spans. It never waits: of a queue that is full, the new span is dropped.
func (e *Exporter) Write(spans ...span.Span) {
	for i := range spans {
		select {
		case e.queue <- spans[i]:
		default:
			e.dropped.Add(1)
		}
	}
}

// Run sends what is queued until the context ends, and then tries once what is left.
func (e *Exporter) Run(ctx context.Context) error {
	for {
		spans := e.next(ctx)
		if len(spans) == 0 {
			return nil
		}
		err := e.deliver(ctx, spans)
		if err != nil {
			e.dropped.Add(int64(len(spans)))
		}
		if n := e.dropped.Swap(0); n > 0 {
			e.log.Error(err, "spans of traces dropped", "spans", n)
		}
		if err != nil && ctx.Err() != nil {
			return nil //nolint:nilerr // there is no time for more
		}
	}
}

// next waits for spans, and returns those that there are. Once the context has ended it waits
// no longer.
func (e *Exporter) next(ctx context.Context) (spans []span.Span) {
	select {
	case s := <-e.queue:
		spans = append(spans, s)
	case <-ctx.Done():
	}
	for len(spans) < batch {
		select {
		case s := <-e.queue:
			spans = append(spans, s)
		default:
			return spans
		}
	}
	return spans
}

// errRejected is why the same request is not made again.
var errRejected = errors.New("rejected by the receiver")

// deliver makes a request until it succeeds.
func (e *Exporter) deliver(ctx context.Context, spans []span.Span) error {
	body, err := e.body(spans)
	if err != nil {
		return err
	}
	for try := 0; ; try++ {
		err = e.post(ctx, body)
		if err == nil || errors.Is(err, errRejected) || try+1 == mostTries || ctx.Err() != nil && try > 0 {
			return err
		}
		e.log.V(1).Info("traces not sent, trying again", "error", err.Error())
		pause, cancel := context.WithTimeout(ctx, ring.Backoff{First: time.Second, Most: 30 * time.Second}.After(try))
		<-pause.Done()
		cancel()
	}
}

func (e *Exporter) body(spans []span.Span) ([]byte, error) {
	raw := encode(e.settings.Resource, spans)
	if !e.settings.Gzip {
		return raw, nil
	}
	var b bytes.Buffer
	w := gzip.NewWriter(&b)
	_, err := w.Write(raw)
	if err = errors.Join(err, w.Close()); err != nil {
		return nil, fmt.Errorf("compress: %w", err)
	}
	return b.Bytes(), nil
}

func (e *Exporter) post(ctx context.Context, body []byte) error {
	timeout := e.settings.Timeout
	if ctx.Err() != nil {
		timeout = min(timeout, stopTimeout)
		ctx = context.WithoutCancel(ctx)
	}
	ctx, cancel := context.WithTimeout(ctx, timeout)
	defer cancel()
	r, err := http.NewRequestWithContext(ctx, http.MethodPost, e.settings.URL, bytes.NewReader(body))
	if err != nil {
		return fmt.Errorf("%w: %w", errRejected, err)
	}
	r.Header = e.settings.Header.Clone()
	r.Header.Set("Content-Type", "application/x-protobuf")
	if e.settings.Gzip {
		r.Header.Set("Content-Encoding", "gzip")
	}
	answer, err := e.client.Do(r)
	if err != nil {
		return fmt.Errorf("send traces: %w", err)
	}
	_, _ = io.Copy(io.Discard, io.LimitReader(answer.Body, answerLength)) // so that the connection is used again
	_ = answer.Body.Close()
	switch {
	case answer.StatusCode/100 == 2: //nolint:mnd // success
		return nil
	case slices.Contains([]int{http.StatusTooManyRequests, http.StatusBadGateway, http.StatusServiceUnavailable, http.StatusGatewayTimeout}, answer.StatusCode):
		return fmt.Errorf("send traces: status %d", answer.StatusCode)
	default:
		return fmt.Errorf("send traces: status %d: %w", answer.StatusCode, errRejected)
	}
}
