package hosted

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/netip"
	"sync"
	"testing"

	"github.com/spillway-dev/spillway/internal/dashboard"
	"github.com/spillway-dev/spillway/internal/describe"
	"github.com/spillway-dev/spillway/internal/describe/explain"
	"github.com/spillway-dev/spillway/internal/lab/testenv"
	"github.com/spillway-dev/spillway/internal/lab/testenv/issuer"
)

// tries has a browser begin to follow, and returns the status.
func (b *browser) tries(ctx context.Context) (status int, leave func()) {
	r, err := http.NewRequestWithContext(ctx, http.MethodGet, b.w.server.URL+"/live?version=1", http.NoBody)
	if err != nil {
		return 0, func() {}
	}
	answer, err := b.Do(r) //nolint:bodyclose // leave closes it
	if err != nil {
		return 0, func() {}
	}
	return answer.StatusCode, func() { _ = answer.Body.Close() }
}

// One person who opens many pages has only so many places. Others follow, she reads on, and
// memory does not grow with what she tries.
func TestOnePersonFollowing(t *testing.T) {
	const attempts = 400
	w := login(t)
	anna := w.browser()
	anna.ask("/")
	w.issuer.LogsIn(issuer.Claims{"sub": "ben"})
	ben := w.browser()
	ben.ask("/")
	before := testenv.Heap()
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	var mu sync.Mutex
	var all sync.WaitGroup
	got, at := map[int]int{}, make(chan struct{}, 50)
	for range attempts {
		all.Go(func() {
			at <- struct{}{}
			defer func() { <-at }()
			status, leave := anna.tries(ctx)
			if status != http.StatusOK {
				leave()
			}
			mu.Lock()
			defer mu.Unlock()
			got[status]++
		})
	}
	all.Wait()
	t.Logf("%d attempts: %v by status, %d KiB more on the heap", attempts, got, (testenv.Heap()-before)>>10)
	if want := w.pages.Limits.Following; got[http.StatusOK] != want || got[http.StatusTooManyRequests] != attempts-want {
		t.Errorf("status: %v", got)
	}
	if grown := testenv.Heap() - before; grown > 16<<20 {
		t.Errorf("%d bytes more", grown)
	}
	answer, text := anna.ask("/live?version=1", asProgram)
	says(t, "one more", answer, text, http.StatusTooManyRequests, "20 pages of yours are open already; close one")
	answer, text = anna.ask("/")
	says(t, "a page of hers", answer, text, http.StatusOK, "web-of-anna")
	gone := ben.lives(ctx)
	answer, text = ben.ask("/")
	says(t, "a page of another", answer, text, http.StatusOK, "web-of-ben")
	cancel()
	<-gone
	testenv.Eventually(t, func(ctx context.Context) error { // her places are free again
		status, leave := anna.tries(ctx)
		if leave(); status != http.StatusOK {
			return fmt.Errorf("status %d", status)
		}
		return nil
	})
}

// One person whose requests take long keeps no one else from being answered.
func TestOnePersonAsking(t *testing.T) {
	release, asked := make(chan struct{}), make(chan struct{}, 100)
	w := login(t, func(o *Options) {
		open := o.Open
		o.Open = func(ctx context.Context, who Person, namespace string) (*dashboard.Source, error) {
			source, err := open(ctx, who, namespace)
			if err == nil && who.User == "oidc:anna" {
				source.Explain = func(context.Context, describe.Ref) (explain.Chain, error) {
					asked <- struct{}{}
					<-release
					return explain.Chain{}, errors.New("released")
				}
			}
			return source, err
		}
	})
	anna := w.browser()
	anna.ask("/")
	w.issuer.LogsIn(issuer.Claims{"sub": "ben"})
	ben := w.browser()
	ben.ask("/")
	const slow = "/why/rolloutgroup/web?namespace=shop"
	var all sync.WaitGroup
	for range w.pages.Limits.Asking {
		all.Go(func() { anna.ask(slow) })
	}
	for range w.pages.Limits.Asking {
		<-asked
	}
	answer, text := anna.ask(slow)
	says(t, "one more", answer, text, http.StatusTooManyRequests, "20 requests of yours are being answered already; wait for one")
	if answer.Header.Get("Retry-After") == "" {
		t.Error("it does not say when to try again")
	}
	answer, text = ben.ask("/")
	says(t, "another", answer, text, http.StatusOK, "web-of-ben")
	close(release)
	all.Wait()
	answer, text = anna.ask("/")
	says(t, "afterwards", answer, text, http.StatusOK, "web-of-anna")
}

