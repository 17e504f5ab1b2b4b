package hosted

import (
	"net/http"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/spillway-dev/spillway/internal/lab/testenv/issuer"
)

func withToken(token string) func(*http.Request) { return header("Authorization", "Bearer "+token) }

// A program reads with a token of the issuer, as the person that it names, and gets no session.
func TestProgramsReadByToken(t *testing.T) {
	w := login(t)
	b, token := w.browser(), w.issuer.Token()
	for _, path := range []string{"/", "/past", "/past?namespace=shop"} {
		answer, text := b.ask(path, asProgram, withToken(token))
		says(t, path, answer, text, http.StatusOK, "web-of-anna")
		if len(answer.Cookies) > 0 {
			t.Errorf("it is given cookies: %v", answer.Cookies)
		}
	}
	opened, _ := w.looks()
	if len(opened) != 2 || opened[0] != `["oidc:anna",["oidc:ops"],""]` || opened[1] != `["oidc:anna",["oidc:ops"],"shop"]` {
		t.Errorf("looks %v", opened)
	}
	answer, text := b.ask("/why/rolloutgroup/none?namespace=shop", asProgram, withToken(token))
	if answer.StatusCode == http.StatusUnauthorized {
		t.Errorf("status %d: %s", answer.StatusCode, text)
	}
	b.ask("/") // a browser with a session of anna
	w.issuer.LogsIn(issuer.Claims{"sub": "ben"})
	answer, text = b.ask("/", asProgram, withToken(w.issuer.Token()))
	says(t, "a token beside the cookie of another", answer, text, http.StatusOK, "web-of-ben")
}

// With a token nothing is done, and no page is shown: what a browser could be made to send is
// worth nothing.
func TestProgramsOnlyRead(t *testing.T) {
	w := login(t)
	b, token := w.browser(), w.issuer.Token()
	b.ask("/")
	const path = "/act/pause/rolloutgroup/web?namespace=shop"
	_, text := b.ask(path)
	_, of, _ := strings.Cut(text, `name="token" value="`)
	of, _, _ = strings.Cut(of, `"`)
	form := url.Values{"token": {of}, "version": {"7"}, "reason": {"x"}}
	answer, text := b.form(path, form, asProgram, withToken(token))
	says(t, "an act", answer, text, http.StatusBadRequest, "steer with the commands")
	answer, text = b.form("/logout", form, withToken(token))
	says(t, "a logout", answer, text, http.StatusForbidden, "not sent by these pages")
	answer, text = b.ask("/", withToken(token))
	says(t, "a page", answer, text, http.StatusBadRequest, "Accept: application/json")
	if len(w.done) > 0 {
		t.Errorf("done: %v", w.done)
	}
}

// A token that is not of this issuer for this client, or has expired, shows nothing.
func TestTokensRefused(t *testing.T) {
	w := login(t)
	changed := func(name string, value any) string {
		w.issuer.Changes(func(c issuer.Claims) {
			if c[name] = value; value == nil {
				delete(c, name)
			}
		})
		defer w.issuer.Changes(nil)
		return w.issuer.Token()
	}
	w.issuer.Forges(true)
	forged := w.issuer.Token()
	w.issuer.Forges(false)
	good := w.issuer.Token()
	parts := strings.Split(good, ".")
	other := strings.Split(changed("sub", "ben"), ".")
	for name, token := range map[string]string{
		"no token":                 "anna",
		"a forged signature":       forged,
		"no signature":             parts[0] + "." + parts[1] + ".",
		"the signature of another": parts[0] + "." + other[1] + "." + parts[2],
		"the algorithm none":       "eyJhbGciOiJub25lIiwidHlwIjoiSldUIn0." + parts[1] + ".",
		"another audience":         changed("aud", "another"),
		"another issuer":           changed("iss", "https://another.example.com"),
		"expired":                  changed("exp", w.clock.Now().Add(-time.Minute).Unix()),
		"expires now":              changed("exp", w.clock.Now().Unix()),
		"no end":                   changed("exp", nil),
		"no name":                  changed("sub", ""),
		"a name of Kubernetes":     changed("sub", "system:admin"),
		"a group of Kubernetes":    changed("groups", []string{"system:masters"}),
		"a cookie of a session":    func() string { b := w.browser(); b.ask("/account"); return b.cookie(sessionCookie).Value }(),
	} {
		for _, path := range []string{"/", "/live", "/account"} {
			answer, text := w.browser().ask(path, asProgram, withToken(token))
			says(t, name+" for "+path, answer, text, http.StatusUnauthorized, `"error"`)
			if !strings.HasPrefix(answer.Header.Get("WWW-Authenticate"), "Bearer") {
				t.Errorf("%s: it does not say how to authenticate", name)
			}
		}
	}
	if opened, _ := w.looks(); len(opened) > 0 {
		t.Errorf("something was shown: %v", opened)
	}
	answer, text := w.browser().ask("/", asProgram, header("Authorization", "Basic YW5uYTph"))
	says(t, "a password", answer, text, http.StatusUnauthorized, "not logged in")
}

// What a program follows ends when its token expires.
func TestFollowingEndsWithTheToken(t *testing.T) {
	w := login(t)
	token := w.issuer.Token()
	gone := w.browser().lives(t.Context(), withToken(token))
	w.clock.Step(time.Minute)
	<-gone
	answer, text := w.browser().ask("/live", withToken(token))
	says(t, "after its end", answer, text, http.StatusUnauthorized, "the token has expired")
}

// Behind a proxy its headers say who asks, and a token says nothing.
func TestTokensBehindAProxy(t *testing.T) {
	w := proxied(t, "127.0.0.0/8", "::1/128")
	answer, text := w.browser().ask("/", asProgram, withToken("x"), add("X-Forwarded-User", "anna"))
	says(t, "with a user", answer, text, http.StatusOK, "web-of-anna")
	answer, text = w.browser().ask("/", asProgram, withToken("x"))
	says(t, "without a user", answer, text, http.StatusForbidden, "X-Forwarded-User is empty")
}
