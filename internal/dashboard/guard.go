package dashboard

import (
	"crypto/rand"
	"crypto/subtle"
	"net"
	"net/http"
	"slices"
	"strings"
)

// NewToken makes the secret that lets a person in.
func NewToken() string { return rand.Text() }

// guard lets in who may see the pages. On the machine of a user there are other users, and
// in her browser there are other pages.
type guard struct {
	token string
	// cookie is the name under which a browser keeps the token: of one for each port, since
	// cookies are not told apart by it.
	cookie string
	next   http.Handler
}

// policy lets the pages load their own style and script, and nothing else.
const policy = "default-src 'none'; style-src 'self'; script-src 'self'; connect-src 'self'; img-src 'self'; " +
	"form-action 'self'; base-uri 'none'; frame-ancestors 'none'"

// ServeHTTP implements [http.Handler].
func (g *guard) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	Harden(w.Header())
	switch {
	case !isLoopback(r.Host):
		Fail(w, r, http.StatusMisdirectedRequest, "this address is served under 127.0.0.1 and localhost alone")
	case !IsFromHere(r, "http://"+r.Host):
		Fail(w, r, http.StatusForbidden, ErrOrigin.Error())
	case IsRead(r) && g.equals(r.URL.Query().Get("token")):
		g.remember(w, r)
	case !g.isKnown(r):
		Fail(w, r, http.StatusUnauthorized, "open the address that spillway dashboard has printed, with its token")
	default:
		g.next.ServeHTTP(w, r)
	}
}

// Harden says what a browser may do with the pages: almost nothing.
func Harden(h http.Header) {
	h.Set("Content-Security-Policy", policy)
	h.Set("X-Content-Type-Options", "nosniff")
	h.Set("Referrer-Policy", "same-origin") // with no-referrer a form has no origin
	h.Set("Cross-Origin-Opener-Policy", "same-origin")
	h.Set("Cross-Origin-Resource-Policy", "same-origin")
	h.Set("Cache-Control", "no-store")
}

// IsRead is true of a request that changes nothing.
func IsRead(r *http.Request) bool { return r.Method == http.MethodGet || r.Method == http.MethodHead }

// IsFromHere is true of what only reads, and of a form that was sent by a page of this
// origin.
func IsFromHere(r *http.Request, origin string) bool {
	if IsRead(r) {
		return true
	}
	site := r.Header.Get("Sec-Fetch-Site")
	return r.Header.Get("Origin") == origin && (site == "" || site == "same-origin")
}

// isLoopback is true of a host by which only this machine is reached.
func isLoopback(host string) bool {
	if name, _, err := net.SplitHostPort(host); err == nil {
		host = name
	}
	return slices.Contains([]string{"localhost", "127.0.0.1", "::1", "[::1]"}, host)
}

func (g *guard) equals(token string) bool {
	return subtle.ConstantTimeCompare([]byte(token), []byte(g.token)) == 1
}

// isKnown is true of a browser that was let in, and of a program that sends the token.
func (g *guard) isKnown(r *http.Request) bool {
	if token, ok := strings.CutPrefix(r.Header.Get("Authorization"), "Bearer "); ok {
		return g.equals(token)
	}
	c, err := r.Cookie(g.cookie)
	return err == nil && g.equals(c.Value)
}

// remember lets a browser in from now on, and takes the token out of its address.
func (g *guard) remember(w http.ResponseWriter, r *http.Request) {
	http.SetCookie(w, &http.Cookie{ //nolint:gosec // it is served on loopback without TLS
		Name: g.cookie, Value: g.token, Path: "/", HttpOnly: true, SameSite: http.SameSiteStrictMode,
	})
	to := *r.URL
	query := to.Query()
	query.Del("token")
	to.RawQuery, to.Scheme, to.Host = query.Encode(), "", ""
	to.Path = "/" + strings.TrimLeft(to.Path, "/\\")      // not the name of a host
	http.Redirect(w, r, to.String(), http.StatusSeeOther) //nolint:gosec // a path of this very server
}
