package hosted

import (
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/netip"
	"sync"
)

// wholeOfOne is how much of an IPv6 address tells clients apart: who has one address of such a
// network has all of them.
const wholeOfOne = 64

// crowd counts what each has at a time, of which one may only have so much.
type crowd[K comparable] struct {
	mu sync.Mutex
	of map[K]int
}

// enter takes a place of one who has fewer than most; it is false if there is none.
func (c *crowd[K]) enter(one K, most int) (leave func(), ok bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.of[one] >= most {
		return nil, false
	}
	if c.of == nil {
		c.of = map[K]int{}
	}
	c.of[one]++
	return func() {
		c.mu.Lock()
		defer c.mu.Unlock()
		if c.of[one]--; c.of[one] == 0 {
			delete(c.of, one)
		}
	}, true
}

// errManyPages and errManyRequests are of a person who has too many open.
var (
	errManyPages    = errors.New("pages of yours are open already; close one")
	errManyRequests = errors.New("requests of yours are being answered already; wait for one")
)

// attend takes a place for a request of a person: those that follow have places of their own,
// so that a person with too many of them can still read pages.
func (s *Server) attend(who string, r *http.Request) (leave func(), err error) {
	of, most, full := &s.asking, s.Limits.Asking, errManyRequests
	if r.URL.Path == livePath {
		of, most, full = &s.following, s.Limits.Following, errManyPages
	}
	leave, ok := of.enter(who, most)
	if !ok {
		return nil, fmt.Errorf("%d %w", most, full)
	}
	return leave, nil
}

// LimitAddresses has a listener close connections of an address that has too many open. Those
// of the authenticating proxy have no such limit, since they are of many people.
func (s *Server) LimitAddresses(l net.Listener) net.Listener {
	return &listener{Listener: l, most: s.Limits.OfAddress, isFree: func(at netip.Addr) bool { return s.Proxy != nil && s.Proxy.has(at) }}
}

// listener counts connections by address.
type listener struct {
	net.Listener

	most   int
	isFree func(netip.Addr) bool
	open   crowd[netip.Prefix]
}

// Accept implements [net.Listener].
func (l *listener) Accept() (net.Conn, error) {
	for {
		c, err := l.Listener.Accept()
		if err != nil {
			return nil, err //nolint:wrapcheck // stands in for the listener
		}
		from, isKnown := addressOf(c)
		if !isKnown || l.isFree(from.Unmap()) {
			return c, nil
		}
		if leave, ok := l.open.enter(client(from), l.most); ok {
			return &counted{Conn: c, leave: sync.OnceFunc(leave)}, nil
		}
		_ = c.Close() // it has sent nothing yet
	}
}

// addressOf is the address at the other end, if it has one.
func addressOf(c net.Conn) (netip.Addr, bool) {
	from, err := netip.ParseAddrPort(c.RemoteAddr().String())
	return from.Addr(), err == nil
}

// client is whose address it is, as far as addresses tell.
func client(at netip.Addr) netip.Prefix {
	at = at.Unmap().WithZone("")
	bits := at.BitLen()
	if at.Is6() {
		bits = wholeOfOne
	}
	return netip.PrefixFrom(at, bits).Masked()
}

// counted is a connection that has a place until it is closed.
type counted struct {
	net.Conn

	leave func()
}

// Close implements [net.Conn].
func (c *counted) Close() error {
	c.leave()
	return c.Conn.Close() //nolint:wrapcheck // stands in for the connection
}
