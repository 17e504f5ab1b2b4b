package dashboard

import (
	"context"
	"errors"
	"io"
	"maps"
	"net/http"
	"net/url"
	"strings"
	"sync"
	"testing"

	"github.com/spillway-dev/spillway/internal/lab/testenv/forms"
	"github.com/spillway-dev/spillway/rollout"
)

// steered is what was done, on pages of which the objects have a version.
type steered struct {
	mu      sync.Mutex
	version string
	denied  string
	done    []Wish
}

func (s *steered) Verbs(kind string) []string {
	if kind == "Pod" {
		return nil
	}
	return []string{"pause", "resume", "retry", "rollback", "pin"}
}

func (s *steered) Prepare(_ context.Context, w Wish) (Prospect, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if w.Verb == "resume" {
		return Prospect{}, errors.New(w.Ref.String() + " is not paused")
	}
	return Prospect{Said: w.Ref.String() + " paused", Version: s.version, Denied: s.denied, Command: "spillway pause " + w.Ref.String()}, nil
}

func (s *steered) Do(_ context.Context, w Wish, version string) (string, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if version != s.version {
		return "", ErrChanged
	}
	s.done = append(s.done, w)
	return w.Ref.String() + " paused", nil
}

func (s *steered) times() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return len(s.done)
}

const pausePath = "/act/pause/deployment/web?namespace=shop"

// post sends a form as a page of this server does, unless that is changed.
func post(t *testing.T, address, path string, form url.Values, change ...func(*http.Request)) (int, http.Header, string) {
	t.Helper()
	return ask(t, address+path, append([]func(*http.Request){func(r *http.Request) {
		r.Method, r.Body = http.MethodPost, io.NopCloser(strings.NewReader(form.Encode()))
		r.Header.Set("Content-Type", "application/x-www-form-urlencoded")
		r.Header.Set("Origin", address)
	}}, change...)...)
}

// A page says beforehand what would be done; it is done once, for the reason that was given,
// and the page that comes then says so.
func TestSteering(t *testing.T) {
	s := &steered{version: "7"}
	_, address := serveSteered(t, s, group(rollout.PhaseWaiting))
	_, _, why := ask(t, address+"/why/deployment/web?namespace=shop")
	if !strings.Contains(why, `href="/act/pause/deployment/web?namespace=shop"`) {
		t.Errorf("nothing leads to what can be done: %s", why)
	}
	status, _, text := ask(t, address+pausePath)
	if status != http.StatusOK || !strings.Contains(text, "If you go on: deployment/web paused.") || s.times() != 0 {
		t.Fatalf("status %d: %s", status, text)
	}
	status, header, text := post(t, address, pausePath, forms.Of(t, text))
	if status != http.StatusSeeOther || s.times() != 1 || s.done[0].Reason != "incident 42" || s.done[0].Ref.Namespace != "shop" {
		t.Fatalf("status %d, done %+v: %s", status, s.done, text)
	}
	to := header.Get("Location")
	if _, _, text := ask(t, address+to); !strings.Contains(text, "Done: deployment/web paused.") {
		t.Errorf("%s does not say what was done: %s", to, text)
	}
	forged := strings.Replace(to, "paused", "resumed", 1)
	if _, _, text := ask(t, address+forged); strings.Contains(text, "Done:") {
		t.Errorf("%s says what was not done", forged)
	}
}

// What has changed since it was seen is not written, but shown.
func TestSteeringWhatHasChanged(t *testing.T) {
	s := &steered{version: "7"}
	_, address := serveSteered(t, s)
	_, _, text := ask(t, address+pausePath)
	form := forms.Of(t, text)
	s.version = "8"
	status, _, text := post(t, address, pausePath, form)
	if status != http.StatusConflict || !strings.Contains(text, ErrChanged.Error()) || s.times() != 0 {
		t.Fatalf("status %d, done %+v: %s", status, s.done, text)
	}
	if again := forms.Of(t, text); again.Get("version") != "8" || !strings.Contains(text, `value="incident 42"`) {
		t.Errorf("the form is not shown again: %s", text)
	}
}

