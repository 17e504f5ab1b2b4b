package serve

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/go-logr/logr"
	"golang.org/x/sync/semaphore"
	admissionv1 "k8s.io/api/admission/v1"
	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	appsv1 "k8s.io/api/apps/v1"
	webhook "sigs.k8s.io/controller-runtime/pkg/webhook/admission"

	"github.com/spillway-dev/spillway/internal/admission"
	"github.com/spillway-dev/spillway/internal/lab/testenv"
)

// declaration is a webhook as a ring declares it.
func declaration(policy admissionregistrationv1.FailurePolicyType) admission.Webhook {
	return admission.Webhook{Name: "deployments.test.spillway.dev", Path: "/test", Mutating: true, FailurePolicy: policy, TimeoutSeconds: 5}
}

func endpointOf(w admission.Webhook, handle webhook.HandlerFunc) *endpoint {
	e := newEndpoint(w, handle, logr.Discard(), semaphore.NewWeighted(maxBytes))
	e.shown = func(context.Context, *http.Request) bool { return true }
	return e
}

// careful is a handler as rings have them: it decodes what it was sent.
func careful(_ context.Context, r webhook.Request) webhook.Response {
	if *r.DryRun {
		return webhook.Allowed("a dry run")
	}
	d := &appsv1.Deployment{}
	if err := json.Unmarshal(r.Object.Raw, d); err != nil || r.Kind.Kind != "Deployment" {
		return webhook.Errored(http.StatusBadRequest, errors.Join(err, errors.New("no Deployment")))
	}
	return webhook.Allowed("")
}

// reviewOf is a review whose request has these fields besides uid and operation,
// or others in their place.
func reviewOf(fields string) string {
	request := map[string]json.RawMessage{"uid": json.RawMessage(`"1"`), "operation": json.RawMessage(`"CREATE"`)}
	if err := json.Unmarshal([]byte("{"+fields+"}"), &request); err != nil {
		panic(err)
	}
	raw, err := json.Marshal(request)
	if err != nil {
		panic(err)
	}
	return `{"apiVersion":"admission.k8s.io/v1","kind":"AdmissionReview","request":` + string(raw) + "}"
}

const (
	deploymentKind = `"kind":{"group":"apps","version":"v1","kind":"Deployment"}`
	deploymentJSON = `"object":{"apiVersion":"apps/v1","kind":"Deployment","metadata":{"name":"web"}}`
)

func nested(opening, middle, closing string, depth int) string {
	return strings.Repeat(opening, depth) + middle + strings.Repeat(closing, depth)
}

// A hostile is something that no API server sends, or that one sends rarely.
type hostile struct {
	method, contentType, query, body string
	// reader makes a body of which the length is not known before.
	reader func() io.Reader
	// code is what is answered: an HTTP error, or 200 with a review.
	code int
	// allowed is the verdict of the review.
	allowed bool
}

