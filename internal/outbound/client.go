package outbound

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/netip"
	"net/url"
	"syscall"
	"time"
)

const (
	// Timeout bounds one request.
	Timeout = 15 * time.Second
	// MaxResponse is how much of a response is read, in bytes. A longer one is an error.
	MaxResponse = 1 << 20
	// maxHeaders bounds the headers of a response, in bytes.
	maxHeaders = 64 << 10
)

var errNoURL = errors.New("not an http or https URL without user and password")

// ParseURL reads a URL. The error does not repeat it.
func ParseURL(text string) (*url.URL, error) {
	u, err := url.Parse(text)
	if err != nil || u.Hostname() == "" || u.User != nil || u.Scheme != "http" && u.Scheme != "https" {
		return nil, errNoURL
	}
	return u, nil
}

// Describe says what went wrong, without what net/http repeats.
func Describe(err error) string {
	if at, ok := errors.AsType[*url.Error](err); ok {
		err = at.Err
	}
	if errors.Is(err, context.DeadlineExceeded) {
		return fmt.Sprintf("no answer within %s", Timeout)
	}
	return err.Error()
}

// Client returns a client for requests of a namespace that connects to one host alone.
func Client(network Network, namespace, host string, creds *Credentials) *http.Client {
	dialer := &net.Dialer{Timeout: Timeout, ControlContext: func(ctx context.Context, _, address string, _ syscall.RawConn) error {
		at, err := netip.ParseAddrPort(address)
		if err != nil {
			return fmt.Errorf("connect to %s: %w", address, err)
		}
		return network.permits(ctx, namespace, host, at.Addr())
	}}
	transport := &http.Transport{
		DialContext: dialer.DialContext, TLSClientConfig: creds.tls, TLSHandshakeTimeout: Timeout, ResponseHeaderTimeout: Timeout,
		DisableKeepAlives: true, DisableCompression: true, MaxResponseHeaderBytes: maxHeaders,
	}
	return &http.Client{
		Timeout:       Timeout,
		Transport:     bounded{transport, creds},
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}
}

// bounded adds the credentials, and bounds what is read of a response.
type bounded struct {
	next  http.RoundTripper
	creds *Credentials
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
	if res.StatusCode < http.StatusOK { // a body that net/http reads without regard to the time
		_ = res.Body.Close() // nothing is read of it
		return nil, fmt.Errorf("it changes the protocol (status %d), which is not HTTP any more", res.StatusCode)
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
