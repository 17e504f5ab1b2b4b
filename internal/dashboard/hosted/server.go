package hosted

import (
	"context"
	"errors"
	"net/http"
	"net/url"
	"strings"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/utils/clock"

	"github.com/spillway-dev/spillway/internal/dashboard"
)

const (
	// logoutPurpose is what the token of the form to log out is sealed for.
	logoutPurpose = "logout"
	// livePath is what a page that is open follows.
	livePath = "/live"
)

// Options say how the pages are served.
type Options struct {
	// URL is how browsers reach the pages.
	URL *url.URL
	// Login or Proxy says who asks; exactly one of them.
	Login *Login
	Proxy *Proxy
	// Namespace is the one that is shown until a person chooses another one, all if it is empty.
	Namespace string
	Open      Open
	// Namespaces are those that a person may see, as far as that can be found out; nil finds none.
	Namespaces func(ctx context.Context, who Person) ([]string, error)
	// Keys seal cookies and forms. Servers that have the same serve the same sessions; nil is of
	// this process alone.
	Keys   *Keys
	Limits Limits
	Clock  clock.WithTickerAndDelayedExecution
}

// Server has the pages of many people.
type Server struct {
	*Options

	looks *looks
	mux   *http.ServeMux
	// following and asking are the requests of each user under way.
	following, asking crowd[string]
}

// New returns the pages. It looks on until the context ends.
func New(ctx context.Context, o *Options) (*Server, error) {
	if err := o.validate(); err != nil {
		return nil, err
	}
	forms, err := o.Keys.forms()
	if err != nil {
		return nil, err
	}
	s := &Server{Options: o, looks: newLooks(ctx, o.Limits, o.Clock, o.Open, dashboard.NewShared(forms)), mux: http.NewServeMux()}
	s.mux.HandleFunc("GET /assets/{file}", dashboard.Asset)
	s.mux.HandleFunc("GET /account", s.account)
	s.mux.HandleFunc("/", s.pages)
	if o.Login != nil {
		s.mux.HandleFunc("GET "+callbackPath, s.complete)
		s.mux.HandleFunc("POST /logout", s.logout)
	}
	return s, nil
}

func (o *Options) validate() error {
	if o.Keys == nil {
		o.Keys = NewKeys()
	}
	switch {
	case (o.Login == nil) == (o.Proxy == nil):
		return errors.New("people are known either by OpenID Connect or by an authenticating proxy: configure one of them, and not both")
	case o.URL == nil || o.URL.Scheme != "https" || o.URL.Host == "" || strings.Trim(o.URL.Path, "/") != "" || o.URL.RawQuery != "" || o.URL.User != nil:
		return errors.New("name the address at which browsers reach the dashboard: https://NAME, without a path")
	case o.Login != nil:
		return o.Login.prepare(o.URL, o.Keys, o.Clock.Now)
	default:
		return o.Proxy.validate()
	}
}

// Looks is how many looks are open.
func (s *Server) Looks() int {
	s.looks.mu.Lock()
	defer s.looks.mu.Unlock()
	return len(s.looks.all)
}

// ServeHTTP implements [http.Handler].
func (s *Server) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	dashboard.Harden(w.Header())
	w.Header().Set("Strict-Transport-Security", "max-age=31536000")
	s.hurry(w, r)
	switch {
	case s.Proxy != nil && !s.Proxy.admits(r):
		dashboard.Fail(w, r, http.StatusForbidden, errNotProxy.Error())
	case !strings.EqualFold(r.Host, s.URL.Host):
		dashboard.Fail(w, r, http.StatusMisdirectedRequest, "this is served at "+s.URL.String()+" alone")
	case !dashboard.IsFromHere(r, s.URL.Scheme+"://"+s.URL.Host):
		dashboard.Fail(w, r, http.StatusForbidden, dashboard.ErrOrigin.Error())
	default:
		s.mux.ServeHTTP(w, r)
	}
}

// hurry ends the connection of a client that sends or reads slowly.
func (s *Server) hurry(w http.ResponseWriter, r *http.Request) {
	c, now := http.NewResponseController(w), clock.RealClock{}.Now()
	_ = c.SetWriteDeadline(now.Add(s.Limits.Answer)) // where there is no connection, there is no deadline
	if r.ContentLength != 0 {
		_ = c.SetReadDeadline(now.Add(s.Limits.Body)) // the same
	}
}

// visit is who asks.
type visit struct {
	Person

	// session is the one of a browser, nil of a program and behind a proxy.
	session *session
	// ends is when she is not let in any more, zero if that is not known here.
	ends time.Time
}

