package serve

import (
	"context"
	"errors"
	"net/http"
	"net/http/httptest"
	"runtime"
	"strings"
	"testing"
	"time"

	"gomodules.xyz/jsonpatch/v2"
	admissionv1 "k8s.io/api/admission/v1"
	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	webhook "sigs.k8s.io/controller-runtime/pkg/webhook/admission"
)

const (
	ignore = admissionregistrationv1.Ignore
	fail   = admissionregistrationv1.Fail
)

// ask sends a review and returns the response.
func ask(t *testing.T, e *endpoint, query string) *admissionv1.AdmissionResponse {
	t.Helper()
	w := httptest.NewRecorder()
	e.ServeHTTP(w, hostile{query: query, body: reviewOf("")}.request())
	if w.Code != http.StatusOK {
		t.Fatalf("answered with %d: %s", w.Code, w.Body)
	}
	return responseIn(t, w)
}

// What a handler says is what is answered, unless it failed.
func TestWhatHandlersSay(t *testing.T) {
	addition := jsonpatch.NewOperation("add", "/metadata/labels/a", "b")
	for name, test := range map[string]struct {
		handle         webhook.HandlerFunc
		policy         admissionregistrationv1.FailurePolicyType
		validating     bool
		allowed        bool
		code           int32
		patch, warning string
	}{
		"allowed":                     {handle: says(webhook.Allowed("")), policy: fail, allowed: true, code: 200},
		"denied, though Ignore":       {handle: says(webhook.Denied("no")), policy: ignore, code: 403},
		"patched":                     {handle: says(webhook.Patched("", addition)), policy: ignore, allowed: true, code: 200, patch: "/metadata/labels/a"},
		"patched, though validating":  {handle: says(webhook.Patched("", addition)), policy: fail, validating: true, code: 500},
		"an error of the user":        {handle: says(webhook.Errored(400, errors.New("no"))), policy: ignore, code: 400},
		"an error of ours, Ignore":    {handle: says(webhook.Errored(500, errors.New("a secret"))), policy: ignore, allowed: true, warning: "deployments.test.spillway.dev had no answer"},
		"an error of ours, Fail":      {handle: says(webhook.Errored(500, errors.New("a secret"))), policy: fail, code: 500},
		"a panic, Ignore":             {handle: panics, policy: ignore, allowed: true, warning: "had no answer"},
		"a panic, Fail":               {handle: panics, policy: fail, code: 500},
		"a patch that is none":        {handle: says(webhook.Patched("", jsonpatch.NewOperation("add", "/a", make(chan int)))), policy: ignore, allowed: true, warning: "had no answer"},
		"nothing at all is a refusal": {handle: says(webhook.Response{}), policy: ignore, code: 200},
	} {
		t.Run(name, func(t *testing.T) {
			w := declaration(test.policy)
			w.Mutating = !test.validating
			r := ask(t, endpointOf(w, test.handle), "")
			var code int32
			if r.Result != nil {
				code = r.Result.Code
			}
			if r.Allowed != test.allowed || code != test.code || !strings.Contains(string(r.Patch), test.patch) || (test.patch == "") != (len(r.Patch) == 0) {
				t.Errorf("answered with allowed %t, code %d, patch %s", r.Allowed, code, r.Patch)
			}
			if warnings := strings.Join(r.Warnings, ""); !strings.Contains(warnings, test.warning) || (test.warning == "") != (warnings == "") {
				t.Errorf("warned: %q", warnings)
			}
			if r.Result != nil && strings.Contains(r.Result.Message, "secret") {
				t.Errorf("the user receives %q", r.Result.Message)
			}
		})
	}
}

func says(r webhook.Response) webhook.HandlerFunc {
	return func(context.Context, webhook.Request) webhook.Response { return r }
}

func panics(context.Context, webhook.Request) webhook.Response { panic("at the disco") }

