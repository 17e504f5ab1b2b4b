package hosted

import (
	"maps"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/spillway-dev/spillway/internal/lab/testenv/issuer"
)

// A person who logs in comes back to the page that she had opened, and is who the issuer says,
// with the groups that the server may impersonate.
func TestLogin(t *testing.T) {
	w := login(t)
	b := w.browser()
	answer, text := b.ask("/?all")
	says(t, "after the login", answer, text, http.StatusOK, "cluster of oidc:anna with oidc:ops in ")
	if got := answer.URL.RequestURI(); got != "/?all" {
		t.Errorf("it led back to %s", got)
	}
	if strings.Contains(text, "others") {
		t.Error("she is in a group that the server may not impersonate")
	}
	for _, c := range []string{sessionCookie} {
		if b.cookie(c) == nil || strings.Contains(b.cookie(c).Value, "anna") {
			t.Errorf("cookie %s: %v", c, b.cookie(c))
		}
	}
	if c := b.cookie(loginCookie); c != nil {
		t.Errorf("the cookie of the login is left: %v", c)
	}
	before := w.issuer.Asked("/token")
	b.ask("/past")
	if w.issuer.Asked("/token") != before || w.issuer.Asked("/.well-known/openid-configuration") != 1 {
		t.Error("the issuer is asked for each page")
	}
}

// Cookies are kept from scripts, from other sites and from connections without TLS.
func TestCookies(t *testing.T) {
	w := login(t)
	b := w.browser()
	b.stays()
	answer, _ := b.ask("/")
	for range 2 {
		for _, c := range answer.Cookies {
			if !c.HttpOnly || !c.Secure || c.SameSite != http.SameSiteLaxMode || c.Path != "/" || c.Domain != "" || !strings.HasPrefix(c.Name, "__Host-") {
				t.Errorf("cookie %+v", c)
			}
		}
		answer, _ = b.ask(answer.Header.Get("Location"))
		if to := answer.Header.Get("Location"); strings.HasPrefix(to, w.server.URL) {
			answer, _ = b.ask(to)
		}
	}
	if b.cookie(sessionCookie) == nil {
		t.Error("no session has begun")
	}
	for _, name := range []string{"Content-Security-Policy", "Strict-Transport-Security", "X-Content-Type-Options"} {
		if answer.Header.Get(name) == "" {
			t.Errorf("no %s", name)
		}
	}
}

// What an issuer or another server in its place says wrong lets no one in.
func TestLoginRefused(t *testing.T) {
	w := login(t)
	past := func(d time.Duration) float64 { return float64(w.clock.Now().Add(-d).Unix()) }
	changed := func(name string, value any) func() {
		return func() { w.issuer.Changes(func(c issuer.Claims) { c[name] = value }) }
	}
	for name, test := range map[string]struct {
		given func()
		want  string
	}{
		"refused by the issuer":  {func() { w.issuer.Refuses("access_denied") }, "access_denied"},
		"nonce of another login": {changed("nonce", "another"), "for another login"},
		"no nonce":               {func() { w.issuer.Changes(func(c issuer.Claims) { delete(c, "nonce") }) }, "for another login"},
		"audience of another":    {changed("aud", "another"), "not accepted"},
		"another issuer":         {changed("iss", "https://another.example.com"), "not accepted"},
		"expired":                {changed("exp", past(time.Minute)), "not accepted"},
		"no end":                 {func() { w.issuer.Changes(func(c issuer.Claims) { delete(c, "exp") }) }, "not accepted"},
		"forged signature":       {func() { w.issuer.Forges(true) }, "not accepted"},
		"no name":                {changed("sub", ""), "no claim"},
		"name of the wrong kind": {changed("sub", 7), "not accepted"},
		"name of Kubernetes":     {changed("sub", "system:kube-controller-manager"), "only Kubernetes gives out"},
		"group of Kubernetes":    {changed("groups", []string{"ops", "system:masters"}), "only Kubernetes gives out"},
		"groups of no kind":      {changed("groups", 7), "no list of names"},
		"name with a line":       {changed("sub", "anna\nImpersonate-Group: x"), "cannot be the name"},
		"name with a blank":      {changed("sub", " anna"), "cannot be the name"},
		"long name":              {changed("sub", strings.Repeat("a", 300)), "cannot be the name"},
		"wrong secret":           {func() { w.pages.Login.ClientSecret = func() (string, error) { return "wrong", nil } }, "invalid_client"},
	} {
		t.Run(name, func(t *testing.T) {
			secret := w.pages.Login.ClientSecret
			defer func() {
				w.issuer.Refuses("")
				w.issuer.Changes(nil)
				w.issuer.Forges(false)
				w.pages.Login.ClientSecret = secret
			}()
			test.given()
			b := w.browser()
			answer, text := b.ask("/")
			says(t, name, answer, text, http.StatusForbidden, test.want)
			if b.cookie(sessionCookie) != nil {
				t.Error("there is a session")
			}
			if opened, _ := w.looks(); len(opened) > 0 {
				t.Errorf("something was shown: %v", opened)
			}
		})
	}
}