// One address has only so many of the places to ask the issuer.
func TestLoginsOfAnAddress(t *testing.T) {
	w := login(t)
	from := func(address string) *http.Request { return &http.Request{RemoteAddr: address} }
	var leave []func()
	for i := range loginsOfAddress {
		l, err := w.pages.Login.enter(from(fmt.Sprintf("[2001:db8::%x]:1", i+1))) // all of one network
		if err != nil {
			t.Fatal(err)
		}
		leave = append(leave, l)
	}
	if _, err := w.pages.Login.enter(from("[2001:db8::ffff]:1")); !errors.Is(err, errLogins) {
		t.Errorf("one more of the network: %v", err)
	}
	answer, text := w.browser().ask("/")
	says(t, "another address", answer, text, http.StatusOK, "web-of-anna")
	for _, l := range leave {
		l()
	}
	if l, err := w.pages.Login.enter(from("[2001:db8::ffff]:1")); err != nil {
		t.Error(err)
	} else {
		l()
	}
}

// Addresses differ by what one client can have.
func TestClients(t *testing.T) {
	for address, want := range map[string]string{
		"10.1.2.3": "10.1.2.3/32", "::ffff:10.1.2.3": "10.1.2.3/32", "2001:db8::1": "2001:db8::/64", "2001:db8:0:0:ffff::1": "2001:db8::/64", "fe80::1%eth0": "fe80::/64",
	} {
		if got := client(netip.MustParseAddr(address)).String(); got != want {
			t.Errorf("%s: %s, want %s", address, got, want)
		}
	}
}

// Connections of one address have a bound, those of the proxy have none; closed ones do not count.
func TestLimitAddresses(t *testing.T) {
	for name, test := range map[string]struct {
		server *Server
		want   int
	}{
		"by login":     {&Server{Options: &Options{Limits: Limits{OfAddress: 3}}}, 3},
		"by the proxy": {&Server{Options: &Options{Limits: Limits{OfAddress: 3}, Proxy: &Proxy{Addresses: []netip.Prefix{netip.MustParsePrefix("127.0.0.1/32")}}}}, 10},
	} {
		t.Run(name, func(t *testing.T) {
			inner, err := (&net.ListenConfig{}).Listen(t.Context(), "tcp", "127.0.0.1:0")
			if err != nil {
				t.Fatal(err)
			}
			l := test.server.LimitAddresses(inner)
			defer l.Close()
			accepted := make(chan net.Conn, 100)
			go func() {
				for {
					c, err := l.Accept()
					if err != nil {
						close(accepted)
						return
					}
					accepted <- c
				}
			}()
			var mine []net.Conn
			for range 10 {
				c, err := (&net.Dialer{}).DialContext(t.Context(), "tcp", inner.Addr().String())
				if err != nil {
					t.Fatal(err)
				}
				defer c.Close()
				mine = append(mine, c)
			}
			for range test.want {
				c := <-accepted
				defer c.Close()
			}
			if test.want == len(mine) {
				return
			}
			for _, c := range mine[test.want:] {
				if _, err := c.Read(make([]byte, 1)); err == nil {
					t.Error("one too many is open")
				}
			}
			other := net.Dialer{LocalAddr: &net.TCPAddr{IP: net.IPv4(127, 0, 0, 2)}}
			c, err := other.DialContext(t.Context(), "tcp", inner.Addr().String())
			if err != nil {
				t.Fatal(err)
			}
			defer c.Close()
			if at := (<-accepted).RemoteAddr().String(); at != c.LocalAddr().String() {
				t.Errorf("%s is let in", at)
			}
		})
	}
}
