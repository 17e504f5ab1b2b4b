package hosted

import (
	"net/http"
	"slices"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/api/validation"

	"github.com/spillway-dev/spillway/internal/dashboard"
)

const (
	// namespaceCookie is which namespace a person has chosen.
	namespaceCookie = "__Host-spillway-namespace"
	// allNamespaces is how the choice of all of them is kept.
	allNamespaces = "*"
	// remembered is how long a browser keeps the choice of a namespace.
	remembered = 30 * 24 * time.Hour
)

// namespace is the one that is shown to a person. A program names it in its request.
func (s *Server) namespace(r *http.Request) string {
	if _, ok := bearer(r); ok && s.Login != nil {
		if name := r.URL.Query().Get("namespace"); isNamespace(name) && name != allNamespaces {
			return name
		}
		return s.Namespace
	}
	c, err := r.Cookie(namespaceCookie)
	if err != nil || !isNamespace(c.Value) {
		return s.Namespace
	}
	return strings.TrimPrefix(c.Value, allNamespaces)
}

func isNamespace(name string) bool {
	return name == allNamespaces || len(validation.ValidateNamespaceName(name, false)) == 0
}

// offer answers a person who may not see what she has asked for: with the only namespace that
// she may see, or with those among which she chooses.
func (s *Server) offer(w http.ResponseWriter, r *http.Request, v *visit, err error) {
	found := s.visible(r, v)
	switch {
	case len(found) == 1 && found[0] != s.namespace(r) && isOpened(r): // what the script reads is one page still
		setCookie(w, namespaceCookie, found[0], remembered)
		here := "/" + strings.TrimLeft(r.URL.RequestURI(), "/") // two slashes would lead elsewhere
		http.Redirect(w, r, here, http.StatusSeeOther)          //nolint:gosec // it is a path of these pages
	case len(found) > 0:
		s.writeAccount(w, v, s.namespace(r), found, http.StatusForbidden, err.Error()+". Choose a namespace that you may see.")
	default:
		s.writeAccount(w, v, s.namespace(r), nil, http.StatusForbidden, err.Error()+". Name a namespace that you may see.")
	}
}

// visible are the namespaces that a person may see, as far as that is known.
func (s *Server) visible(r *http.Request, v *visit) []string {
	if s.Namespaces == nil {
		return nil
	}
	leave, err := s.attend(v.User, r)
	if err != nil {
		return nil
	}
	defer leave()
	found, err := s.Namespaces(r.Context(), v.Person)
	if err != nil {
		return nil // she can still name one
	}
	return found
}

// account shows who a person is, and takes her choice of a namespace.
func (s *Server) account(w http.ResponseWriter, r *http.Request) {
	v, ok := s.admitted(w, r)
	if !ok {
		return
	}
	if !r.URL.Query().Has("show") {
		var found []string
		if r.URL.Query().Has("find") { // it costs requests
			found = s.visible(r, v)
		}
		s.writeAccount(w, v, s.namespace(r), found, http.StatusOK, "")
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
		s.writeAccount(w, v, chosen, nil, http.StatusBadRequest, "That cannot be a namespace; use lower-case letters, digits and -.")
	default:
		setCookie(w, namespaceCookie, chosen, remembered)
		http.Redirect(w, r, "/", http.StatusSeeOther)
	}
}

func (s *Server) writeAccount(w http.ResponseWriter, v *visit, namespace string, visible []string, status int, problem string) {
	a := dashboard.Account{User: v.User, Groups: v.Groups, Namespace: namespace, Visible: visible, Problem: problem}
	if v.session != nil {
		a.Ends = v.ends
		a.Token, _ = s.Login.safe.seal(logoutPurpose, v.session.ID) // it is short
	}
	dashboard.WriteAccount(w, status, &a)
}