// Keys that the issuer has replaced are found out about; those of before are not accepted.
func TestIssuerRotatesKeys(t *testing.T) {
	w := login(t)
	for range 3 {
		answer, text := w.browser().ask("/")
		says(t, "after a rotation", answer, text, http.StatusOK, "cluster of oidc:anna")
		w.issuer.Rotate()
	}
}

// begins opens a page in a browser, up to the page of the issuer, and returns where that leads.
func (b *browser) begins() string {
	b.w.t.Helper()
	b.stays()
	answer, _ := b.ask("/")
	answer, _ = b.ask(answer.Header.Get("Location"))
	b.follows()
	return answer.Header.Get("Location")
}

// An answer of the issuer is for the browser that has asked, once, and for a while.
func TestCallbacks(t *testing.T) {
	w := login(t)
	t.Run("of another browser", func(t *testing.T) {
		attacker, victim := w.browser(), w.browser()
		victim.begins()
		answer, text := victim.ask(attacker.begins())
		says(t, "the state of another", answer, text, http.StatusForbidden, "not begun in this browser")
		answer, text = w.browser().ask(attacker.begins())
		says(t, "without a login", answer, text, http.StatusForbidden, "not begun in this browser")
	})
	t.Run("twice", func(t *testing.T) {
		b := w.browser()
		to := b.begins()
		kept := *b.cookie(loginCookie)
		b.ask(to)
		if b.cookie(sessionCookie) == nil {
			t.Fatal("the first did not let in")
		}
		again := w.browser()
		again.Jar.SetCookies(w.pages.URL, []*http.Cookie{{Name: kept.Name, Value: kept.Value, Path: "/", Secure: true}})
		answer, text := again.ask(to)
		says(t, "the same code again", answer, text, http.StatusForbidden, "invalid_grant")
		answer, text = b.ask(to)
		says(t, "again in the browser that is in", answer, text, http.StatusOK, "cluster of oidc:anna")
	})
	t.Run("late", func(t *testing.T) {
		b := w.browser()
		to := b.begins()
		w.clock.Step(loginTime)
		answer, text := b.ask(to)
		says(t, "a login that took long", answer, text, http.StatusForbidden, "took too long")
	})
	t.Run("of another issuer", func(t *testing.T) {
		b := w.browser()
		answer, text := b.ask(b.begins() + "&iss=" + url.QueryEscape("https://another.example.com"))
		says(t, "an answer of another issuer", answer, text, http.StatusForbidden, "another issuer")
	})
	t.Run("a text with HTML", func(t *testing.T) {
		b := w.browser()
		at, _ := url.Parse(b.begins())
		query := at.Query()
		query.Set("error", "<script>alert(1)</script>")
		at.RawQuery = query.Encode()
		answer, text := b.ask(at.String())
		says(t, "an error", answer, text, http.StatusForbidden, "&lt;script&gt;")
	})
}

