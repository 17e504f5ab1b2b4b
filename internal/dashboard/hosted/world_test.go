package hosted

import (
	"context"
	"errors"
	"io"
	"net/http"
	"net/http/cookiejar"
	"net/http/httptest"
	"net/url"
	"strings"
	"sync"
	"testing"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	apimeta "k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/utils/clock"
	clocktesting "k8s.io/utils/clock/testing"

	"github.com/spillway-dev/spillway/internal/dashboard"
	"github.com/spillway-dev/spillway/internal/describe"
	"github.com/spillway-dev/spillway/internal/describe/explain"
	"github.com/spillway-dev/spillway/internal/lab/testenv/issuer"
	"github.com/spillway-dev/spillway/rollout"
)

// world is a server on loopback, and what it has opened.
type world struct {
	t      *testing.T
	server *httptest.Server
	pages  *Server
	issuer *issuer.Issuer
	clock  *clocktesting.FakeClock

	mu     sync.Mutex
	opened []string
	open   int
	err    error
	done   []string
	// holds, if it is set, is called by a look before it ends.
	holds func(ctx context.Context, part func(describe.Partial))
}

// anna is a user of the issuer.
func anna() issuer.Claims {
	return issuer.Claims{"sub": "anna", "groups": []string{"ops", "others"}}
}

// login is a server at which people log in.
func login(t *testing.T, change ...func(*Options)) *world {
	t.Helper()
	w := &world{t: t, issuer: issuer.New(t, anna())}
	w.start(append([]func(*Options){func(o *Options) {
		o.Login = &Login{
			Issuer: w.issuer.URL, ClientID: w.issuer.ClientID, ClientSecret: func() (string, error) { return w.issuer.Secret, nil },
			Claims: Claims{User: "sub", UserPrefix: "oidc:", Groups: "groups", GroupsPrefix: "oidc:"}, May: Groups{"oidc:ops"},
			Sessions: Sessions{Lifetime: 8 * time.Hour, Idle: time.Hour}, HTTP: w.issuer.Client(),
		}
	}}, change...)...)
	w.issuer.GoesBy(w.clock.Now)
	return w
}

// start starts the server.
func (w *world) start(change ...func(*Options)) {
	w.t.Helper()
	w.clock = clocktesting.NewFakeClock(time.Now().Truncate(time.Second))
	w.server = httptest.NewUnstartedServer(http.HandlerFunc(func(out http.ResponseWriter, r *http.Request) { w.pages.ServeHTTP(out, r) }))
	w.server.StartTLS()
	w.t.Cleanup(w.server.Close)
	self, err := url.Parse(w.server.URL)
	if err != nil {
		w.t.Fatal(err)
	}
	o := &Options{URL: self, Open: w.source, Limits: DefaultLimits(), Clock: w.clock}
	for _, c := range change {
		c(o)
	}
	if w.pages, err = New(w.t.Context(), o); err != nil {
		w.t.Fatal(err)
	}
}

// source says who it was opened for.
func (w *world) source(ctx context.Context, who Person, namespace string) (*dashboard.Source, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.opened = append(w.opened, who.key(namespace))
	w.open++
	context.AfterFunc(ctx, func() {
		w.mu.Lock()
		defer w.mu.Unlock()
		w.open--
	})
	return &dashboard.Source{
		Place: "cluster of " + who.User + " with " + strings.Join(who.Groups, "+") + " in " + namespace, Namespace: namespace,
		Now: w.clock.Now, Changed: make(chan struct{}),
		Look: func(ctx context.Context, part func(describe.Partial)) (describe.Description, error) {
			if w.holds != nil {
				w.holds(ctx, part)
			}
			w.mu.Lock()
			defer w.mu.Unlock()
			return describe.Description{Units: []describe.Unit{{Ring: "zones", Ref: describe.Ref{Kind: "RolloutGroup", Namespace: "shop", Name: "web-of-" + strings.TrimPrefix(who.User, "oidc:")}, Phase: rollout.PhaseProgressing}}}, w.err
		},
		Named: func(namespace, object string) (describe.Ref, error) {
			return describe.Named(func() (apimeta.RESTMapper, error) { return apimeta.NewDefaultRESTMapper(nil), nil }, namespace, object)
		},
		Explain:  func(context.Context, describe.Ref) (explain.Chain, error) { return explain.Chain{}, nil },
		Steering: &steers{w, who},
	}, nil
}

func (w *world) looks() (opened []string, open int) {
	w.mu.Lock()
	defer w.mu.Unlock()
	return append([]string{}, w.opened...), w.open
}

func (w *world) fails(err error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.err = err
}

// steers notes what was done, and as whom.
type steers struct {
	world *world
	who   Person
}

