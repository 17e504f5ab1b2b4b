// Package preparehook calls Pods over HTTP, to prepare them for their removal or to undo that.
// It is a client alone; package preparation is a controller that labels the namespaces in
// which a change of scale needs such calls.
//
// # Invariants
//
//   - Nothing that a Pod does can harm: each call has its time, only so many run side
//     by side, redirects are not followed, no proxy is asked, and no more of a body is
//     read than can matter.
//   - No call is under way when [Caller.Call] and [Caller.CallAll] return. Of a call
//     that had to be given up, [Answer.Pending] says that the Pod may still obey it:
//     two calls are two connections, and which of them a Pod obeys first is unknown.
package preparehook

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptrace"
	"net/url"
	"sync/atomic"
	"time"

	"golang.org/x/sync/errgroup"
)

const (
	// DefaultTimeout is how long a Pod has to answer.
	DefaultTimeout = 5 * time.Second
	// parallel is how many Pods are called at a time.
	parallel = 32
	// maxBody is how much of an answer is read.
	maxBody = 64 << 10
)

// Target is where a Pod is to be told.
type Target struct {
	Pod string
	// URL names the Pod by its name under the service of its StatefulSet.
	URL string
	// IP is the Pod's address, empty if it is not known: then the name is looked up.
	IP string
}

// Answer is what a Pod said.
type Answer struct {
	Target Target
	// Status is 0 if there was no answer.
	Status int
	Body   []byte
	// Reached is true if the Pod may have been told, whatever it said.
	Reached bool
	// Pending is true if the Pod may do what it was asked later than this, because the
	// call was given up and not ended by the Pod.
	Pending bool
	// Err says why it does not count as told, nil if it does.
	Err error
}

// MayCount is true if the Pod may have done what it was asked: it said so, or nothing
// knows.
func (a *Answer) MayCount() bool { return a.Reached && (a.Status == 0 || a.Status/100 == 2) }

// Caller calls Pods.
type Caller struct {
	client  *http.Client
	timeout time.Duration
}

// New is a caller that gives a Pod so much time; zero is [DefaultTimeout].
func New(timeout time.Duration, config *tls.Config) *Caller {
	transport := &http.Transport{
		DialContext: dial, TLSClientConfig: config, // and no proxy: it would be told where Pods are, and be asked for any address
		DisableKeepAlives:      true, // a name may be another Pod's by the next call
		MaxResponseHeaderBytes: maxBody,
	}
	return Over(transport, timeout)
}

// Over is a caller that calls by a transport of its own; zero is [DefaultTimeout].
func Over(transport http.RoundTripper, timeout time.Duration) *Caller {
	if timeout <= 0 {
		timeout = DefaultTimeout
	}
	stay := func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }
	return &Caller{timeout: timeout, client: &http.Client{Transport: transport, CheckRedirect: stay}}
}

// Call tells all targets, and returns an answer for each. It goes on when some
// fail, and returns when all have answered or their time is over.
func (c *Caller) Call(ctx context.Context, method string, targets []Target) []Answer {
	return c.each(ctx, targets, func(ctx context.Context, t Target) Answer { return c.call(ctx, method, t) })
}

// CallAll is Call for what is of use only if all succeed: after the first failure no
// more calls are made. Those that are under way are not interrupted, so that what undoes
// them comes after them.
func (c *Caller) CallAll(ctx context.Context, method string, targets []Target) ([]Answer, error) {
	var failed atomic.Bool
	answers := c.each(ctx, targets, func(ctx context.Context, t Target) Answer {
		if failed.Load() {
			return Answer{Target: t, Err: errNotCalled}
		}
		a := c.call(ctx, method, t)
		if a.Err != nil {
			failed.Store(true)
		}
		return a
	})
	return answers, failure(answers)
}

// errNotCalled is the error of a call that was not made because another one failed.
var errNotCalled = errors.New("another Pod failed")

// failure is why not all have succeeded, nil if they have.
func failure(answers []Answer) error {
	for _, a := range answers {
		if a.Err != nil && !errors.Is(a.Err, errNotCalled) {
			return fmt.Errorf("call Pods: %w", a.Err)
		}
	}
	return nil
}

func (*Caller) each(ctx context.Context, targets []Target, call func(context.Context, Target) Answer) []Answer {
	answers := make([]Answer, len(targets))
	var group errgroup.Group
	group.SetLimit(parallel)
	for i, t := range targets {
		group.Go(func() error {
			answers[i] = call(ctx, t)
			return nil
		})
	}
	_ = group.Wait() // the errors are in the answers
	return answers
}

func (c *Caller) call(ctx context.Context, method string, t Target) Answer {
	ctx, cancel := context.WithTimeout(ctx, c.timeout)
	defer cancel()
	answer, err := c.send(ctx, method, t)
	if err != nil {
		answer.Err = fmt.Errorf("%s of Pod %s: %w", method, t.Pod, err)
	}
	answer.Target = t
	return answer
}

func (c *Caller) send(ctx context.Context, method string, t Target) (Answer, error) {
	var reached atomic.Bool
	ctx = httptrace.WithClientTrace(ctx, &httptrace.ClientTrace{GotConn: func(httptrace.GotConnInfo) { reached.Store(true) }})
	req, err := request(ctx, method, t)
	if err != nil {
		return Answer{}, err
	}
	res, err := c.client.Do(req)
	if err != nil {
		return Answer{Reached: reached.Load(), Pending: reached.Load() && ctx.Err() != nil}, withoutURL(err)
	}
	defer func() { _ = res.Body.Close() }()
	answer := Answer{Status: res.StatusCode, Reached: true}
	if res.StatusCode/100 != 2 {
		return answer, fmt.Errorf("it answered with %d", res.StatusCode)
	}
	answer.Body, err = io.ReadAll(io.LimitReader(res.Body, maxBody))
	if err != nil {
		answer.Pending = ctx.Err() != nil
		return answer, fmt.Errorf("read the answer: %w", err)
	}
	return answer, nil
}

func request(ctx context.Context, method string, t Target) (*http.Request, error) {
	req, err := http.NewRequestWithContext(ctx, method, t.URL, nil)
	if err != nil {
		return nil, fmt.Errorf("make the request: %w", err)
	}
	req.Header.Set("Content-Type", "application/json")
	if t.IP == "" {
		return req, nil
	}
	at := address{host: req.URL.Hostname(), ip: t.IP}
	return req.WithContext(context.WithValue(ctx, addressKey{}, at)), nil
}

// withoutURL leaves out the URL, which may have credentials.
func withoutURL(err error) error {
	if of, ok := errors.AsType[*url.Error](err); ok {
		return of.Err
	}
	return err
}

// address is where a host is to be found.
type (
	address    struct{ host, ip string }
	addressKey struct{}
)

// dial connects to the address of a Pod where that is known.
func dial(ctx context.Context, network, hostPort string) (net.Conn, error) {
	if at, ok := ctx.Value(addressKey{}).(address); ok {
		if host, port, err := net.SplitHostPort(hostPort); err == nil && host == at.host {
			hostPort = net.JoinHostPort(at.ip, port)
		}
	}
	return (&net.Dialer{}).DialContext(ctx, network, hostPort) //nolint:wrapcheck // the transport does
}
