package dashboard

import (
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/netip"
	"net/url"
	"os"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"golang.org/x/net/netutil"
	"k8s.io/utils/clock"

	"github.com/spillway-dev/spillway/internal/cli/command"
	"github.com/spillway-dev/spillway/internal/dashboard/hosted"
	"github.com/spillway-dev/spillway/internal/lab/testenv"
)

// Clients that send slowly have a place for a while, and not more places than there are: others
// are served all the same, and memory does not grow with those that wait.
func TestSlowClients(t *testing.T) {
	const clients, places = 3000, 100
	server := newServer(t.Context(), http.HandlerFunc(alive))
	server.ReadHeaderTimeout = 50 * time.Millisecond
	listener, err := (&net.ListenConfig{}).Listen(t.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	counted := &counting{Listener: listener}
	go func() { _ = serve(t.Context(), server, netutil.LimitListener(counted, places)) }()
	before := testenv.Heap()
	var slow sync.WaitGroup
	var ended atomic.Int64
	for range clients {
		slow.Go(func() {
			c, err := (&net.Dialer{}).DialContext(t.Context(), "tcp", listener.Addr().String())
			if err != nil {
				return
			}
			defer c.Close()
			_, _ = io.WriteString(c, "GET /healthz HTTP/1.1\r\nHost: x\r\nX-Slow: ")
			_, _ = io.Copy(io.Discard, c) // until the server ends it
			ended.Add(1)
		})
	}
	testenv.Eventually(t, func(ctx context.Context) error { // on a busy machine any request may be a slow one
		r, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://"+listener.Addr().String()+"/healthz", http.NoBody)
		if err != nil {
			return err
		}
		answer, err := http.DefaultClient.Do(r)
		if err != nil {
			return fmt.Errorf("one who is not slow gets no answer: %w", err)
		}
		answer.Body.Close()
		if answer.StatusCode != http.StatusOK {
			return fmt.Errorf("one who is not slow gets the status %d", answer.StatusCode)
		}
		return nil
	})
	grown := testenv.Heap() - before
	slow.Wait()
	t.Logf("%d slow clients: %d connections at most, %d ended by the server, %d KiB more on the heap", clients, counted.most.Load(), ended.Load(), grown>>10)
	if most := counted.most.Load(); most > places {
		t.Errorf("%d connections", most)
	}
	if ended.Load() != clients {
		t.Errorf("%d of %d were ended", ended.Load(), clients)
	}
	if grown > 64<<20 {
		t.Errorf("%d bytes more", grown)
	}
}

// One address that opens very many connections has only so many; others are served, and memory
// does not grow with what it tries.
func TestOneAddress(t *testing.T) {
	const attempts, places = 2000, 50
	pages, err := hosted.New(t.Context(), &hosted.Options{
		URL: &url.URL{Scheme: "https", Host: "a.example.test"}, Proxy: &hosted.Proxy{User: "X-User", Addresses: []netip.Prefix{netip.MustParsePrefix("10.1.2.3/32")}},
		Limits: hosted.Limits{OfAddress: places, Away: time.Minute, Answer: time.Minute}, Clock: clock.RealClock{},
	})
	if err != nil {
		t.Fatal(err)
	}
	listener, err := (&net.ListenConfig{}).Listen(t.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	counted := &counting{Listener: pages.LimitAddresses(listener)}
	go func() {
		_ = serve(t.Context(), newServer(t.Context(), http.HandlerFunc(alive)), netutil.LimitListener(counted, 2*places))
	}()
	before := testenv.Heap()
	var hostile []net.Conn
	for range attempts {
		c, err := (&net.Dialer{}).DialContext(t.Context(), "tcp", listener.Addr().String())
		if err != nil {
			t.Fatal(err)
		}
		hostile = append(hostile, c)
	}
	from := &http.Transport{DialContext: (&net.Dialer{LocalAddr: &net.TCPAddr{IP: net.IPv4(127, 0, 0, 2)}}).DialContext}
	defer from.CloseIdleConnections()
	answer, err := (&http.Client{Transport: from}).Get("http://" + listener.Addr().String() + "/healthz")
	if err != nil || answer.StatusCode != http.StatusOK {
		t.Fatalf("another address gets %v: %v", answer, err)
	}
	answer.Body.Close()
	grown := testenv.Heap() - before
	t.Logf("%d connections of one address: %d open at most with one of another, %d KiB more on the heap", attempts, counted.most.Load(), grown>>10)
	if most := counted.most.Load(); most > places+1 {
		t.Errorf("%d connections", most)
	}
	if grown > 32<<20 {
		t.Errorf("%d bytes more", grown)
	}
	for _, c := range hostile {
		c.Close()
	}
}

// counting counts the connections that are open.
type counting struct {
	net.Listener

	open, most atomic.Int64
}

// Accept implements [net.Listener].
func (c *counting) Accept() (net.Conn, error) {
	accepted, err := c.Listener.Accept()
	if err != nil {
		return nil, err
	}
	now := c.open.Add(1)
	for was := c.most.Load(); now > was && !c.most.CompareAndSwap(was, now); was = c.most.Load() {
	}
	return &closing{Conn: accepted, of: c}, nil
}

// closing is one of them.
type closing struct {
	net.Conn

	of   *counting
	once sync.Once
}

// Close implements [net.Conn].
func (c *closing) Close() error {
	c.once.Do(func() { c.of.open.Add(-1) })
	return c.Conn.Close()
}

// A request with long headers is refused.
func TestLongHeaders(t *testing.T) {
	server := newServer(t.Context(), http.HandlerFunc(alive))
	listener, err := (&net.ListenConfig{}).Listen(t.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	go func() { _ = serve(t.Context(), server, listener) }()
	for _, name := range []string{"Cookie", "X-Forwarded-Groups"} {
		r, _ := http.NewRequestWithContext(t.Context(), http.MethodGet, "http://"+listener.Addr().String()+"/healthz", http.NoBody)
		r.Header.Set(name, strings.Repeat("x", 2*headerBytes))
		answer, err := http.DefaultClient.Do(r)
		if err != nil {
			t.Fatal(err)
		}
		answer.Body.Close()
		if answer.StatusCode != http.StatusRequestHeaderFieldsTooLarge {
			t.Errorf("%s: status %d", name, answer.StatusCode)
		}
	}
}

// What would not let anybody in, or not be clear about whom, does not start, and says what to set.
func TestServeSaysWhatLacks(t *testing.T) {
	env := command.Environment{Args: []string{"spillway"}, Out: io.Discard, Err: io.Discard, Lookup: os.LookupEnv, Now: time.Now}
	for line, want := range map[string]string{
		"":                            "--url: name the address",
		"--url=https://a.example.com": "--oidc-issuer-url",
		"--url=https://a.example.com --oidc-issuer-url=https://i.example.com --proxy-addresses=10.0.0.1":         "leave the other out",
		"--url=https://a.example.com --oidc-issuer-url=https://i.example.com":                                    "client",
		"--url=https://a.example.com --oidc-issuer-url=http://i.example.com --oidc-client-id=a":                  "https://",
		"--url=http://a.example.com --oidc-issuer-url=https://i.example.com --oidc-client-id=a":                  "https://NAME",
		"--url=https://a.example.com/path --oidc-issuer-url=https://i.example.com --oidc-client-id=a":            "without a path",
		"--url=https://a.example.com --proxy-addresses=proxy":                                                    "--proxy-addresses: \"proxy\"",
		"--url=https://a.example.com --proxy-addresses=0.0.0.0/0":                                                "every address",
		"--url=https://a.example.com --proxy-addresses=10.0.0.1 --proxy-user-header=":                            "header",
		"--url=https://a.example.com --proxy-addresses=10.0.0.1 --proxy-client-ca-file=/none":                    "--proxy-client-ca-file",
		"--url=https://a.example.com --proxy-addresses=10.0.0.1 --looks=0":                                       "more than 0",
		"--url=https://a.example.com --proxy-addresses=10.0.0.1 -n A":                                            "--namespace",
		"--url=https://a.example.com --proxy-addresses=10.0.0.1 --offer-namespaces=shop,A":                       "--offer-namespaces",
		"--url=https://a.example.com --proxy-addresses=10.0.0.1 --pages-per-user=0":                              "more than 0",
		"--url=https://a.example.com --proxy-addresses=10.0.0.1 --session-key-required":                          "--session-key-file",
		"--url=https://a.example.com --proxy-addresses=10.0.0.1 --session-key-required --session-key-file=/none": "put a key into the Secret spillway-dashboard",
		"--url=https://a.example.com --proxy-addresses=10.0.0.1 --session-key-file=/etc/hostname":                "fewer than 32",
	} {
		cmd, _ := newServe(env)
		cmd.SetArgs(strings.Fields(line))
		cmd.SilenceErrors, cmd.SilenceUsage = true, true
		if err := cmd.ExecuteContext(t.Context()); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want %q", line, err, want)
		}
	}
	if err := CheckArguments(env, []string{"--url=https://a.example.com", "--oidc-issuer-url=https://i.example.com", "--oidc-client-id=a"}); err != nil {
		t.Error(err)
	}
	if err := CheckArguments(env, []string{"--none"}); err == nil {
		t.Error("a flag that does not exist is accepted")
	}
}