// It leads back to a page of this server, whatever was opened.
func TestLoginLeadsBackHere(t *testing.T) {
	for path, want := range map[string]string{"/past?x=1": "/past?x=1", "//evil.example.com/": "/evil.example.com/", "/\\evil": "/evil", "": "/"} {
		if got := local(path); got != want {
			t.Errorf("%q leads to %q", path, got)
		}
	}
}

// Sessions end: without use, at the latest, at a logout, and when the server starts again.
func TestSessionsEnd(t *testing.T) {
	w := login(t)
	program := func(b *browser) int {
		answer, _ := b.ask("/", asProgram)
		return answer.StatusCode
	}
	b := w.browser()
	b.ask("/")
	if got := program(b); got != http.StatusOK {
		t.Fatalf("status %d", got)
	}
	t.Run("idle", func(t *testing.T) {
		idle := w.browser()
		idle.ask("/")
		w.clock.Step(time.Hour - time.Minute)
		idle.ask("/", header("Sec-Fetch-Mode", "cors")) // what the script reads is no use
		w.clock.Step(time.Minute)
		if got := program(idle); got != http.StatusUnauthorized {
			t.Errorf("status %d", got)
		}
	})
	t.Run("at the latest", func(t *testing.T) {
		used := w.browser()
		used.ask("/")
		for range 15 {
			w.clock.Step(30 * time.Minute)
			if answer, text := used.ask("/past", asProgram, header("Sec-Fetch-Mode", "navigate")); answer.StatusCode != http.StatusOK {
				t.Fatalf("it ended before: %s", text)
			}
		}
		w.clock.Step(30 * time.Minute)
		if got := program(used); got != http.StatusUnauthorized {
			t.Errorf("status %d", got)
		}
	})
	t.Run("at a logout", func(t *testing.T) {
		out := w.browser()
		out.ask("/")
		_, text := out.ask("/account")
		kept := *out.cookie(sessionCookie)
		_, token, _ := strings.Cut(text, `name="token" value="`)
		token, _, _ = strings.Cut(token, `"`)
		answer, text := out.form("/logout", url.Values{"token": {"forged"}})
		says(t, "a forged token", answer, text, http.StatusForbidden, "not sent by these pages")
		answer, text = out.form("/logout", url.Values{"token": {token}}, header("Origin", "https://evil.example.com"))
		says(t, "another site", answer, text, http.StatusForbidden, "not sent by these pages")
		answer, text = out.form("/logout", url.Values{"token": {token}})
		says(t, "a logout", answer, text, http.StatusOK, "logged out")
		if out.cookie(sessionCookie) != nil || program(out) != http.StatusUnauthorized {
			t.Error("the session is left")
		}
		thief := w.browser()
		thief.Jar.SetCookies(w.pages.URL, []*http.Cookie{{Name: kept.Name, Value: kept.Value, Path: "/", Secure: true}})
		if got := program(thief); got != http.StatusUnauthorized {
			t.Errorf("a copy of the cookie lets in after the logout: status %d", got)
		}
	})
	t.Run("if too many have ended", func(t *testing.T) {
		many := w.browser()
		many.ask("/")
		s := w.pages.Login.safe
		for range endedSessions + 1 {
			s.end(randomText(), w.clock.Now(), w.clock.Now().Add(time.Hour))
		}
		if len(s.ended) > endedSessions || program(many) != http.StatusUnauthorized {
			t.Errorf("%d are remembered, and a session is left", len(s.ended))
		}
	})
}