// Without the permission the page says which one lacks, and has no button that works.
func TestSteeringWithoutPermission(t *testing.T) {
	_, address := serveSteered(t, &steered{version: "7", denied: "You may not do it: it takes the permission to patch deployments.apps in namespace shop."})
	_, _, text := ask(t, address+pausePath)
	if !strings.Contains(text, "patch deployments.apps in namespace shop") || !strings.Contains(text, `disabled="disabled"`) {
		t.Error(text)
	}
}

// Nothing is done for another page, without a reason, or for a form that is none of ours.
func TestSteeringForged(t *testing.T) {
	s := &steered{version: "7"}
	_, address := serveSteered(t, s)
	_, _, text := ask(t, address+pausePath)
	good := forms.Of(t, text)
	with := func(name, value string) url.Values {
		form := maps.Clone(good)
		if form.Set(name, value); value == "" {
			form.Del(name)
		}
		return form
	}
	header := func(name, value string) func(*http.Request) {
		return func(r *http.Request) { r.Header.Set(name, value) }
	}
	same := func(*http.Request) {}
	for name, test := range map[string]struct {
		path   string
		form   url.Values
		change func(*http.Request)
		status int
	}{
		"another origin":            {pausePath, good, header("Origin", "https://evil.example"), http.StatusForbidden},
		"an origin of another port": {pausePath, good, header("Origin", "http://127.0.0.1:1"), http.StatusForbidden},
		"no origin":                 {pausePath, good, func(r *http.Request) { r.Header.Del("Origin") }, http.StatusForbidden},
		"an origin that is null":    {pausePath, good, header("Origin", "null"), http.StatusForbidden},
		"from another site":         {pausePath, good, header("Sec-Fetch-Site", "cross-site"), http.StatusForbidden},
		"no token":                  {pausePath, with("token", ""), same, http.StatusForbidden},
		"a forged token":            {pausePath, with("token", "x"), same, http.StatusForbidden},
		"no session":                {pausePath, good, func(r *http.Request) { r.Header.Del("Authorization") }, http.StatusUnauthorized},
		"the token in the address":  {pausePath + "&token=" + token, good, func(r *http.Request) { r.Header.Del("Authorization") }, http.StatusUnauthorized},
		"no reason":                 {pausePath, with("reason", ""), same, http.StatusBadRequest},
		"a long reason":             {pausePath, with("reason", strings.Repeat("x", reasonLength+1)), same, http.StatusBadRequest},
		"no version":                {pausePath, with("version", ""), same, http.StatusBadRequest},
		"an endless form":           {pausePath, with("reason", strings.Repeat("x", 2*formBytes)), same, http.StatusBadRequest},
		"JSON":                      {pausePath, good, header("Content-Type", "application/json"), http.StatusBadRequest},
		"another verb":              {"/act/delete/deployment/web?namespace=shop", good, same, http.StatusBadRequest},
		"an object of no ring":      {"/act/pause/pod/web-0?namespace=shop", good, same, http.StatusBadRequest},
		"another page":              {"/", good, same, http.StatusNotFound},
		"another method":            {pausePath, good, func(r *http.Request) { r.Method = http.MethodPut }, http.StatusNotFound},
	} {
		t.Run(name, func(t *testing.T) {
			if status, _, text := post(t, address, test.path, test.form, test.change); status != test.status || s.times() != 0 {
				t.Errorf("status %d, want %d; done %+v: %s", status, test.status, s.done, text)
			}
		})
	}
}

// Pages that only show have no form, and answer to none.
func TestReadOnly(t *testing.T) {
	_, address := serve(t)
	if _, _, text := ask(t, address+"/why/deployment/web?namespace=shop"); strings.Contains(text, "/act/") {
		t.Errorf("something can be done: %s", text)
	}
	if status, _, text := ask(t, address+pausePath); status != http.StatusBadRequest || !strings.Contains(text, "read-only") {
		t.Errorf("status %d: %s", status, text)
	}
	if status, _, text := post(t, address, pausePath, url.Values{"version": {"7"}}); status != http.StatusBadRequest || !strings.Contains(text, "read-only") {
		t.Errorf("status %d: %s", status, text)
	}
}