var hostiles = map[string]hostile{
	"method: GET":              {method: http.MethodGet, code: 405},
	"method: PUT":              {method: http.MethodPut, body: reviewOf(""), code: 405},
	"method: DELETE":           {method: http.MethodDelete, code: 405},
	"content type: none":       {contentType: "-", body: reviewOf(""), code: 415},
	"content type: YAML":       {contentType: "application/yaml", body: reviewOf(""), code: 415},
	"content type: protobuf":   {contentType: "application/vnd.kubernetes.protobuf", body: "k8s\x00", code: 415},
	"content type: malformed":  {contentType: ";;;", body: reviewOf(""), code: 415},
	"content type: a charset":  {contentType: "application/json; charset=utf-8", body: reviewOf(deploymentKind + "," + deploymentJSON), code: 200, allowed: true},
	"timeout: not a duration":  {query: "?timeout=banana", body: reviewOf(deploymentKind + "," + deploymentJSON), code: 200, allowed: true},
	"timeout: negative":        {query: "?timeout=-5s", body: reviewOf(deploymentKind + "," + deploymentJSON), code: 200, allowed: true},
	"timeout: for ever":        {query: "?timeout=99999h", body: reviewOf(deploymentKind + "," + deploymentJSON), code: 200, allowed: true},
	"body: empty":              {body: "", code: 400},
	"body: too large":          {body: strings.Repeat(" ", maxBody+1), code: 413},
	"body: too large, chunked": {reader: func() io.Reader { return io.LimitReader(zeros{}, maxBody+1) }, code: 413},
	"body: ends too early":     {body: reviewOf("")[:30], code: 400},
	"body: zeros":              {body: strings.Repeat("\x00", 1000), code: 400},
	"body: HTML":               {body: "<html></html>", code: 400},
	"body: YAML":               {body: "apiVersion: admission.k8s.io/v1\nkind: AdmissionReview", code: 400},
	"body: a YAML bomb":        {body: "a: &a [x,x,x,x]\nb: &b [*a,*a,*a,*a]\nc: [*b,*b,*b,*b]", code: 400},
	"body: invalid UTF-8":      {body: "{\"kind\":\"\xff\xfe\"}", code: 400},
	"body: a byte order mark":  {body: "\xef\xbb\xbf" + reviewOf(""), code: 400},
	"JSON: null":               {body: "null", code: 400},
	"JSON: a list":             {body: "[]", code: 400},
	"JSON: a string":           {body: `"AdmissionReview"`, code: 400},
	"JSON: a number":           {body: "1e999999", code: 400},
	"JSON: empty":              {body: "{}", code: 400},
	"JSON: two values":         {body: reviewOf("") + reviewOf(""), code: 400},
	"JSON: deep lists":         {body: nested("[", "", "]", 100000), code: 400},
	"JSON: deep objects":       {body: nested(`{"a":`, "1", "}", 100000), code: 400},
	"JSON: deep, unclosed":     {body: strings.Repeat(`{"a":[`, 500000), code: 400},
	"review: another kind":     {body: strings.Replace(reviewOf(""), "AdmissionReview", "Pod", 1), code: 400},
	"review: a kind in lower":  {body: strings.Replace(reviewOf(""), "AdmissionReview", "admissionreview", 1), code: 400},
	"review: another group":    {body: strings.Replace(reviewOf(""), "admission.k8s.io", "authorization.k8s.io", 1), code: 400},
	"review: another version":  {body: strings.Replace(reviewOf(""), "k8s.io/v1", "k8s.io/v9", 1), code: 400},
	"review: no kind":          {body: `{"request":{"uid":"1","operation":"CREATE"}}`, code: 400},
	"review: no request":       {body: `{"apiVersion":"admission.k8s.io/v1","kind":"AdmissionReview"}`, code: 400},
	"review: a null request":   {body: `{"apiVersion":"admission.k8s.io/v1","kind":"AdmissionReview","request":null}`, code: 400},
	"review: a list":           {body: `{"apiVersion":"admission.k8s.io/v1","kind":"AdmissionReview","request":[]}`, code: 400},
	"review: only a response":  {body: `{"apiVersion":"admission.k8s.io/v1","kind":"AdmissionReview","response":{"uid":"1","allowed":true}}`, code: 400},
	"review: v1beta1":          {body: strings.Replace(reviewOf(deploymentKind+","+deploymentJSON), "k8s.io/v1", "k8s.io/v1beta1", 1), code: 200, allowed: true},
	"uid: none":                {body: reviewOf(`"uid":""`), code: 400},
	"uid: a number":            {body: reviewOf(`"uid":7`), code: 400},
	"operation: none":          {body: reviewOf(`"operation":""`), code: 400},
	"operation: unknown":       {body: reviewOf(`"operation":"PATCH"`), code: 400},
	"operation: in lower":      {body: reviewOf(`"operation":"create"`), code: 400},
	"operation: a number":      {body: reviewOf(`"operation":1`), code: 400},
	"operation: null":          {body: reviewOf(`"operation":null`), code: 400},
	"dryRun: none":             {body: reviewOf(deploymentKind + "," + deploymentJSON), code: 200, allowed: true},
	"dryRun: null":             {body: reviewOf(`"dryRun":null,` + deploymentKind + "," + deploymentJSON), code: 200, allowed: true},
	"dryRun: true":             {body: reviewOf(`"dryRun":true`), code: 200, allowed: true},
	"dryRun: a string":         {body: reviewOf(`"dryRun":"true"`), code: 400},
	"object: none":             {body: reviewOf(deploymentKind), code: 200},
	"object: null":             {body: reviewOf(deploymentKind + `,"object":null`), code: 200},
	"object: a string":         {body: reviewOf(deploymentKind + `,"object":"x"`), code: 200},
	"object: a list":           {body: reviewOf(deploymentKind + `,"object":[]`), code: 200},
	"object: fields of others": {body: reviewOf(deploymentKind + `,"object":{"spec":{"replicas":"many"}}`), code: 200},
	"object: a huge number":    {body: reviewOf(deploymentKind + `,"object":{"spec":{"replicas":99999999999999999999}}`), code: 200},
	"object: huge":             {body: reviewOf(deploymentKind + `,"object":{"metadata":{"name":"` + strings.Repeat("x", 3<<20) + `"}}`), code: 200, allowed: true},
	"object: deep":             {body: reviewOf(deploymentKind + `,"object":` + nested(`{"a":`, "1", "}", 9000)), code: 200, allowed: true},
	"kind: another":            {body: reviewOf(`"kind":{"group":"","version":"v1","kind":"Pod"},` + deploymentJSON), code: 200},
	"kind: a string":           {body: reviewOf(`"kind":"Deployment"`), code: 400},
	"resource: a list":         {body: reviewOf(`"resource":[]`), code: 400},
	"name: huge":               {body: reviewOf(`"name":"` + strings.Repeat("x", 1<<20) + `",` + deploymentKind + "," + deploymentJSON), code: 200, allowed: true},
	"namespace: zeros":         {body: reviewOf(`"namespace":"\u0000\u0000",` + deploymentKind + "," + deploymentJSON), code: 200, allowed: true},
	"user: a string":           {body: reviewOf(`"userInfo":"root"`), code: 400},
	"options: null":            {body: reviewOf(`"options":null,` + deploymentKind + "," + deploymentJSON), code: 200, allowed: true},
}

