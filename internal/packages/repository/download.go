package repository

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"path"
	"strings"
	"syscall"
	"time"
)

// MostDownload bounds what is read over a network, in bytes.
const MostDownload = 16 << 20

// patience is how long a download may take.
const patience = time.Minute

// Client downloads indexes and archives.
type Client struct{ http *http.Client }

// NewClient returns a client that keeps what it downloads as it is, and follows no redirect
// from HTTPS to HTTP.
func NewClient() *Client {
	transport := http.DefaultTransport.(*http.Transport).Clone() //nolint:forcetypeassert // of the standard library
	transport.DisableCompression = true
	return &Client{http: &http.Client{Transport: transport, Timeout: patience, CheckRedirect: StaysSafe}}
}

// mostRedirects is that of the standard library.
const mostRedirects = 10

// StaysSafe refuses redirects from HTTPS to HTTP, and too many.
func StaysSafe(to *http.Request, via []*http.Request) error {
	switch {
	case len(via) >= mostRedirects:
		return errors.New("redirects too often")
	case via[0].URL.Scheme == "https" && to.URL.Scheme != "https":
		return fmt.Errorf("redirects from HTTPS to %s", address(to.URL))
	default:
		return nil
	}
}

// Get downloads what is at an address, which must be http or https.
func (c *Client) Get(ctx context.Context, at string) ([]byte, error) {
	parsed, err := parse(at)
	if err != nil {
		return nil, err
	}
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, parsed.String(), nil)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", address(parsed), err)
	}
	response, err := c.http.Do(request)
	if err != nil {
		return nil, Unreachable(ctx, address(parsed), err)
	}
	defer func() { _ = response.Body.Close() }()
	if response.StatusCode != http.StatusOK {
		return nil, fmt.Errorf("%s cannot be downloaded: the server answers %s", address(parsed), response.Status)
	}
	return bounded(response.Body, address(parsed))
}

// Unreachable says what cannot be reached or downloaded. It hides the error of the library, which would
// be taken for one of the API server.
func Unreachable(ctx context.Context, what string, err error) error {
	if ctx.Err() != nil {
		return fmt.Errorf("%s: %w", what, ctx.Err())
	}
	if failed, ok := errors.AsType[*url.Error](err); ok { // which names the address again, with its password
		err = failed.Err
	}
	const action = "check the address and the network"
	var dns *net.DNSError
	switch {
	case errors.Is(err, syscall.ECONNREFUSED):
		return fmt.Errorf("%s cannot be reached: connections are refused; %s", what, action)
	case errors.As(err, &dns) && dns.IsNotFound:
		return fmt.Errorf("%s cannot be reached: there is no host %s; %s", what, dns.Name, action)
	default:
		return fmt.Errorf("%s cannot be downloaded: %s; %s", what, err.Error(), action)
	}
}

func bounded(r io.Reader, name string) ([]byte, error) {
	raw, err := io.ReadAll(io.LimitReader(r, MostDownload+1))
	if err != nil {
		return nil, fmt.Errorf("%s cannot be read: %w", name, err)
	}
	if len(raw) > MostDownload {
		return nil, fmt.Errorf("%s has more than %d MiB", name, MostDownload>>20)
	}
	return raw, nil
}

func parse(at string) (*url.URL, error) {
	parsed, err := url.Parse(at)
	if err != nil || parsed.Host == "" || (parsed.Scheme != "http" && parsed.Scheme != "https") {
		return nil, fmt.Errorf("%q is no address of a repository or an archive; use one such as https://packages.example.com", at)
	}
	return parsed, nil
}

// address is an address without its password.
func address(u *url.URL) string { return u.Redacted() }

// Index downloads the index of a repository.
func (c *Client) Index(ctx context.Context, r Repository) (*Index, error) {
	index, err := parsed(c.Get(ctx, indexIn(r.URL)))
	if err != nil {
		return nil, fmt.Errorf("repository %s: %w", r.Name, err)
	}
	return index, nil
}

// IndexAt reads the index at an address or a path, which may be that of its directory.
func (c *Client) IndexAt(ctx context.Context, at string) (*Index, error) {
	at = indexIn(at)
	if file, isFile := strings.CutPrefix(at, "file://"); isFile || !strings.Contains(at, "://") {
		return parsed(readBounded(file))
	}
	return parsed(c.Get(ctx, at))
}

const indexFile = "index.yaml"

func indexIn(at string) string {
	if path.Base(at) == indexFile {
		return at
	}
	return strings.TrimSuffix(at, "/") + "/" + indexFile
}

func parsed(raw []byte, err error) (*Index, error) {
	if err != nil {
		return nil, err
	}
	index, err := ParseIndex(raw)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", indexFile, err)
	}
	return index, nil
}

// Archive downloads the version that is wanted, and returns where it was found. It has the
// digest that the index says.
func (c *Client) Archive(ctx context.Context, r Repository, w Wanted) (raw []byte, from string, _ error) {
	index, err := c.Index(ctx, r)
	if err != nil {
		return nil, "", err
	}
	entry, err := index.Find(w)
	if err != nil {
		return nil, "", fmt.Errorf("repository %s: %w; see them with: spillway package search -a --repo %s", r.Name, err, r.Name)
	}
	var failed error
	for _, at := range entry.URLs {
		raw, from, err := c.archive(ctx, r, entry, at)
		if err == nil {
			return raw, from, nil
		}
		failed = errors.Join(failed, err)
	}
	return nil, "", fmt.Errorf("repository %s: %w", r.Name, failed)
}

func (c *Client) archive(ctx context.Context, r Repository, entry *Entry, at string) (raw []byte, from string, _ error) {
	base, err := parse(strings.TrimSuffix(r.URL, "/") + "/")
	if err != nil {
		return nil, "", err
	}
	to, err := base.Parse(at)
	if err != nil {
		return nil, "", fmt.Errorf("entries.%s: urls: %q is no address", entry.Name, at)
	}
	if base.Scheme == "https" && to.Scheme != "https" && entry.Digest == "" {
		return nil, "", fmt.Errorf("entries.%s: %s is not HTTPS, and there is no digest to check it by; add the digest to the index", entry.Name, address(to))
	}
	if raw, err = c.Get(ctx, to.String()); err != nil {
		return nil, "", err
	}
	if want := strings.ToLower(strings.TrimPrefix(entry.Digest, "sha256:")); want != "" && want != digestOf(raw) {
		return nil, "", fmt.Errorf("%s has the digest %s, and the index says %s; do not use it before you know why", address(to), digestOf(raw), want)
	}
	return raw, address(to), nil
}
