package hosted

import (
	"context"
	"crypto/hmac"
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/netip"
	"net/url"
	"strings"
	"sync"
	"time"

	"github.com/coreos/go-oidc/v3/oidc"
	"golang.org/x/oauth2"

	"github.com/spillway-dev/spillway/internal/dashboard"
	"github.com/spillway-dev/spillway/internal/message"
)

const (
	callbackPath = "/login/callback"
	// loginTime is how long a login may take.
	loginTime = 10 * time.Minute
	// loginsAtOnce is how many the issuer is asked about at a time, loginsOfAddress how many of
	// them by one address; issuerTime how long it may take, issuerBytes how much it may say.
	loginsAtOnce, loginsOfAddress, issuerTime, issuerBytes = 20, 10, 10 * time.Second, 1 << 20
	// pathBytes is how long the address may be to which a login leads back.
	pathBytes = 1000
)

// Login lets people in who have logged in at an issuer of OpenID Connect: by the code flow
// with PKCE, a state and a nonce.
type Login struct {
	Issuer, ClientID string
	// ClientSecret is read for each login; nil of a client that has none.
	ClientSecret func() (string, error)
	Scopes       []string
	Claims       Claims
	May          Groups
	Sessions     Sessions
	// HTTP asks the issuer.
	HTTP *http.Client

	self *url.URL
	now  func() time.Time
	safe *safe
	busy chan struct{}
	// asking are those who ask the issuer, by their addresses.
	asking crowd[netip.Prefix]

	mu       sync.Mutex
	provider *oidc.Provider
}

// begun is a login under way.
type begun struct {
	State    string `json:"s"`
	Nonce    string `json:"n"`
	Verifier string `json:"v"`
	To       string `json:"t"`
	Until    int64  `json:"u"`
}

var (
	errLogins   = errors.New("too many people log in at the moment; try again in a minute")
	errNotBegun = errors.New("this login was not begun in this browser, or it took too long; open the page again to log in")
)

// prepare checks what the login needs.
func (l *Login) prepare(self *url.URL, keys *Keys, now func() time.Time) error {
	at, err := url.Parse(l.Issuer)
	switch {
	case err != nil || at.Scheme != "https" || at.Host == "":
		return fmt.Errorf("%q is not the address of an issuer; it begins with https://", l.Issuer)
	case l.ClientID == "":
		return errors.New("name the client as which the issuer knows the dashboard")
	case l.Claims.User == "":
		return errors.New("name the claim with the name of the user")
	case l.Sessions.Lifetime <= 0 || l.Sessions.Idle <= 0:
		return errors.New("sessions have to end: their times must be more than 0")
	}
	l.self, l.now, l.busy, l.Claims = self, now, make(chan struct{}, loginsAtOnce), l.Claims.Of(l.Issuer)
	asked := *l.HTTP
	asked.Transport, asked.Timeout = short{asked.Transport}, issuerTime
	l.HTTP = &asked
	l.safe, err = newSafe(keys)
	return err
}

// short reads of an answer only so much.
type short struct{ http.RoundTripper }

// RoundTrip implements [http.RoundTripper].
func (s short) RoundTrip(r *http.Request) (*http.Response, error) {
	answer, err := s.RoundTripper.RoundTrip(r)
	if err == nil {
		answer.Body = struct {
			io.Reader
			io.Closer
		}{io.LimitReader(answer.Body, issuerBytes), answer.Body}
	}
	return answer, err //nolint:wrapcheck // stands in for the transport
}

// session is that of a request.
func (l *Login) session(r *http.Request) (*session, error) {
	s := &session{}
	if !l.safe.unseal(r, sessionCookie, s) || s.User == "" || !l.now().Before(l.Sessions.ends(s)) || l.safe.hasEnded(s) {
		return nil, errNoSession
	}
	return s, nil
}

