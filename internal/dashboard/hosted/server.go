package hosted

import (
	"context"
	"errors"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/validation"
	"k8s.io/utils/clock"

	"github.com/spillway-dev/spillway/internal/dashboard"
)

const (
	// namespaceCookie is which namespace a person has chosen.
	namespaceCookie = "__Host-spillway-namespace"
	// logoutPurpose is what the token of the form to log out is sealed for.
	logoutPurpose = "logout"
	// remembered is how long a browser keeps the choice of a namespace.
	remembered = 30 * 24 * time.Hour
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
	Limits    Limits
	Clock     clock.WithTickerAndDelayedExecution
}

// Server has the pages of many people.
type Server struct {
	*Options

	looks *looks
	mux   *http.ServeMux
}

// New returns the pages. It looks on until the context ends.
func New(ctx context.Context, o *Options) (*Server, error) {
	if err := o.validate(); err != nil {
		return nil, err
	}
	s := &Server{Options: o, looks: newLooks(ctx, o.Limits, o.Clock, o.Open), mux: http.NewServeMux()}
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
	switch {
	case (o.Login == nil) == (o.Proxy == nil):
		return errors.New("people are known either by OpenID Connect or by an authenticating proxy: configure one of them, and not both")
	case o.URL == nil || o.URL.Scheme != "https" || o.URL.Host == "" || strings.Trim(o.URL.Path, "/") != "" || o.URL.RawQuery != "" || o.URL.User != nil:
		return errors.New("name the address at which browsers reach the dashboard: https://NAME, without a path")
	case o.Login != nil:
		return o.Login.prepare(o.URL, o.Clock.Now)
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

// caller is who asks, and her session if she has one here.
func (s *Server) caller(r *http.Request) (Person, *session, error) {
	if s.Proxy != nil {
		who, err := s.Proxy.who(r)
		return who, nil, err
	}
	found, err := s.Login.session(r)
	if err != nil {
		return Person{}, nil, err
	}
	return found.Person, found, nil
}

// admitted is who asks; the answer is written if that is not known.
func (s *Server) admitted(w http.ResponseWriter, r *http.Request) (Person, *session, bool) {
	who, session, err := s.caller(r)
	switch {
	case err == nil:
		if session != nil && isOpened(r) {
			s.Login.used(w, session)
		}
		return who, session, true
	case errors.Is(err, errNoSession) && dashboard.IsRead(r) && isOpened(r) && !dashboard.WantsJSON(r):
		if err = s.Login.begin(w, r, r.URL.RequestURI()); err != nil {
			s.refuse(w, r, err)
		}
	case errors.Is(err, errNoSession):
		dashboard.Fail(w, r, http.StatusUnauthorized, err.Error())
	default:
		dashboard.Fail(w, r, http.StatusForbidden, err.Error())
	}
	return Person{}, nil, false
}

// isOpened is true of a page that a person opens, and false of what a script reads without her.
func isOpened(r *http.Request) bool {
	mode := r.Header.Get("Sec-Fetch-Mode")
	return r.URL.Path != "/live" && (mode == "" || mode == "navigate")
}

// pages answers with the pages of who asks.
func (s *Server) pages(w http.ResponseWriter, r *http.Request) {
	who, session, ok := s.admitted(w, r)
	if !ok {
		return
	}
	found, leave, err := s.looks.enter(r.Context(), who, s.namespace(r))
	switch {
	case apierrors.IsForbidden(err) && dashboard.IsRead(r) && isOpened(r) && !dashboard.WantsJSON(r):
		s.writeAccount(w, who, session, s.namespace(r), http.StatusForbidden, err.Error()+". Name a namespace that you may see.")
		return
	case err != nil:
		s.refuse(w, r, err)
		return
	}
	defer leave()
	ctx, cancel := context.WithCancel(r.Context())
	defer cancel()
	defer context.AfterFunc(found.ctx, cancel)() //nolint:contextcheck // what is followed ends with the look
	if session != nil {
		defer s.Clock.AfterFunc(s.Login.Sessions.ends(session).Sub(s.Clock.Now()), cancel).Stop() // and with the session
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
	case errors.Is(err, errNotBegun), apierrors.IsForbidden(err):
		status = http.StatusForbidden
	case errors.As(err, &loginError{}):
		status = http.StatusForbidden
	}
	dashboard.Fail(w, r, status, err.Error())
}

// namespace is the one that is shown to a person.
func (s *Server) namespace(r *http.Request) string {
	c, err := r.Cookie(namespaceCookie)
	if err != nil || !isNamespace(c.Value) {
		return s.Namespace
	}
	return strings.TrimPrefix(c.Value, allNamespaces)
}

// allNamespaces is how the choice of all of them is kept.
const allNamespaces = "*"

func isNamespace(name string) bool {
	return name == allNamespaces || len(validation.ValidateNamespaceName(name, false)) == 0
}

// account shows who a person is, and takes her choice of a namespace.
func (s *Server) account(w http.ResponseWriter, r *http.Request) {
	who, session, ok := s.admitted(w, r)
	if !ok {
		return
	}
	if !r.URL.Query().Has("show") {
		s.writeAccount(w, who, session, s.namespace(r), http.StatusOK, "")
		return
	}
	chosen := strings.TrimSpace(r.URL.Query().Get("show"))
	if chosen == "" {
		chosen = allNamespaces
	}
	switch site := r.Header.Get("Sec-Fetch-Site"); {
	case !slices.Contains([]string{"", "none", "same-origin"}, site):
		dashboard.Fail(w, r, http.StatusForbidden, dashboard.ErrOrigin.Error())
	case !isNamespace(chosen):
		s.writeAccount(w, who, session, chosen, http.StatusBadRequest, "That cannot be a namespace; use lower-case letters, digits and -.")
	default:
		setCookie(w, namespaceCookie, chosen, remembered)
		http.Redirect(w, r, "/", http.StatusSeeOther)
	}
}

func (s *Server) writeAccount(w http.ResponseWriter, who Person, of *session, namespace string, status int, problem string) {
	a := dashboard.Account{User: who.User, Groups: who.Groups, Namespace: namespace, Problem: problem}
	if of != nil {
		a.Ends = s.Login.Sessions.ends(of)
		a.Token, _ = s.Login.safe.seal(logoutPurpose, of.ID) // it is short
	}
	dashboard.WriteAccount(w, status, &a)
}

// complete lets in who comes from the issuer.
func (s *Server) complete(w http.ResponseWriter, r *http.Request) {
	if err := s.Login.complete(w, r); err != nil {
		s.refuse(w, r, err)
	}
}

// logout ends a session.
func (s *Server) logout(w http.ResponseWriter, r *http.Request) {
	_, of, err := s.caller(r)
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
	if err := s.Login.safe.end(id, s.Clock.Now(), time.Unix(of.Began, 0).Add(s.Login.Sessions.Lifetime)); err != nil {
		s.refuse(w, r, err)
		return
	}
	setCookie(w, sessionCookie, "", 0)
	dashboard.Note(w, "Logged out", "You are logged out here. Open the page again to log in.")
}