type zeros struct{}

func (zeros) Read(p []byte) (int, error) { clear(p); return len(p), nil }

// Whatever comes is answered: by an error of HTTP, or by a review with the uid
// that was asked with. Nothing panics, and nothing is kept.
func TestHostileReviews(t *testing.T) {
	if len(hostiles) < 50 {
		t.Errorf("%d hostile reviews, want 50", len(hostiles))
	}
	e := endpointOf(declaration(admissionregistrationv1.Ignore), careful)
	before := testenv.Heap()
	for name, h := range hostiles {
		t.Run(name, func(t *testing.T) {
			w := httptest.NewRecorder()
			e.ServeHTTP(w, h.request())
			if w.Code != h.code {
				t.Fatalf("answered with %d, want %d: %s", w.Code, h.code, w.Body)
			}
			if w.Code != http.StatusOK {
				if w.Body.Len() > 200 {
					t.Errorf("the error is %d bytes long", w.Body.Len())
				}
				return
			}
			if r := responseIn(t, w); r.UID != "1" || r.Allowed != h.allowed {
				t.Errorf("answered with %+v, want allowed %t", r, h.allowed)
			}
		})
	}
	if more := testenv.Heap() - before; more > maxBytes {
		t.Errorf("%d bytes were kept", more)
	}
	if !e.bytes.TryAcquire(maxBytes) || len(e.handlers) > 0 {
		t.Error("places were not given back")
	}
}

func (h hostile) request() *http.Request {
	r := httptest.NewRequest(cmp.Or(h.method, http.MethodPost), "/test"+h.query, strings.NewReader(h.body))
	if h.reader != nil {
		r.Body, r.ContentLength = io.NopCloser(h.reader()), -1
	}
	switch h.contentType {
	case "":
		r.Header.Set("Content-Type", "application/json")
	case "-":
	default:
		r.Header.Set("Content-Type", h.contentType)
	}
	return r
}

func responseIn(t *testing.T, w *httptest.ResponseRecorder) *admissionv1.AdmissionResponse {
	t.Helper()
	review := admissionv1.AdmissionReview{}
	if err := json.Unmarshal(w.Body.Bytes(), &review); err != nil || review.Response == nil {
		t.Fatalf("no review was answered: %v: %s", err, w.Body)
	}
	if review.Kind != "AdmissionReview" || review.Request != nil {
		t.Errorf("the review is one of %q, with request %v", review.Kind, review.Request)
	}
	return review.Response
}

// FuzzEndpoint feeds the endpoint with anything.
func FuzzEndpoint(f *testing.F) {
	for _, h := range hostiles {
		if len(h.body) < 10000 {
			f.Add([]byte(h.body))
		}
	}
	panicked := false
	e := endpointOf(declaration(admissionregistrationv1.Ignore), func(ctx context.Context, r webhook.Request) webhook.Response {
		defer func() {
			if p := recover(); p != nil {
				panicked = true
			}
		}()
		return careful(ctx, r)
	})
	f.Fuzz(func(t *testing.T, body []byte) {
		w := httptest.NewRecorder()
		e.ServeHTTP(w, hostile{body: string(body)}.request())
		if panicked {
			t.Fatal("the handler panicked")
		}
		if w.Code == http.StatusOK {
			if r := responseIn(t, w); r.UID == "" {
				t.Error("the answer has no uid")
			}
		} else if w.Code < 400 || w.Code > 499 {
			t.Errorf("answered with %d", w.Code)
		}
	})
}