// used notes that a person has opened a page, if it was not noted a short while ago.
func (l *Login) used(w http.ResponseWriter, s *session) {
	if now := l.now(); now.Sub(time.Unix(s.Used, 0)) > l.Sessions.Idle/10 { //nolint:mnd // not with each page
		s.Used = now.Unix()
		_ = l.keep(w, s) // it was kept before
	}
}

func (l *Login) keep(w http.ResponseWriter, s *session) error {
	text, err := l.safe.seal(sessionCookie, s)
	if err == nil {
		setCookie(w, sessionCookie, text, l.Sessions.Lifetime)
	}
	return err
}

// issuer finds out where the issuer has what, once.
func (l *Login) issuer(ctx context.Context) (*oauth2.Config, *oidc.IDTokenVerifier, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.provider == nil {
		found, err := oidc.NewProvider(oidc.ClientContext(ctx, l.HTTP), l.Issuer)
		if err != nil {
			return nil, nil, fmt.Errorf("reach the issuer %s: %w", l.Issuer, err)
		}
		l.provider = found
	}
	config := &oauth2.Config{
		ClientID: l.ClientID, Endpoint: l.provider.Endpoint(), RedirectURL: l.self.JoinPath(callbackPath).String(),
		Scopes: append([]string{oidc.ScopeOpenID}, l.Scopes...),
	}
	if l.ClientSecret != nil {
		var err error
		if config.ClientSecret, err = l.ClientSecret(); err != nil {
			return nil, nil, err
		}
	}
	return config, l.provider.Verifier(&oidc.Config{ClientID: l.ClientID, Now: l.now}), nil
}

// enter takes one of the places of those who ask the issuer.
func (l *Login) enter(r *http.Request) (leave func(), err error) {
	from, _ := netip.ParseAddrPort(r.RemoteAddr) // the server has set it
	depart, ok := l.asking.enter(client(from.Addr()), loginsOfAddress)
	if !ok {
		return nil, errLogins
	}
	select {
	case l.busy <- struct{}{}:
		return func() { <-l.busy; depart() }, nil
	default:
		depart()
		return nil, errLogins
	}
}

// begin leads a person to the issuer, and from there back to a path.
func (l *Login) begin(w http.ResponseWriter, r *http.Request, to string) error {
	leave, err := l.enter(r)
	if err != nil {
		return err
	}
	defer leave()
	config, _, err := l.issuer(r.Context())
	if err != nil {
		return err
	}
	if len(to) > pathBytes {
		to = "/"
	}
	b := begun{State: rand.Text(), Nonce: rand.Text(), Verifier: oauth2.GenerateVerifier(), To: local(to), Until: l.now().Add(loginTime).Unix()}
	text, err := l.safe.seal(loginCookie, &b)
	if err != nil {
		return err
	}
	setCookie(w, loginCookie, text, loginTime)
	http.Redirect(w, r, config.AuthCodeURL(b.State, oidc.Nonce(b.Nonce), oauth2.S256ChallengeOption(b.Verifier)), http.StatusSeeOther)
	return nil
}

// local is a path of this server, not the name of a host.
func local(path string) string { return "/" + strings.TrimLeft(path, "/\\") }

// complete takes what the issuer says, and lets the person in.
func (l *Login) complete(w http.ResponseWriter, r *http.Request) error {
	b, query := begun{}, r.URL.Query()
	isBegun := l.safe.unseal(r, loginCookie, &b) && l.now().Before(time.Unix(b.Until, 0)) && hmac.Equal([]byte(query.Get("state")), []byte(b.State))
	if !isBegun {
		if _, err := l.session(r); err == nil { // another tab was first
			http.Redirect(w, r, "/", http.StatusSeeOther)
			return nil
		}
		return errNotBegun
	}
	setCookie(w, loginCookie, "", 0)
	if why := query.Get("error"); why != "" {
		return loginError{fmt.Errorf("the issuer has not let you in: %s", message.Cut(why+" "+query.Get("error_description"), nameBytes))}
	}
	if by := query.Get("iss"); by != "" && by != l.Issuer {
		return loginError{errors.New("the answer is of another issuer")}
	}
	who, err := l.ask(r, query.Get("code"), &b)
	if err != nil {
		return err
	}
	now := l.now().Unix()
	if err := l.keep(w, &session{Person: who, ID: rand.Text(), Began: now, Used: now}); err != nil {
		return loginError{err}
	}
	http.Redirect(w, r, b.To, http.StatusSeeOther)
	return nil
}

