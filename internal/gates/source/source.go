package source

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/netip"
	"net/url"
	"strings"
	"syscall"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/spillway-dev/spillway/api/spillway/v1alpha1"
	"github.com/spillway-dev/spillway/internal/gates/measure"
)

const (
	// Timeout bounds one measurement.
	Timeout = 15 * time.Second
	// MaxResponse is how much of a response is read, in bytes. A longer one is an error.
	MaxResponse = 1 << 20
	// maxHeaders bounds the headers of a response, in bytes.
	maxHeaders = 64 << 10
)

// Question is what to measure.
type Question struct {
	// Namespace is that of the gate.
	Namespace string
	Template  *v1alpha1.GateTemplateSpec
	Labels    Labels
	// Secret is the one that the template refers to, nil if it refers to none.
	Secret *corev1.Secret
}

// answer is what a source said.
type answer struct {
	result v1alpha1.GateResult
	value  string
}

// Ask makes one measurement. Hosts are those that the platform allows.
func Ask(ctx context.Context, hosts Hosts, q *Question, now time.Time) measure.Sample {
	ctx, cancel := context.WithTimeout(ctx, Timeout)
	defer cancel()
	a := &asker{hosts: hosts, Question: q, now: now}
	got, err := a.ask(ctx)
	if err != nil {
		got = answer{v1alpha1.GateError, a.describe(err)}
	}
	return measure.Sample{At: now, Result: got.result, Value: a.redact(got.value), Sent: a.redact(a.sent)}
}

// Unreadable is a measurement of which what it needs cannot be read.
func Unreadable(now time.Time, err error) measure.Sample {
	return measure.Sample{At: now, Result: v1alpha1.GateError, Value: fmt.Sprint(err)}
}

// asker makes one measurement.
type asker struct {
	*Question
	hosts Hosts
	now   time.Time
	creds *credentials
	sent  string
}

var errNoSource = errors.New("the GateTemplate names no source")

func (a *asker) ask(ctx context.Context) (answer, error) {
	switch {
	case a.Template.HTTP != nil:
		return a.http(ctx, a.Template.HTTP)
	case a.Template.Prometheus != nil:
		return a.prometheus(ctx, a.Template.Prometheus)
	default:
		return answer{}, errNoSource
	}
}

func (a *asker) redact(text string) string {
	if a.creds == nil {
		return text
	}
	return a.creds.redact(text)
}

// describe says what went wrong, without what net/http repeats.
func (a *asker) describe(err error) string {
	if at, ok := errors.AsType[*url.Error](err); ok {
		err = at.Err
	}
	if errors.Is(err, context.DeadlineExceeded) {
		return fmt.Sprintf("no answer within %s", Timeout)
	}
	return err.Error()
}

// client returns a client that connects to one host alone.
func (a *asker) client(host string) (*http.Client, error) {
	creds, err := credentialsFor(a.Secret, host)
	if err != nil {
		return nil, err
	}
	a.creds = creds
	dialer := &net.Dialer{Timeout: Timeout, Control: func(_, address string, _ syscall.RawConn) error {
		at, err := netip.ParseAddrPort(address)
		if err != nil {
			return fmt.Errorf("connect to %s: %w", address, err)
		}
		return a.hosts.permits(a.Namespace, host, at.Addr())
	}}
	transport := &http.Transport{
		DialContext: dialer.DialContext, TLSClientConfig: creds.tls, TLSHandshakeTimeout: Timeout, ResponseHeaderTimeout: Timeout,
		DisableKeepAlives: true, DisableCompression: true, MaxResponseHeaderBytes: maxHeaders,
	}
	return &http.Client{
		Transport:     bounded{transport, creds},
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}, nil
}

// bounded adds the credentials, and bounds what is read of a response.
type bounded struct {
	next  http.RoundTripper
	creds *credentials
}

// RoundTrip implements [http.RoundTripper].
func (b bounded) RoundTrip(req *http.Request) (*http.Response, error) {
	req = req.Clone(req.Context())
	b.creds.apply(req)
	req.Header.Set("User-Agent", "spillway")
	res, err := b.next.RoundTrip(req)
	if err != nil {
		return nil, err //nolint:wrapcheck // a transport says what the one below it says
	}
	if res.StatusCode >= http.StatusMultipleChoices && res.StatusCode < http.StatusBadRequest {
		_ = res.Body.Close() // nothing is read of it
		return nil, fmt.Errorf("it redirects (status %d), which is not followed", res.StatusCode)
	}
	res.Body = &body{ReadCloser: res.Body, left: MaxResponse}
	return res, nil
}

var errTooLong = fmt.Errorf("the response is longer than %d bytes", MaxResponse)

// body is the body of a response, up to its limit.
type body struct {
	io.ReadCloser
	left int
}

// Read implements [io.Reader].
func (b *body) Read(p []byte) (int, error) {
	if b.left < 0 {
		return 0, errTooLong
	}
	n, err := b.ReadCloser.Read(p[:min(len(p), b.left+1)])
	if b.left -= n; b.left < 0 {
		return 0, errTooLong
	}
	return n, err //nolint:wrapcheck // io.EOF has to stay what it is
}

// filled is a URL with its labels.
func (a *asker) filled(text string) (*url.URL, error) {
	full, err := a.Labels.fill(text, url.PathEscape)
	if err != nil {
		return nil, err
	}
	u, err := url.Parse(full)
	if err != nil || u.Hostname() == "" || u.User != nil || u.Scheme != "http" && u.Scheme != "https" {
		return nil, fmt.Errorf("%q is not an http or https URL without user and password", full)
	}
	return u, nil
}

// sourceError is the status of a response that says that the source does not work.
func sourceError(res *http.Response) error {
	switch code := res.StatusCode; {
	case code == http.StatusUnauthorized, code == http.StatusForbidden, code == http.StatusProxyAuthRequired,
		code == http.StatusTooManyRequests, code >= http.StatusInternalServerError:
		return fmt.Errorf("status %d", code)
	default:
		return nil
	}
}

func lowered(h http.Header) map[string]string {
	headers := make(map[string]string, len(h))
	for key, values := range h {
		headers[strings.ToLower(key)] = strings.Join(values, ", ")
	}
	return headers
}

func resultOf(success bool) v1alpha1.GateResult {
	if success {
		return v1alpha1.GateSuccess
	}
	return v1alpha1.GateFailure
}

func methodOf(g *v1alpha1.HTTPGate) string { return cmp.Or(g.Method, http.MethodGet) }
