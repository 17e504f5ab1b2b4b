package hosted

import (
	"bufio"
	"context"
	"crypto/rand"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strings"
	"testing"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/spillway-dev/spillway/internal/lab/testenv"
	"github.com/spillway-dev/spillway/internal/lab/testenv/issuer"
)

func randomText() string { return rand.Text() }

// All who are the same person share a look; another person, another group or another namespace
// has one of its own.
func TestLooksAreShared(t *testing.T) {
	w := login(t)
	a, b := w.browser(), w.browser()
	for range 3 {
		a.ask("/")
		b.ask("/past")
	}
	if opened, open := w.looks(); len(opened) != 1 || open != 1 {
		t.Fatalf("looks %v, %d open", opened, open)
	}
	w.issuer.LogsIn(issuer.Claims{"sub": "anna"})
	w.browser().ask("/")
	w.issuer.LogsIn(issuer.Claims{"sub": "ben", "groups": []string{"ops"}})
	_, text := w.browser().ask("/")
	if !strings.Contains(text, "cluster of oidc:ben with oidc:ops") {
		t.Errorf("ben sees %s", text)
	}
	if opened, open := w.looks(); len(opened) != 3 || open != 3 {
		t.Errorf("looks %v, %d open", opened, open)
	}
}

// Looks that were begun at the same time have the same versions; what one person has seen is
// not shown to another all the same.
func TestLooksAreApart(t *testing.T) {
	w := login(t)
	people := map[string]*browser{}
	for _, name := range []string{"anna", "ben", "carl"} {
		w.issuer.LogsIn(issuer.Claims{"sub": name})
		people[name] = w.browser()
		people[name].ask("/")
	}
	for range 2 {
		for name, b := range people {
			for _, path := range []string{"/", "/?all", "/past"} {
				answer, text := b.ask(path)
				says(t, path+" of "+name, answer, text, http.StatusOK, "web-of-"+name)
				if strings.Count(text, "web-of-") != strings.Count(text, "web-of-"+name) {
					t.Errorf("%s shows %s what is of another: %s", path, name, text)
				}
			}
		}
	}
}

// lives is a page that follows the cluster.
func (b *browser) lives(ctx context.Context, change ...func(*http.Request)) (gone <-chan struct{}) {
	b.w.t.Helper()
	r, err := http.NewRequestWithContext(ctx, http.MethodGet, b.w.server.URL+"/live?version=1", http.NoBody)
	if err != nil {
		b.w.t.Fatal(err)
	}
	for _, c := range change {
		c(r)
	}
	answer, err := b.Do(r) //nolint:bodyclose // below, once it has ended
	if err != nil || answer.StatusCode != http.StatusOK {
		b.w.t.Fatalf("%v: %v", answer, err)
	}
	ended := make(chan struct{})
	lines := bufio.NewScanner(answer.Body)
	lines.Scan()
	go func() {
		defer close(ended)
		defer answer.Body.Close()
		for lines.Scan() {
		}
	}()
	return ended
}

// A viewer who is away costs nothing: her look is closed. So is one that was open for long,
// with what follows it, so that permissions that were withdrawn end.
func TestLooksEnd(t *testing.T) {
	w := login(t)
	b := w.browser()
	b.ask("/")
	ctx, away := context.WithCancel(t.Context())
	gone := b.lives(ctx)
	w.clock.Step(w.pages.Limits.Away * 2)
	if _, open := w.looks(); open != 1 {
		t.Fatal("it is closed while a page follows it")
	}
	away()
	<-gone
	closed := func(what string) {
		t.Helper()
		testenv.Eventually(t, func(context.Context) error {
			w.clock.Step(w.pages.Limits.Away)
			if _, open := w.looks(); open != 0 || w.pages.Looks() != 0 {
				return fmt.Errorf("%s: %d are open", what, open)
			}
			return nil
		})
	}
	closed("the viewer is away")

	gone = b.lives(t.Context())
	w.clock.Step(w.pages.Limits.Life)
	<-gone // nothing else has ended it
	closed("it was open for long")
}

// A page that follows ends with the session.
func TestFollowingEndsWithTheSession(t *testing.T) {
	w := login(t, func(o *Options) { o.Limits.Life = 24 * time.Hour })
	b := w.browser()
	b.ask("/")
	gone := b.lives(t.Context())
	w.clock.Step(time.Hour)
	<-gone
	if answer, _ := b.ask("/live"); answer.StatusCode != http.StatusUnauthorized {
		t.Errorf("status %d", answer.StatusCode)
	}
}

// There are only so many looks, and only so many of one user.
func TestLooksHaveABound(t *testing.T) {
	w := login(t, func(o *Options) { o.Limits.Looks, o.Limits.OfOne = 3, 2 })
	in := func(name string) *browser {
		w.issuer.LogsIn(issuer.Claims{"sub": name})
		b := w.browser()
		b.ask("/account")
		return b
	}
	one := in("one")
	for i := range 5 { // those without viewers make room
		one.ask(fmt.Sprintf("/account?show=n%d", i))
	}
	if _, open := w.looks(); w.pages.Looks() != 2 {
		t.Errorf("%d looks of one user, %d open", w.pages.Looks(), open)
	}
	one.lives(t.Context())
	one.ask("/account?show=other")
	one.lives(t.Context())
	answer, text := one.ask("/account?show=third")
	says(t, "a third of one user", answer, text, http.StatusServiceUnavailable, "too many people")
	if answer.Header.Get("Retry-After") == "" {
		t.Error("it does not say when to try again")
	}
	in("two").lives(t.Context())
	answer, text = in("three").ask("/")
	says(t, "one too many", answer, text, http.StatusServiceUnavailable, "too many people")
	if w.pages.Looks() != 3 {
		t.Errorf("%d looks", w.pages.Looks())
	}
}

