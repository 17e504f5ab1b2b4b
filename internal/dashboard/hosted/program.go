package hosted

import (
	"errors"
	"fmt"
	"net/http"
	"strings"

	"github.com/spillway-dev/spillway/internal/dashboard"
)

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
