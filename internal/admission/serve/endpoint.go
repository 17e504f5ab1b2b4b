package serve

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"runtime/debug"
	"time"

	"github.com/go-logr/logr"
	"golang.org/x/sync/semaphore"
	admissionv1 "k8s.io/api/admission/v1"
	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/log"
	webhook "sigs.k8s.io/controller-runtime/pkg/webhook/admission"

	"github.com/spillway-dev/spillway/internal/admission"
	"github.com/spillway-dev/spillway/internal/metrics"
)

const (
	// maxHandlers is how many handlers of one path run at a time, those included
	// that have missed their deadline and not noticed.
	maxHandlers = 64
	// maxBytes is how many bytes of bodies are held at a time, on all paths. What a
	// handler decodes them into is a few times that.
	maxBytes = 3 * maxBody
)

// outcome is how a request ended, as metrics call it.
type outcome string

const (
	allowed   outcome = "allowed"
	patched   outcome = "patched"
	denied    outcome = "denied"
	late      outcome = "late"
	failed    outcome = "failed"
	refused   outcome = "refused"
	abandoned outcome = "abandoned"
	unshown   outcome = "unshown"
)

// endpoint answers the requests of one path.
type endpoint struct {
	webhook admission.Webhook
	handler webhook.Handler
	// blind answers what has not shown to be an API server's, by the failure policy if nil.
	blind webhook.Handler
	// shown is true of a request that has.
	shown func(context.Context, *http.Request) bool
	log   logr.Logger
	// handlers has a place for each handler that may run.
	handlers chan struct{}
	// bytes are those of bodies, of all endpoints together.
	bytes *semaphore.Weighted
}

func newEndpoint(w admission.Webhook, handler webhook.Handler, log logr.Logger, bytes *semaphore.Weighted) *endpoint {
	metrics.AdmissionSeconds.WithLabelValues(w.Path) // a rate needs what was before the first request
	return &endpoint{
		webhook: w, handler: handler, log: log.WithValues("path", w.Path),
		handlers: make(chan struct{}, maxHandlers), bytes: bytes,
	}
}

// ServeHTTP answers a review by a review, and anything else by an HTTP error.
func (e *endpoint) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	measured, code := e.measure(r.Method), http.StatusOK
	defer func() { measured(code) }()
	ctx, cancel := context.WithTimeout(r.Context(), e.budget(r.URL.Query().Get("timeout")))
	defer cancel()
	how, err := e.serve(ctx, w, r)
	if no, ok := errors.AsType[refusal](err); ok {
		how, code = refused, no.code
		http.Error(w, no.reason, no.code)
	}
	if err != nil {
		e.log.V(1).Info("request was not answered", "reason", err.Error(), "from", r.RemoteAddr)
	}
	metrics.AdmissionRequests.WithLabelValues(e.webhook.Path, string(how)).Inc()
}

// measure counts a request in, and returns what counts it out.
func (e *endpoint) measure(method string) func(code int) {
	flying, begin := metrics.AdmissionInFlight.WithLabelValues(e.webhook.Path), time.Now() //nolint:forbidigo // for metrics
	flying.Inc()
	return func(code int) {
		flying.Dec()
		observeSeconds(e.webhook.Path, method, code, time.Since(begin)) //nolint:forbidigo // for metrics
	}
}

// budget is how long an answer may take: what the API server grants, less a
// tenth for the network. No more is granted than was declared.
func (e *endpoint) budget(granted string) time.Duration {
	declared := time.Duration(e.webhook.TimeoutSeconds) * time.Second
	asked, err := time.ParseDuration(granted)
	if err != nil || asked <= 0 || asked > declared {
		asked = declared
	}
	return asked * 9 / 10
}

func (e *endpoint) serve(ctx context.Context, w http.ResponseWriter, r *http.Request) (outcome, error) {
	if err := checkHeader(r); err != nil {
		return refused, err
	}
	handler, known := e.handler, e.shown(ctx, r)
	if !known {
		handler = blind{e}
	}
	size := r.ContentLength
	if size < 0 {
		size = maxBody
	}
	if e.bytes.Acquire(ctx, size) != nil {
		return refused, refusal{http.StatusServiceUnavailable, "too many requests at the same time"}
	}
	release := func() { e.bytes.Release(size) }
	review, err := e.read(ctx, w, r)
	if err != nil {
		release()
		return refused, err
	}
	response, how := e.answer(ctx, handler, webhook.Request{AdmissionRequest: *review.Request}, release)
	if !known {
		how = unshown
	}
	return how, write(w, admissionv1.AdmissionReview{TypeMeta: review.TypeMeta, Response: &response})
}

func (e *endpoint) read(ctx context.Context, w http.ResponseWriter, r *http.Request) (*admissionv1.AdmissionReview, error) {
	body, err := readBody(ctx, w, r)
	if err != nil {
		return nil, err
	}
	return decode(body)
}

