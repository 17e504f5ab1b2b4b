package source

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/spillway-dev/spillway/api/spillway/v1alpha1"
	"github.com/spillway-dev/spillway/internal/gates/measure"
	"github.com/spillway-dev/spillway/internal/outbound"
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

// Ask makes one measurement, of what the network reaches.
func Ask(ctx context.Context, network outbound.Network, q *Question, now time.Time) measure.Sample {
	ctx, cancel := context.WithTimeout(ctx, outbound.Timeout)
	defer cancel()
	a := &asker{network: network, Question: q, now: now}
	got, err := a.ask(ctx)
	if err != nil {
		got = answer{v1alpha1.GateError, outbound.Describe(err)}
	}
	return measure.Sample{At: now, Result: got.result, Value: a.creds.Redact(got.value), Sent: a.creds.Redact(a.sent)}
}

// Unreadable is a measurement of which what it needs cannot be read.
func Unreadable(now time.Time, err error) measure.Sample {
	return measure.Sample{At: now, Result: v1alpha1.GateError, Value: fmt.Sprint(err)}
}

// asker makes one measurement.
type asker struct {
	*Question
	network outbound.Network
	now     time.Time
	creds   *outbound.Credentials
	sent    string
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

// client returns a client that connects to one host alone.
func (a *asker) client(host string) (*http.Client, error) {
	creds, err := outbound.CredentialsFor(a.Secret, host)
	if err != nil {
		return nil, err
	}
	a.creds = creds
	return outbound.Client(a.network, a.Namespace, host, creds), nil
}

// filled is a URL with its labels.
func (a *asker) filled(text string) (*url.URL, error) {
	full, err := a.Labels.fill(text, url.PathEscape)
	if err != nil {
		return nil, err
	}
	u, err := outbound.ParseURL(full)
	if err != nil {
		return nil, fmt.Errorf("%q is %w", full, err)
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
