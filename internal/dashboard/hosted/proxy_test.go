package hosted

import (
	"net/http"
	"net/netip"
	"strings"
	"testing"
)

// proxied is a server behind a proxy that connects from some addresses.
func proxied(t *testing.T, addresses ...string) *world {
	t.Helper()
	w := &world{t: t}
	w.start(func(o *Options) {
		o.Proxy = &Proxy{User: "X-Forwarded-User", Groups: "X-Forwarded-Groups", May: Groups{"ops"}}
		for _, at := range addresses {
			o.Proxy.Addresses = append(o.Proxy.Addresses, netip.MustParsePrefix(at))
		}
	})
	return w
}

func add(name string, values ...string) func(*http.Request) {
	return func(r *http.Request) {
		for _, value := range values {
			r.Header.Add(name, value)
		}
	}
}

// Whom the proxy names is who asks; what it says in two ways is refused.
func TestProxy(t *testing.T) {
	w := proxied(t, "127.0.0.0/8", "::1/128")
	for name, test := range map[string]struct {
		given  []func(*http.Request)
		status int
		want   string
	}{
		"a user":             {[]func(*http.Request){add("X-Forwarded-User", "anna")}, http.StatusOK, "cluster of anna with  in"},
		"a user with groups": {[]func(*http.Request){add("X-Forwarded-User", "anna"), add("X-Forwarded-Groups", "others, ops")}, http.StatusOK, "cluster of anna with ops in"},
		"no user":            {nil, http.StatusForbidden, "X-Forwarded-User is empty"},
		"no name":            {[]func(*http.Request){add("X-Forwarded-User", "")}, http.StatusForbidden, "X-Forwarded-User is empty"},
		"two users":          {[]func(*http.Request){add("X-Forwarded-User", "anna", "ben")}, http.StatusForbidden, "was sent 2 times"},
		"two lists":          {[]func(*http.Request){add("X-Forwarded-User", "anna"), add("X-Forwarded-Groups", "ops", "others")}, http.StatusForbidden, "was sent 2 times"},
		"of Kubernetes":      {[]func(*http.Request){add("X-Forwarded-User", "system:admin")}, http.StatusForbidden, "only Kubernetes"},
		"a group of it":      {[]func(*http.Request){add("X-Forwarded-User", "anna"), add("X-Forwarded-Groups", "ops,system:masters")}, http.StatusForbidden, "only Kubernetes"},
		"too long":           {[]func(*http.Request){add("X-Forwarded-User", strings.Repeat("a", 300))}, http.StatusForbidden, "cannot be the name"},
		"impersonation":      {[]func(*http.Request){add("Impersonate-User", "system:admin"), add("X-Remote-User", "ben")}, http.StatusForbidden, "X-Forwarded-User is empty"},
	} {
		answer, text := w.browser().ask("/", test.given...)
		says(t, name, answer, text, test.status, test.want)
	}
}

// Headers of others are refused, whatever user they name, and so is all else of them.
func TestNotTheProxy(t *testing.T) {
	w := proxied(t, "10.1.2.0/28")
	for _, path := range []string{"/", "/account", "/assets/style.css", "/live"} {
		answer, text := w.browser().ask(path, add("X-Forwarded-User", "anna"), add("X-Forwarded-For", "10.1.2.3"), add("Forwarded", "for=10.1.2.3"))
		says(t, path, answer, text, http.StatusForbidden, "only if they come from the proxy")
	}
	if opened, _ := w.looks(); len(opened) > 0 {
		t.Errorf("something was shown: %v", opened)
	}
	certified := proxied(t, "127.0.0.0/8", "::1/128")
	certified.pages.Proxy.Certified = true
	answer, text := certified.browser().ask("/", add("X-Forwarded-User", "anna"))
	says(t, "without a certificate", answer, text, http.StatusForbidden, "only if they come from the proxy")
}

// What cannot be meant is not started.
func TestOptions(t *testing.T) {
	valid := login(t)
	aProxy := func() *Proxy {
		return &Proxy{User: "A", Groups: "B", Addresses: []netip.Prefix{netip.MustParsePrefix("10.0.0.1/32")}}
	}
	for name, change := range map[string]func(*Options){
		"no identity": func(o *Options) { o.Login = nil },
		"two":         func(o *Options) { o.Proxy = aProxy() },
		"no address":  func(o *Options) { o.URL = nil },
		"every address": func(o *Options) {
			o.Login, o.Proxy = nil, aProxy()
			o.Proxy.Addresses = []netip.Prefix{netip.MustParsePrefix("0.0.0.0/0")}
		},
		"no proxy":   func(o *Options) { o.Login, o.Proxy = nil, aProxy(); o.Proxy.Addresses = nil },
		"one header": func(o *Options) { o.Login, o.Proxy = nil, aProxy(); o.Proxy.Groups = "a" },
		"an issuer in the clear": func(o *Options) {
			o.Login = &Login{Issuer: "http://issuer.example.com", ClientID: "x", Claims: Claims{User: "sub"}, HTTP: http.DefaultClient}
		},
		"endless sessions": func(o *Options) {
			l := o.Login
			o.Login = &Login{Issuer: l.Issuer, ClientID: "x", Claims: l.Claims, HTTP: l.HTTP}
		},
	} {
		o := *valid.pages.Options
		change(&o)
		if _, err := New(t.Context(), &o); err == nil {
			t.Errorf("%s: it starts", name)
		}
	}
}