// loginError is that a person is not let in.
type loginError struct{ error }

// Unwrap gives the error that it is.
func (e loginError) Unwrap() error { return e.error }

// ask asks the issuer who has logged in.
func (l *Login) ask(r *http.Request, code string, b *begun) (Person, error) {
	leave, err := l.enter(r)
	if err != nil {
		return Person{}, err
	}
	defer leave()
	ctx := r.Context()
	config, verifier, err := l.issuer(ctx)
	if err != nil {
		return Person{}, err
	}
	token, err := config.Exchange(oidc.ClientContext(ctx, l.HTTP), code, oauth2.VerifierOption(b.Verifier))
	if refused, ok := errors.AsType[*oauth2.RetrieveError](err); ok {
		return Person{}, loginError{fmt.Errorf("the issuer has not let you in: %s", message.Cut(refused.ErrorCode+" "+refused.ErrorDescription, nameBytes))}
	}
	if err != nil {
		return Person{}, fmt.Errorf("ask the issuer %s: %w", l.Issuer, err)
	}
	raw, _ := token.Extra("id_token").(string)
	id, err := verifier.Verify(ctx, raw)
	if err != nil {
		return Person{}, loginError{fmt.Errorf("the token of the issuer is not accepted: %w", err)}
	}
	if !hmac.Equal([]byte(id.Nonce), []byte(b.Nonce)) {
		return Person{}, loginError{errors.New("the token of the issuer is for another login")}
	}
	who, err := l.person(id)
	if err != nil {
		return Person{}, loginError{err}
	}
	return who, nil
}

// person is who a token is about.
func (l *Login) person(id *oidc.IDToken) (Person, error) {
	claims := map[string]json.RawMessage{}
	if err := id.Claims(&claims); err != nil {
		return Person{}, fmt.Errorf("the token of the issuer cannot be read: %w", err)
	}
	user, groups, err := l.Claims.names(claims)
	if err != nil {
		return Person{}, err
	}
	return l.May.person(user, groups) // what a prefix makes of the names is checked again there
}

// tokenError is that a program is not let in.
type tokenError struct{ error }

// Unwrap gives the error that it is.
func (e tokenError) Unwrap() error { return e.error }

var (
	errReads   = errors.New("a program reads JSON and /live with its token, and does nothing else; send Accept: application/json, and steer with the commands")
	errExpired = errors.New("the token has expired; ask the issuer for another one")
)

// bearer is the token that a request has.
func bearer(r *http.Request) (token string, ok bool) {
	scheme, token, ok := strings.Cut(r.Header.Get("Authorization"), " ")
	return strings.TrimSpace(token), ok && strings.EqualFold(scheme, "Bearer")
}

// program is who asks by a token of the issuer, for this client. It lets her read, until it
// expires: what a browser sends is never such a token, and what it has in cookies counts for
// nothing here.
func (l *Login) program(r *http.Request, token string) (*visit, error) {
	if !dashboard.IsRead(r) || !dashboard.WantsJSON(r) && r.URL.Path != livePath {
		return nil, errReads
	}
	leave, err := l.enter(r)
	if err != nil {
		return nil, err
	}
	defer leave()
	_, verifier, err := l.issuer(r.Context())
	if err != nil {
		return nil, err
	}
	id, err := verifier.Verify(r.Context(), token)
	if err != nil {
		return nil, tokenError{fmt.Errorf("the token of the issuer is not accepted: %w", err)}
	}
	if !l.now().Before(id.Expiry) {
		return nil, tokenError{errExpired}
	}
	who, err := l.person(id)
	if err != nil {
		return nil, tokenError{err}
	}
	return &visit{Person: who, ends: id.Expiry}, nil
}