// Who may not see the cluster is asked for a namespace that she may see.
func TestChoosingANamespace(t *testing.T) {
	w := login(t)
	w.fails(apierrors.NewForbidden(schema.GroupResource{Resource: "deployments"}, "", errors.New("not for you")))
	b := w.browser()
	answer, text := b.ask("/")
	says(t, "all namespaces", answer, text, http.StatusForbidden, "Name a namespace that you may see")
	answer, text = b.ask("/", asProgram)
	says(t, "for a program", answer, text, http.StatusForbidden, `"error"`)
	testenv.Eventually(t, func(context.Context) error { // a look ends beside the answer
		if _, open := w.looks(); open != 0 || w.pages.Looks() != 0 {
			return fmt.Errorf("%d looks are open that show nothing", open)
		}
		return nil
	})
	w.fails(nil)
	answer, text = b.ask("/account?show=Shop!")
	says(t, "no name", answer, text, http.StatusBadRequest, "cannot be a namespace")
	answer, text = b.ask("/account?show=other", header("Sec-Fetch-Site", "cross-site"))
	says(t, "chosen by another site", answer, text, http.StatusForbidden, "not sent by these pages")
	answer, text = b.ask("/account?show=shop")
	says(t, "a namespace", answer, text, http.StatusOK, " in shop")
	answer, text = b.ask("/account?show=")
	says(t, "all again", answer, text, http.StatusOK, "with oidc:ops in ")
	if strings.Contains(text, " in shop") {
		t.Error("it is still one")
	}
}

// What is done is done as the person, and only by her own form.
func TestSteering(t *testing.T) {
	w := login(t)
	b := w.browser()
	b.ask("/")
	const path = "/act/pause/rolloutgroup/web?namespace=shop"
	_, text := b.ask(path)
	_, token, _ := strings.Cut(text, `name="token" value="`)
	token, _, _ = strings.Cut(token, `"`)
	form := url.Values{"token": {token}, "version": {"7"}, "reason": {"incident 42"}}
	for name, origin := range map[string]string{"another site": "https://evil.example.com", "no origin": "", "a null origin": "null", "the same host in the clear": strings.Replace(w.server.URL, "https", "http", 1)} {
		answer, text := b.form(path, form, header("Origin", origin))
		says(t, name, answer, text, http.StatusForbidden, "not sent by these pages")
	}
	answer, text := b.form(path, form, header("Sec-Fetch-Site", "same-site"))
	says(t, "a site beside this one", answer, text, http.StatusForbidden, "not sent by these pages")
	answer, text = b.form(path, url.Values{"token": {"forged"}, "version": {"7"}, "reason": {"x"}})
	says(t, "a forged token", answer, text, http.StatusForbidden, "not sent by these pages")
	w.issuer.LogsIn(issuer.Claims{"sub": "ben"})
	ben := w.browser()
	ben.ask("/")
	answer, text = ben.form(path, form)
	says(t, "the token of another", answer, text, http.StatusForbidden, "not sent by these pages")
	answer, text = w.browser().form(path, form)
	says(t, "without a session", answer, text, http.StatusUnauthorized, "not logged in")
	answer, text = b.form(path, url.Values{"token": {token}, "version": {"7"}, "reason": {strings.Repeat("x", 1<<20)}})
	says(t, "a large body", answer, text, http.StatusBadRequest, "cannot be read")
	if len(w.done) > 0 {
		t.Fatalf("done: %v", w.done)
	}
	b.form(path, form)
	if len(w.done) != 1 || w.done[0] != "oidc:anna: incident 42" {
		t.Errorf("done: %v", w.done)
	}
}

// A request by another name is not answered, and one without a session gets nothing.
func TestWithoutASession(t *testing.T) {
	w := login(t)
	answer, text := w.browser().ask("/", func(r *http.Request) { r.Host = "evil.example.com" })
	says(t, "another name", answer, text, http.StatusMisdirectedRequest, "is served at")
	for _, path := range []string{"/", "/live", "/why/deployment/web?namespace=shop", "/next", "/account", "/act/pause/deployment/web"} {
		answer, text := w.browser().ask(path, asProgram)
		says(t, path, answer, text, http.StatusUnauthorized, "not logged in")
	}
	for _, name := range []string{"X-Forwarded-User", "X-Remote-User", "Impersonate-User", "Authorization"} {
		answer, text := w.browser().ask("/", asProgram, header(name, "anna"))
		says(t, name, answer, text, http.StatusUnauthorized, "not logged in")
	}
	if opened, _ := w.looks(); len(opened) > 0 {
		t.Errorf("something was read: %v", opened)
	}
	answer, text = w.browser().ask("/assets/style.css")
	says(t, "the style of the page that says so", answer, text, http.StatusOK, "body")
}

// A body that comes slowly ends the connection, of whatever method.
func TestSlowBody(t *testing.T) {
	w := login(t, func(o *Options) { o.Limits.Body = 50 * time.Millisecond })
	for _, method := range []string{http.MethodPost, http.MethodGet} {
		c, err := tls.Dial("tcp", w.server.Listener.Addr().String(), &tls.Config{InsecureSkipVerify: true})
		if err != nil {
			t.Fatal(err)
		}
		defer c.Close()
		_, _ = fmt.Fprintf(c, "%s /logout HTTP/1.1\r\nHost: %s\r\nOrigin: %s\r\nContent-Type: application/x-www-form-urlencoded\r\nContent-Length: 100\r\n\r\ntoken=", method, w.pages.URL.Host, w.server.URL)
		if _, err := io.Copy(io.Discard, c); err != nil { // it ends because the server ends it
			t.Logf("%s: %v", method, err)
		}
	}
}
