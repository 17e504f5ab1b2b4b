// Package fault is a client that stops, lags, conflicts or loses its connection
// on demand, and counts exactly what it is asked for.
//
// It sits below the client under test, as its transport, so that the code
// above it is the code that runs in a cluster.
package fault

import (
	"errors"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strings"
	"sync"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"
)

// ErrStopped is what every request gets after the stop.
var ErrStopped = errors.New("the manager has stopped")

// errCut is what every request gets while the connection is cut.
var errCut = errors.New("connection refused")

// When says whether a stop comes before or after its write.
type When int

// Before a write it is not sent; After it, it was made but its answer is lost.
const (
	Before When = iota
	After
)

// String names the moment.
func (w When) String() string { return [...]string{"before", "after"}[w] }

// Request is one request to the API server.
type Request struct {
	// Verb is one of get, list, watch, create, update, patch, delete, deletecollection.
	Verb string
	// Group, Resource, Subresource, Namespace and Name say what it is about.
	Group, Resource, Subresource, Namespace, Name string
}

// Writes is true if the request changes something other than Events and Leases,
// which say what happened and who leads, but are not what is done.
func (r Request) Writes() bool {
	switch r.Verb {
	case "get", "list", "watch":
		return false
	default:
		return r.Resource != "events" && r.Resource != "leases"
	}
}

// Injector is a transport with faults. It is safe for concurrent use.
type Injector struct {
	mu       sync.Mutex
	requests []Request
	writes   int
	made     int
	stopAt   int
	when     When
	// matching are the writes that are counted, all if it is nil.
	matching func(Request) bool
	// stops is true once it has decided to stop, and stopped is closed when the last write was answered: else who waits
	// for the stop could take that write back.
	stops    bool
	stopped  chan struct{}
	conflict func(Request) bool
	fails    func(Request) bool
	cut      bool
	held     chan struct{}
	// heldResources are those whose watches are held, all if there are none.
	heldResources []string
}

// New returns an injector that injects nothing yet.
func New() *Injector { return &Injector{stopped: make(chan struct{})} }

// Wrap returns a configuration whose clients go through the injector.
func (i *Injector) Wrap(cfg *rest.Config) *rest.Config {
	cfg = rest.CopyConfig(cfg)
	cfg.Wrap(func(next http.RoundTripper) http.RoundTripper { return transport{i, next} })
	return cfg
}

// StopAt makes the n-th write from now on, counted from 1, the last.
func (i *Injector) StopAt(n int, when When) {
	i.mu.Lock()
	defer i.mu.Unlock()
	i.stopAt, i.when = i.writes+n, when
}

// StopAtMatching is StopAt for those writes alone that match.
func (i *Injector) StopAtMatching(n int, when When, match func(Request) bool) {
	i.mu.Lock()
	defer i.mu.Unlock()
	i.writes, i.stopAt, i.when, i.matching = 0, n, when, match
}

// Begin runs a manager, and returns what runs the next one once it has stopped: call that again and again while a story
// goes on.
type Begin func(manage func(*Injector) (stop func())) (meanwhile func())

// WithSuccessor is a [Begin] of the manager that this injector stops, if it does, and of one without faults.
func (i *Injector) WithSuccessor(manage func(*Injector) (stop func())) (meanwhile func()) {
	stop := manage(i)
	successor := sync.OnceFunc(func() { stop(); manage(New()) })
	return func() {
		if i.HasStopped() {
			successor()
		}
	}
}

// Relay tells a story by managers each of which stops at the first matching write that it can, before it or after it, any
// write if match is nil: nothing is remembered but by what was written. It returns how many such writes were made.
func Relay(when When, match func(Request) bool, story func(Begin)) (writes int) {
	var all []*Injector
	story(func(manage func(*Injector) (stop func())) (meanwhile func()) {
		var current *Injector
		var stop func()
		start := func(at int) {
			current = New()
			current.StopAtMatching(at, when, match)
			all = append(all, current)
			stop = manage(current)
		}
		next := 1
		if when == Before {
			next = 2 // the write before which the last manager has stopped, and then the next one
		}
		start(1)
		return func() {
			if current.HasStopped() {
				stop()
				start(next)
			}
		}
	})
	for _, i := range all {
		writes += i.Made()
	}
	return writes
}