// caller is who asks.
func (s *Server) caller(r *http.Request) (*visit, error) {
	if s.Proxy != nil {
		who, err := s.Proxy.who(r)
		return &visit{Person: who}, err
	}
	if token, ok := bearer(r); ok {
		return s.Login.program(r, token)
	}
	found, err := s.Login.session(r)
	if err != nil {
		return nil, err
	}
	return &visit{found.Person, found, s.Login.Sessions.ends(found)}, nil
}

// admitted is who asks; the answer is written if that is not known.
func (s *Server) admitted(w http.ResponseWriter, r *http.Request) (*visit, bool) {
	v, err := s.caller(r)
	switch {
	case err == nil:
		if v.session != nil && isOpened(r) {
			s.Login.used(w, v.session)
		}
		return v, true
	case errors.Is(err, errNoSession) && dashboard.IsRead(r) && isOpened(r) && !dashboard.WantsJSON(r):
		if err = s.Login.begin(w, r, r.URL.RequestURI()); err != nil {
			s.refuse(w, r, err)
		}
	case errors.As(err, &tokenError{}):
		w.Header().Set("WWW-Authenticate", `Bearer error="invalid_token"`)
		dashboard.Fail(w, r, http.StatusUnauthorized, err.Error())
	case errors.Is(err, errNoSession):
		dashboard.Fail(w, r, http.StatusUnauthorized, err.Error())
	case s.Proxy == nil:
		s.refuse(w, r, err)
	default:
		dashboard.Fail(w, r, http.StatusForbidden, err.Error())
	}
	return nil, false
}

// isOpened is true of a page that a person opens, and false of what a script reads without her.
func isOpened(r *http.Request) bool {
	mode := r.Header.Get("Sec-Fetch-Mode")
	return r.URL.Path != livePath && (mode == "" || mode == "navigate")
}

// pages answers with the pages of who asks.
func (s *Server) pages(w http.ResponseWriter, r *http.Request) {
	v, ok := s.admitted(w, r)
	if !ok {
		return
	}
	depart, err := s.attend(v.User, r)
	if err != nil {
		s.refuse(w, r, err)
		return
	}
	defer depart()
	found, leave, err := s.looks.enter(r, v.Person, s.namespace(r))
	switch {
	case apierrors.IsForbidden(err) && dashboard.IsRead(r) && r.URL.Path != livePath && !dashboard.WantsJSON(r):
		s.offer(w, r, v, err)
		return
	case err != nil:
		s.refuse(w, r, err)
		return
	}
	defer leave()
	ctx, cancel := context.WithCancel(r.Context())
	defer cancel()
	defer context.AfterFunc(found.ctx, cancel)() //nolint:contextcheck // what is followed ends with the look
	if !v.ends.IsZero() {
		defer s.Clock.AfterFunc(v.ends.Sub(s.Clock.Now()), cancel).Stop() // and with the session
	}
	found.pages.ServeHTTP(w, r.WithContext(ctx))
}

// refuse answers with an error.
func (s *Server) refuse(w http.ResponseWriter, r *http.Request, err error) {
	status := http.StatusBadGateway
	switch {
	case errors.Is(err, errBusy), errors.Is(err, errLogins):
		status = http.StatusServiceUnavailable
		w.Header().Set("Retry-After", "60")
	case errors.Is(err, errManyPages), errors.Is(err, errManyRequests):
		status = http.StatusTooManyRequests
		w.Header().Set("Retry-After", "10")
	case errors.Is(err, errReads):
		status = http.StatusBadRequest
	case errors.Is(err, errNotBegun), apierrors.IsForbidden(err):
		status = http.StatusForbidden
	case errors.As(err, &loginError{}):
		status = http.StatusForbidden
	}
	dashboard.Fail(w, r, status, err.Error())
}

// complete lets in who comes from the issuer.
func (s *Server) complete(w http.ResponseWriter, r *http.Request) {
	if err := s.Login.complete(w, r); err != nil {
		s.refuse(w, r, err)
	}
}

// logout ends a session.
func (s *Server) logout(w http.ResponseWriter, r *http.Request) {
	of, err := s.Login.session(r)
	if err != nil {
		dashboard.Fail(w, r, http.StatusUnauthorized, err.Error())
		return
	}
	id := ""
	r.Body = http.MaxBytesReader(w, r.Body, 2*cookieBytes) //nolint:mnd // the token is shorter
	if !s.Login.safe.read(logoutPurpose, r.PostFormValue("token"), &id) || id != of.ID {
		dashboard.Fail(w, r, http.StatusForbidden, dashboard.ErrOrigin.Error())
		return
	}
	s.Login.safe.end(id, s.Clock.Now(), time.Unix(of.Began, 0).Add(s.Login.Sessions.Lifetime))
	setCookie(w, sessionCookie, "", 0)
	dashboard.Note(w, "Logged out", "You are logged out here. Open the page again to log in.")
}