func (*steers) Verbs(string) []string { return []string{"pause"} }

func (s *steers) Prepare(context.Context, dashboard.Wish) (dashboard.Prospect, error) {
	return dashboard.Prospect{Said: "paused", Version: "7"}, nil
}

func (s *steers) Do(_ context.Context, wish dashboard.Wish, _ string) (string, error) {
	s.world.mu.Lock()
	defer s.world.mu.Unlock()
	s.world.done = append(s.world.done, s.who.User+": "+wish.Reason)
	return "paused", nil
}

// browser is one that keeps cookies.
type browser struct {
	w *world
	*http.Client
}

func (w *world) browser() *browser {
	w.t.Helper()
	jar, err := cookiejar.New(nil)
	if err != nil {
		w.t.Fatal(err)
	}
	c := *w.server.Client()
	c.Jar = jar
	if w.issuer != nil { // one that accepts the certificates of both
		c.Transport = both{w.server.Client().Transport, w.issuer.Client().Transport, w.issuer.Listener.Addr().String()}
	}
	return &browser{w, &c}
}

// both asks the issuer or the server.
type both struct {
	server, issuer http.RoundTripper
	address        string
}

func (b both) RoundTrip(r *http.Request) (*http.Response, error) {
	if r.URL.Host == b.address {
		return b.issuer.RoundTrip(r)
	}
	return b.server.RoundTrip(r)
}

// reply is what a browser got.
type reply struct {
	StatusCode int
	Header     http.Header
	// URL is where it was led in the end.
	URL *url.URL
	// Cookies are those that it was given.
	Cookies []*http.Cookie
}

// ask asks for a page, or an address elsewhere.
func (b *browser) ask(address string, change ...func(*http.Request)) (reply, string) {
	b.w.t.Helper()
	if strings.HasPrefix(address, "/") {
		address = b.w.server.URL + address
	}
	r, err := http.NewRequestWithContext(b.w.t.Context(), http.MethodGet, address, http.NoBody)
	if err != nil {
		b.w.t.Fatal(err)
	}
	for _, c := range change {
		c(r)
	}
	answer, err := b.Do(r)
	if err != nil {
		b.w.t.Fatal(err)
	}
	defer answer.Body.Close()
	text, err := io.ReadAll(answer.Body)
	if err != nil {
		b.w.t.Fatal(err)
	}
	return reply{answer.StatusCode, answer.Header, answer.Request.URL, answer.Cookies()}, string(text)
}

// form sends a form as the pages of the server do.
func (b *browser) form(path string, form url.Values, change ...func(*http.Request)) (reply, string) {
	b.w.t.Helper()
	return b.ask(path, append([]func(*http.Request){func(r *http.Request) {
		r.Method, r.Body, r.ContentLength = http.MethodPost, io.NopCloser(strings.NewReader(form.Encode())), int64(len(form.Encode()))
		r.Header.Set("Content-Type", "application/x-www-form-urlencoded")
		r.Header.Set("Origin", b.w.server.URL)
	}}, change...)...)
}

// stays has a browser not follow where it is led.
func (b *browser) stays() {
	b.CheckRedirect = func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }
}

func (b *browser) follows() { b.CheckRedirect = nil }

func (b *browser) cookie(name string) *http.Cookie {
	for _, c := range b.Jar.Cookies(b.w.pages.URL) {
		if c.Name == name {
			return c
		}
	}
	return nil
}

// header sets one.
func header(name, value string) func(*http.Request) {
	return func(r *http.Request) { r.Header.Set(name, value) }
}

// reads as a program does.
var asProgram = header("Accept", "application/json")

// says fails unless a page has a status and a text.
func says(t *testing.T, what string, answer reply, text string, status int, want string) {
	t.Helper()
	if answer.StatusCode != status || !strings.Contains(text, want) {
		t.Errorf("%s: status %d, want %d with %q: %s", what, answer.StatusCode, status, want, text)
	}
}

var _ clock.WithTickerAndDelayedExecution = (*clocktesting.FakeClock)(nil)

// forbidden has only the namespaces shop and bank be seen.
func forbidden(open Open) Open {
	return func(ctx context.Context, who Person, namespace string) (*dashboard.Source, error) {
		if namespace != "shop" && namespace != "bank" {
			return nil, apierrors.NewForbidden(schema.GroupResource{Resource: "deployments"}, "", errors.New("not for you"))
		}
		return open(ctx, who, namespace)
	}
}

// namesOf are the namespaces that a person may see.
func namesOf(names *[]string) func(context.Context, Person) ([]string, error) {
	return func(context.Context, Person) ([]string, error) { return *names, nil }
}