// A cookie that was changed, that is for something else, or that another server has sealed, is
// none.
func TestForgedCookies(t *testing.T) {
	w, other := login(t), login(t)
	b, visitor := w.browser(), other.browser()
	b.begins()
	begun := b.cookie(loginCookie).Value
	b.ask("/")
	visitor.ask("/")
	value := b.cookie(sessionCookie).Value
	middle := len(value) / 2
	forged := map[string]string{
		"changed": value[:middle] + string(value[middle]^1) + value[middle+1:], "shortened": value[:len(value)-1], "empty": "", "text": "anna",
		"of another server": visitor.cookie(sessionCookie).Value, "of a login": begun, "long": strings.Repeat("A", 8000),
	}
	for _, name := range slices.Sorted(maps.Keys(forged)) {
		answer, text := w.browser().ask("/", asProgram, func(r *http.Request) { r.Header.Set("Cookie", sessionCookie+"="+forged[name]) })
		says(t, name, answer, text, http.StatusUnauthorized, "not logged in")
	}
	if answer, _ := w.browser().ask("/", asProgram, func(r *http.Request) { r.Header.Set("Cookie", sessionCookie+"="+value) }); answer.StatusCode != http.StatusOK {
		t.Errorf("the cookie itself: status %d", answer.StatusCode)
	}
}

// A name means what it means to kube-apiserver that is configured in the same way.
func TestClaims(t *testing.T) {
	w := login(t)
	for name, test := range map[string]struct {
		claims Claims
		token  issuer.Claims
		want   string
	}{
		"the issuer is the prefix":   {Claims{User: "sub"}, issuer.Claims{"sub": "anna"}, w.issuer.URL + "#anna"},
		"no prefix":                  {Claims{User: "sub", UserPrefix: NoPrefix}, issuer.Claims{"sub": "anna"}, "anna"},
		"an address has none":        {Claims{User: "email"}, issuer.Claims{"sub": "1", "email": "anna@example.com", "email_verified": true}, "anna@example.com"},
		"an address not verified":    {Claims{User: "email"}, issuer.Claims{"sub": "1", "email": "anna@example.com", "email_verified": false}, ""},
		"one group as a text":        {Claims{User: "sub", UserPrefix: NoPrefix, Groups: "groups"}, issuer.Claims{"sub": "anna", "groups": "ops"}, "anna with ops"},
		"a prefix of Kubernetes":     {Claims{User: "sub", UserPrefix: "system:"}, issuer.Claims{"sub": "admin"}, ""},
		"a group's too":              {Claims{User: "sub", UserPrefix: NoPrefix, Groups: "groups", GroupsPrefix: "system:"}, issuer.Claims{"sub": "anna", "groups": "masters"}, ""},
		"no groups without a claim":  {Claims{User: "sub", UserPrefix: NoPrefix}, issuer.Claims{"sub": "anna", "groups": "ops"}, "anna"},
		"no groups in the token":     {Claims{User: "sub", UserPrefix: NoPrefix, Groups: "groups"}, issuer.Claims{"sub": "anna"}, "anna"},
		"a list that is not of text": {Claims{User: "sub", UserPrefix: NoPrefix, Groups: "groups"}, issuer.Claims{"sub": "anna", "groups": []any{"ops", 7}}, ""},
	} {
		t.Run(name, func(t *testing.T) {
			w.pages.Login.Claims = test.claims.Of(w.issuer.URL)
			w.pages.Login.May = Groups{AllGroups}
			w.issuer.LogsIn(test.token)
			answer, text := w.browser().ask("/")
			if want := strings.TrimSuffix("cluster of "+test.want+" with", " with"); test.want != "" && !strings.Contains(text, want) || (answer.StatusCode == http.StatusOK) != (test.want != "") {
				t.Errorf("status %d, want %q: %s", answer.StatusCode, test.want, text)
			}
		})
	}
}

// The issuer is gone: a login says so, and who is in stays in.
func TestIssuerIsGone(t *testing.T) {
	w := login(t)
	b := w.browser()
	b.ask("/")
	late := w.browser()
	to := late.begins()
	w.issuer.Close()
	answer, text := late.ask(to)
	says(t, "a login", answer, text, http.StatusBadGateway, "ask the issuer")
	answer, text = b.ask("/")
	says(t, "a session", answer, text, http.StatusOK, "cluster of oidc:anna")
}