// reply is the answer of a handler, or why there is none.
type reply struct {
	response admissionv1.AdmissionResponse
	how      outcome
	err      error
}

// answer calls the handler, and answers by the failure policy if it is late or
// fails. The request is released when the handler has returned, which may be
// after the answer.
func (e *endpoint) answer(ctx context.Context, handler webhook.Handler, request webhook.Request, release func()) (admissionv1.AdmissionResponse, outcome) {
	select {
	case e.handlers <- struct{}{}:
	case <-ctx.Done():
		release()
		return e.byPolicy(ctx, request, errors.New("too many requests at the same time"))
	}
	replies := make(chan reply, 1)
	go func() {
		defer func() { <-e.handlers; release() }()
		replies <- e.handle(log.IntoContext(ctx, e.log), handler, request)
	}()
	select {
	case said := <-replies:
		if said.err != nil {
			return e.byPolicy(ctx, request, said.err)
		}
		return said.response, said.how
	case <-ctx.Done():
		return e.byPolicy(ctx, request, errors.New("no answer in time"))
	}
}

// handle runs the handler. A panic is an error like any other.
func (e *endpoint) handle(ctx context.Context, handler webhook.Handler, request webhook.Request) (said reply) {
	defer func() {
		if p := recover(); p != nil {
			e.log.Error(fmt.Errorf("panic: %v", p), "handler panicked", "stack", string(debug.Stack()))
			said = reply{err: errors.New("the handler panicked")}
		}
	}()
	response := handler.Handle(ctx, request)
	if code := codeOf(response); code >= http.StatusInternalServerError {
		return reply{err: errors.New(messageOf(response))}
	}
	if !e.webhook.Mutates() && (len(response.Patches) > 0 || len(response.Patch) > 0) {
		return reply{err: errors.New("a webhook that does not mutate answered with a patch")}
	}
	if err := response.Complete(request); err != nil {
		return reply{err: fmt.Errorf("encode the patch: %w", err)}
	}
	return reply{response: response.AdmissionResponse, how: outcomeOf(response)}
}

// blind answers who has not shown to be an API server.
type blind struct{ *endpoint }

// Handle answers from the request alone.
func (b blind) Handle(ctx context.Context, request webhook.Request) webhook.Response {
	switch {
	case b.blind != nil:
		return b.blind.Handle(ctx, request)
	case b.webhook.FailurePolicy == admissionregistrationv1.Ignore:
		return webhook.Allowed("").WithWarnings("spillway: the change is allowed without an answer of webhook " + b.webhook.Name + ": " + admission.NoKey)
	default:
		return webhook.Denied(admission.NoKey)
	}
}

func outcomeOf(r webhook.Response) outcome {
	switch {
	case !r.Allowed:
		return denied
	case len(r.Patch) > 0:
		return patched
	default:
		return allowed
	}
}

func codeOf(r webhook.Response) int32 {
	if r.Result == nil {
		return 0
	}
	return r.Result.Code
}

func messageOf(r webhook.Response) string {
	if r.Result == nil || r.Result.Message == "" {
		return "the handler failed"
	}
	return r.Result.Message
}

// byPolicy answers as the webhook's failure policy says. The cause is
// logged, and not reported to the user: it may name what the user must not read.
func (e *endpoint) byPolicy(ctx context.Context, request webhook.Request, err error) (admissionv1.AdmissionResponse, outcome) {
	how := missed(ctx)
	e.log.Info("webhook answers by its failure policy", "policy", e.webhook.FailurePolicy, "reason", err.Error(),
		"resource", request.Resource.Resource, "namespace", request.Namespace, "name", request.Name)
	response := admissionv1.AdmissionResponse{UID: request.UID}
	if e.webhook.FailurePolicy == admissionregistrationv1.Ignore {
		response.Allowed = true
		response.Warnings = []string{"spillway: webhook " + e.webhook.Name + " had no answer; the change is allowed without it"}
		return response, how
	}
	code, reason := int32(http.StatusInternalServerError), metav1.StatusReasonInternalError
	if how == late {
		code, reason = http.StatusGatewayTimeout, metav1.StatusReasonTimeout
	}
	response.Result = &metav1.Status{
		Status: metav1.StatusFailure, Code: code, Reason: reason,
		Message: "spillway had no answer to webhook " + e.webhook.Name + "; try again",
	}
	return response, how
}

// missed is why there is no answer, as far as the context shows.
func missed(ctx context.Context) outcome {
	switch {
	case ctx.Err() == nil:
		return failed
	case errors.Is(ctx.Err(), context.Canceled): // the client no longer waits
		return abandoned
	default:
		return late
	}
}

func write(w http.ResponseWriter, review admissionv1.AdmissionReview) error {
	raw, err := json.Marshal(review)
	if err != nil {
		return fmt.Errorf("encode the answer: %w", err)
	}
	w.Header().Set("Content-Type", "application/json")
	if _, err := w.Write(raw); err != nil {
		return fmt.Errorf("send the answer: %w", err)
	}
	return nil
}