// Stopped is closed at the stop.
func (i *Injector) Stopped() <-chan struct{} { return i.stopped }

// HasStopped is true after the stop. A manager may well complain then.
func (i *Injector) HasStopped() bool {
	select {
	case <-i.stopped:
		return true
	default:
		return false
	}
}

// Made is how many of the writes that count were made: the API server has accepted them, whether the manager knows it or not.
func (i *Injector) Made() int {
	i.mu.Lock()
	defer i.mu.Unlock()
	return i.made
}

// Conflict answers matching writes with 409 and does not send them; nil ends it.
func (i *Injector) Conflict(match func(Request) bool) {
	i.mu.Lock()
	defer i.mu.Unlock()
	i.conflict = match
}

// Fail answers matching writes with 500 and does not send them; nil ends it.
func (i *Injector) Fail(match func(Request) bool) {
	i.mu.Lock()
	defer i.mu.Unlock()
	i.fails = match
}

// Cut makes every request fail until Restore; watches end instead of delivering.
func (i *Injector) Cut() { i.setCut(true) }

// Restore ends Cut.
func (i *Injector) Restore() { i.setCut(false) }

func (i *Injector) setCut(cut bool) {
	i.mu.Lock()
	defer i.mu.Unlock()
	i.cut = cut
}

// HoldWatches keeps watches from delivering anything until the release: the
// caches lag behind, those of all resources if none are named.
func (i *Injector) HoldWatches(resources ...string) (release func()) {
	i.mu.Lock()
	defer i.mu.Unlock()
	gate := make(chan struct{})
	i.held, i.heldResources = gate, resources
	return sync.OnceFunc(func() {
		i.mu.Lock()
		i.held = nil
		i.mu.Unlock()
		close(gate)
	})
}

// Requests returns all requests since the last Reset, in order.
func (i *Injector) Requests() []Request {
	i.mu.Lock()
	defer i.mu.Unlock()
	return append([]Request(nil), i.requests...)
}

// Writes returns those of Requests that are writes.
func (i *Injector) Writes() []Request {
	var writes []Request
	for _, r := range i.Requests() {
		if r.Writes() {
			writes = append(writes, r)
		}
	}
	return writes
}

// Reset forgets the requests so far.
func (i *Injector) Reset() {
	i.mu.Lock()
	defer i.mu.Unlock()
	i.requests = nil
}

// verdict is what becomes of one request.
type verdict int

const (
	pass verdict = iota
	refuse
	lose
	clash
	fail
	disconnect
)

// judge records a request and decides what becomes of it.
func (i *Injector) judge(r Request) verdict {
	i.mu.Lock()
	defer i.mu.Unlock()
	switch {
	case i.stops:
		return refuse
	case i.cut:
		return disconnect
	}
	i.requests = append(i.requests, r)
	if !r.Writes() {
		return pass
	}
	switch {
	case i.conflict != nil && i.conflict(r):
		return clash
	case i.fails != nil && i.fails(r):
		return fail
	}
	if !i.counts(r) {
		return pass
	}
	i.writes++
	if i.writes != i.stopAt {
		return pass
	}
	i.stops = true
	if i.when == Before {
		close(i.stopped)
		return refuse
	}
	return lose
}

// counts is true of the writes that are counted.
func (i *Injector) counts(r Request) bool {
	return r.Writes() && (i.matching == nil || i.matching(r))
}

// answered counts a write that was made.
func (i *Injector) answered(r Request, res *http.Response) {
	i.mu.Lock()
	defer i.mu.Unlock()
	if i.counts(r) && res.StatusCode < http.StatusMultipleChoices {
		i.made++
	}
}

// waitHeld blocks while watches of a resource are held, and fails once there is nothing
// to wait for any more.
func (i *Injector) waitHeld(resource string) error {
	i.mu.Lock()
	gate, cut := i.held, i.cut
	holds := len(i.heldResources) == 0 || slices.Contains(i.heldResources, resource)
	i.mu.Unlock()
	if cut {
		return errCut
	}
	if gate == nil || !holds {
		return nil
	}
	select {
	case <-gate:
		return nil
	case <-i.stopped:
		return ErrStopped
	}
}