// A handler that does not return delays no request for longer than was granted,
// and keeps its place until it does return.
func TestLateHandlers(t *testing.T) {
	for policy, allowed := range map[admissionregistrationv1.FailurePolicyType]bool{ignore: true, fail: false} {
		t.Run(string(policy), func(t *testing.T) {
			returns := make(chan struct{})
			e := endpointOf(declaration(policy), func(ctx context.Context, _ webhook.Request) webhook.Response {
				<-ctx.Done() // its context ends with the time that was granted
				<-returns
				return webhook.Allowed("")
			})
			if r := ask(t, e, "?timeout=50ms"); r.Allowed != allowed {
				t.Errorf("answered with allowed %t", r.Allowed)
			}
			if len(e.handlers) != 1 {
				t.Errorf("%d handlers are said to run, want 1", len(e.handlers))
			}
			close(returns)
			for len(e.handlers) > 0 { // it is returning
				runtime.Gosched()
			}
		})
	}
}

// When all places are taken, the next one is answered in time all the same.
func TestTooManyHandlers(t *testing.T) {
	returns := make(chan struct{})
	defer close(returns)
	e := endpointOf(declaration(ignore), func(context.Context, webhook.Request) webhook.Response {
		<-returns
		return webhook.Allowed("")
	})
	for range maxHandlers + 1 {
		if r := ask(t, e, "?timeout=10ms"); !r.Allowed {
			t.Errorf("answered with %+v", r)
		}
	}
	if len(e.handlers) != maxHandlers {
		t.Errorf("%d handlers run, want %d", len(e.handlers), maxHandlers)
	}
}

// Bodies take no more than a bounded number of bytes, however many come.
func TestTooManyBytes(t *testing.T) {
	const fit = maxBytes / maxBody
	entered, returns, codes := make(chan struct{}), make(chan struct{}), make(chan int, fit)
	e := endpointOf(declaration(ignore), func(context.Context, webhook.Request) webhook.Response {
		entered <- struct{}{}
		<-returns
		return webhook.Allowed("")
	})
	send := func(query string) int {
		w := httptest.NewRecorder()
		body := reviewOf("") + strings.Repeat(" ", maxBody-len(reviewOf("")))
		e.ServeHTTP(w, hostile{query: query, body: body}.request())
		return w.Code
	}
	for range fit {
		go func() { codes <- send("") }()
	}
	for range fit {
		<-entered
	}
	if code := send("?timeout=50ms"); code != http.StatusServiceUnavailable {
		t.Errorf("one more is answered with %d, want 503", code)
	}
	close(returns)
	for range fit {
		if code := <-codes; code != http.StatusOK {
			t.Errorf("answered with %d", code)
		}
	}
}

// An answer that is due within the timeout leaves time for the way.
func TestBudget(t *testing.T) {
	e := endpointOf(declaration(ignore), panics)
	for granted, want := range map[string]time.Duration{
		"5s": 4500 * time.Millisecond, "1s": 900 * time.Millisecond, "": 4500 * time.Millisecond, "x": 4500 * time.Millisecond,
		"0s": 4500 * time.Millisecond, "-1s": 4500 * time.Millisecond, "30s": 4500 * time.Millisecond,
	} {
		if got := e.budget(granted); got != want {
			t.Errorf("granted %q: %s, want %s", granted, got, want)
		}
	}
}

// A client that goes away takes its handler with it.
func TestAbandoned(t *testing.T) {
	ended := make(chan struct{})
	e := endpointOf(declaration(ignore), func(ctx context.Context, _ webhook.Request) webhook.Response {
		<-ctx.Done()
		close(ended)
		return webhook.Allowed("")
	})
	ctx, leave := context.WithCancel(t.Context())
	leave()
	e.ServeHTTP(httptest.NewRecorder(), hostile{body: reviewOf("")}.request().WithContext(ctx))
	select {
	case <-ended:
	default:
		if !e.bytes.TryAcquire(maxBytes) { // or it was never asked
			t.Error("the handler goes on")
		}
	}
}
