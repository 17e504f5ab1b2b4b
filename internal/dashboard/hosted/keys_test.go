package hosted

import (
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/spillway-dev/spillway/internal/lab/testenv/issuer"
)

func parsed(t *testing.T, text string) *Keys {
	t.Helper()
	keys, err := ParseKeys(text)
	if err != nil {
		t.Fatal(err)
	}
	return keys
}

var keyOne, keyTwo = strings.Repeat("one ", 8) + "x", strings.Repeat("two ", 8) + "x"

// beside is another server of the same pages, as a second Pod or one after a restart: a
// browser that was at one of them is at the other.
func (w *world) beside(keys *Keys) *Server {
	w.t.Helper()
	o := *w.pages.Options
	l := &Login{
		Issuer: o.Login.Issuer, ClientID: o.Login.ClientID, ClientSecret: o.Login.ClientSecret, Claims: o.Login.Claims, May: o.Login.May,
		Sessions: o.Login.Sessions, HTTP: w.issuer.Client(),
	}
	o.Login, o.Keys = l, keys
	s, err := New(w.t.Context(), &o)
	if err != nil {
		w.t.Fatal(err)
	}
	return s
}

// Servers with the same key accept the sessions, logins and forms of each other. With another
// one they do not, and with both, new after old, they do.
func TestServersWithTheSameKey(t *testing.T) {
	w := login(t, func(o *Options) { o.Keys = parsed(t, keyOne+"\n") })
	first := w.pages
	alternate := []*Server{first, w.beside(parsed(t, keyOne))}
	n := 0
	w.server.Config.Handler = http.HandlerFunc(func(out http.ResponseWriter, r *http.Request) {
		n++
		alternate[n%len(alternate)].ServeHTTP(out, r)
	})
	b := w.browser()
	for range 4 {
		answer, text := b.ask("/")
		says(t, "two servers", answer, text, http.StatusOK, "web-of-anna")
	}
	const path = "/act/pause/rolloutgroup/web?namespace=shop"
	_, text := b.ask(path)
	_, token, _ := strings.Cut(text, `name="token" value="`)
	token, _, _ = strings.Cut(token, `"`)
	form := url.Values{"token": {token}, "version": {"7"}, "reason": {"by both"}}
	b.form(path, form)
	b.form(path, form)
	if len(w.done) != 2 {
		t.Errorf("done: %v", w.done)
	}
	program := func(s *Server) int {
		r := httptest.NewRequestWithContext(t.Context(), http.MethodGet, w.server.URL+"/", http.NoBody)
		r.AddCookie(b.cookie(sessionCookie))
		asProgram(r)
		out := httptest.NewRecorder()
		s.ServeHTTP(out, r)
		return out.Code
	}
	for text, want := range map[string]int{keyTwo: http.StatusUnauthorized, keyTwo + "\n\n" + keyOne: http.StatusOK, keyOne + "\r\n" + keyTwo: http.StatusOK} {
		if got := program(w.beside(parsed(t, text))); got != want {
			t.Errorf("%q: status %d, want %d", text, got, want)
		}
	}
	if got := program(w.beside(nil)); got != http.StatusUnauthorized {
		t.Errorf("a server with its own key: status %d", got)
	}
	w.clock.Step(8 * time.Hour)
	if got := program(w.beside(parsed(t, keyOne))); got != http.StatusUnauthorized {
		t.Errorf("a session that has ended: status %d", got)
	}
}

// A key that could be guessed is none.
func TestParseKeys(t *testing.T) {
	for text, want := range map[string]string{"": "there is no key", "\n \n": "there is no key", "short": "fewer than 32", keyOne + "\nshort\n": "fewer than 32"} {
		if _, err := ParseKeys(text); err == nil || !strings.Contains(err.Error(), want) || !strings.Contains(err.Error(), "openssl rand") {
			t.Errorf("%q: %v", text, err)
		}
	}
}

// Who may not see all namespaces is shown the only one that she may see, or chooses; who may
// see none that is known names one.
func TestOfferedNamespaces(t *testing.T) {
	var names []string
	w := login(t, func(o *Options) {
		o.Open = forbidden(o.Open)
		o.Namespaces = namesOf(&names)
	})
	b := w.browser()
	answer, text := b.ask("/past")
	says(t, "none is known", answer, text, http.StatusForbidden, "Name a namespace that you may see")
	names = []string{"bank", "shop"}
	answer, text = b.ask("/past")
	says(t, "several", answer, text, http.StatusForbidden, "Choose a namespace that you may see")
	for _, link := range []string{`<a href="/account?show=bank">bank</a>`, `<a href="/account?show=shop">shop</a>`} {
		if !strings.Contains(text, link) {
			t.Errorf("there is no %s: %s", link, text)
		}
	}
	answer, text = b.ask("/account?show=bank", header("Sec-Fetch-Site", "same-origin"))
	says(t, "chosen", answer, text, http.StatusOK, " in bank")
	answer, text = b.ask("/account")
	says(t, "the account", answer, text, http.StatusOK, `<a href="/account?find">`)
	if strings.Contains(text, "show=shop") {
		t.Error("what is not asked for is found")
	}
	answer, text = b.ask("/account?find")
	says(t, "found", answer, text, http.StatusOK, `<a href="/account?show=shop">shop</a>`)
	b.ask("/account?show=")
	names = []string{"shop"}
	answer, text = b.ask("/past")
	says(t, "one", answer, text, http.StatusOK, " in shop")
	if answer.URL.Path != "/past" {
		t.Errorf("it led to %s", answer.URL)
	}
	names = []string{"none"} // which may not be seen all the same
	b.ask("/account?show=*")
	answer, text = b.ask("/")
	says(t, "one that is wrong", answer, text, http.StatusForbidden, "Choose a namespace that you may see")
	w.issuer.LogsIn(issuer.Claims{"sub": "ben"})
	answer, text = w.browser().ask("/", asProgram)
	says(t, "for a program", answer, text, http.StatusUnauthorized, `"error"`)
}