type transport struct {
	injector *Injector
	next     http.RoundTripper
}

// RoundTrip implements [http.RoundTripper].
func (t transport) RoundTrip(req *http.Request) (*http.Response, error) {
	r := parse(req)
	switch t.injector.judge(r) {
	case refuse:
		return nil, ErrStopped
	case disconnect:
		return nil, errCut
	case clash:
		return refusal(req, metav1.StatusReasonConflict, http.StatusConflict), nil
	case fail:
		return refusal(req, metav1.StatusReasonInternalError, http.StatusInternalServerError), nil
	case lose:
		defer close(t.injector.stopped)
		if res, err := t.next.RoundTrip(req); err == nil {
			t.injector.answered(r, res)
			_ = res.Body.Close() // it is lost on purpose
		}
		return nil, ErrStopped
	default:
		return t.send(req, r)
	}
}

func (t transport) send(req *http.Request, r Request) (*http.Response, error) {
	res, err := t.next.RoundTrip(req)
	switch {
	case err != nil:
	case r.Verb == "watch":
		res.Body = heldBody{res.Body, t.injector, r.Resource}
	default:
		t.injector.answered(r, res)
	}
	return res, err //nolint:wrapcheck // a transport says what the one below it says
}

// heldBody delivers what it reads only while watches are not held.
type heldBody struct {
	io.ReadCloser
	injector *Injector
	resource string
}

func (b heldBody) Read(p []byte) (int, error) {
	n, err := b.ReadCloser.Read(p)
	if waited := b.injector.waitHeld(b.resource); waited != nil {
		return 0, waited
	}
	return n, err //nolint:wrapcheck // io.EOF has to stay what it is
}

// refusal is an answer of the API server that it did not give.
func refusal(req *http.Request, reason metav1.StatusReason, code int) *http.Response {
	body := fmt.Sprintf(`{"kind":"Status","apiVersion":"v1","status":"Failure","reason":%q,"code":%d,"message":"injected %s"}`, reason, code, reason)
	return &http.Response{
		StatusCode: code, Status: fmt.Sprint(code, " ", http.StatusText(code)), Proto: "HTTP/1.1", ProtoMajor: 1, ProtoMinor: 1,
		Header: http.Header{"Content-Type": []string{"application/json"}}, Body: io.NopCloser(strings.NewReader(body)), Request: req,
	}
}

// verbs are those of requests about one object.
var verbs = map[string]string{
	http.MethodGet: "get", http.MethodPost: "create", http.MethodPut: "update", http.MethodPatch: "patch", http.MethodDelete: "delete",
}

// parse reads what a request is about from its method and path, which is
// /api/v1/... or /apis/GROUP/VERSION/..., with namespaces/NAME before the resource.
func parse(req *http.Request) Request {
	r := Request{Verb: verbs[req.Method]}
	parts := strings.Split(strings.Trim(req.URL.Path, "/"), "/")
	switch {
	case len(parts) >= 2 && parts[0] == "api":
		parts = parts[2:]
	case len(parts) >= 3 && parts[0] == "apis":
		r.Group, parts = parts[1], parts[3:]
	default:
		return r // discovery, or not about objects
	}
	if len(parts) > 2 && parts[0] == "namespaces" {
		r.Namespace, parts = parts[1], parts[2:]
	}
	fields := []*string{&r.Resource, &r.Name, &r.Subresource}
	for i := range min(len(parts), len(fields)) {
		*fields[i] = parts[i]
	}
	if r.Name == "" {
		r.Verb = collective(r.Verb, req.URL.Query().Get("watch") == "true")
	}
	return r
}

// collective is the verb of a request about all objects of a kind.
func collective(verb string, watch bool) string {
	switch {
	case watch:
		return "watch"
	case verb == "get":
		return "list"
	case verb == "delete":
		return "deletecollection"
	default:
		return verb
	}
}
