package write

import (
	"errors"
	"maps"
	"slices"
	"strings"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	apimeta "k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/spillway-dev/spillway/internal/plans/object"
)

// Refusal is a write that the API server did not accept. It answers one question: what was sent
// in one execution.
type Refusal struct {
	// Execution is the uid of the execution that asked, empty if none did, and Sent is the
	// [Write.Sent] of the write.
	Execution types.UID
	Sent      string
	// At is when it was tried.
	At time.Time
	// Reason is what the API server answered, without values of Secrets.
	Reason string
	// Immutable is the UID of the object of which an immutable field would have
	// changed, empty if that was not the cause. It says nothing about an object that
	// replaces it.
	Immutable types.UID
	// Fatal: it will never be accepted.
	Fatal bool
}

// Refusals are the last refusal of a write to each object.
type Refusals map[object.Ref]Refusal

// Of returns the refusal of exactly this write, and false if the API server has not refused it.
func (r Refusals) Of(w *Write) (refusal Refusal, refused bool) {
	refusal, refused = r[w.Ref]
	if !refused || refusal.Execution != w.Execution || refusal.Sent != w.Sent() {
		return Refusal{}, false
	}
	return refusal, true
}

// Learn records the answer to a write; a nil refusal says that it was made.
func (r Refusals) Learn(w *Write, refusal *Refusal) {
	if refusal == nil {
		delete(r, w.Ref)
		return
	}
	r[w.Ref] = *refusal
}

// Forget drops the refusals of all executions but one.
func (r Refusals) Forget(except types.UID) {
	maps.DeleteFunc(r, func(_ object.Ref, refusal Refusal) bool {
		return refusal.Execution != "" && refusal.Execution != except
	})
}

// ExtractError says that a file of a Pipe could not be read.
type ExtractError struct {
	Err error
	// Fatal is true if it never can be.
	Fatal bool
}

// Unwrap is the cause.
func (e *ExtractError) Unwrap() error { return e.Err }

// Classify says what an error of a write means. A refusal is the answer of the API
// server to this write, and the pass goes on unless the write was to the Instance itself.
// Otherwise the pass ends: it is not known whether the write was made, or the snapshot
// was outdated. live is the UID of the object
// as it was read, empty if it did not exist.
func Classify(err error, w Write, live types.UID, now time.Time) (refusal *Refusal, ends bool) {
	var extraction *ExtractError
	var status apierrors.APIStatus
	switch {
	case err == nil:
		return nil, false
	case errors.As(err, &extraction):
		return refusalOf(&w, now, err.Error(), extraction.Fatal), false
	case apimeta.IsNoMatchError(err):
		return refusalOf(&w, now, "the API server does not know the kind", false), false
	case apierrors.IsConflict(err), apierrors.IsNotFound(err) && w.IsToInstance(), !errors.As(err, &status):
		return nil, true
	}
	s := status.Status()
	refusal = refusalOf(&w, now, reasonOf(&s, w), false)
	if w.IsToInstance() {
		return refusal, true
	}
	if w.Act == Apply && isImmutable(&s) {
		refusal.Immutable = live
	}
	refusal.Fatal = refusal.Immutable == "" && isFatal(&s)
	return refusal, false
}

func refusalOf(w *Write, now time.Time, reason string, fatal bool) *Refusal {
	return &Refusal{Execution: w.Execution, Sent: w.Sent(), At: now, Reason: reason, Fatal: fatal}
}

// Error implements error.
func (e *ExtractError) Error() string { return e.Err.Error() }

// isImmutable is true if an immutable field would change. The API server has no
// reason for that; these are the words of its validation.
func isImmutable(s *metav1.Status) bool {
	if s.Reason != metav1.StatusReasonInvalid || isPolicy(s) || s.Details == nil {
		return false
	}
	return slices.ContainsFunc(s.Details.Causes, func(c metav1.StatusCause) bool {
		message := strings.ToLower(c.Message)
		return slices.ContainsFunc([]string{"immutable", "may not change", "may not be changed", "cannot be changed", "can not be changed", "cannot change", "updates to"},
			func(word string) bool { return strings.Contains(message, word) })
	})
}

// isFatal is true of a write that will never be accepted. A policy or a webhook may
// accept later what it refuses now.
func isFatal(s *metav1.Status) bool {
	switch s.Reason {
	case metav1.StatusReasonInvalid, metav1.StatusReasonBadRequest:
		return !isPolicy(s)
	case metav1.StatusReasonMethodNotAllowed, metav1.StatusReasonRequestEntityTooLarge:
		return true
	default:
		return strings.Contains(s.Message, "failed to create typed patch object")
	}
}

func isPolicy(s *metav1.Status) bool {
	return strings.Contains(s.Message, "denied request") || strings.Contains(s.Message, "denied the request") || strings.Contains(s.Message, "admission webhook")
}

// reasonOf is the answer of the API server. Of a Secret it names the fields, never
// their values, and so it does of immutable fields, which may be whole templates of Pods.
func reasonOf(s *metav1.Status, w Write) string {
	switch isSecret := w.Ref.GroupKind() == object.SecretKind; {
	case isSecret && (s.Reason == metav1.StatusReasonInvalid || s.Reason == metav1.StatusReasonBadRequest):
		return fieldsOnly(s)
	case !isSecret && isImmutable(s):
		return withoutValues(s)
	default:
		return s.Message
	}
}

// fieldsOnly are the fields that the API server does not accept.
func fieldsOnly(s *metav1.Status) string {
	var fields []string
	if s.Details != nil {
		for _, c := range s.Details.Causes {
			fields = append(fields, c.Field)
		}
	}
	if len(fields) == 0 {
		return "the API server does not accept it"
	}
	return "the API server does not accept " + strings.Join(fields, ", ")
}

// withoutValues is what the API server says of fields, without the values that they were
// to have: those stand between the kind of the mistake and what is wrong.
func withoutValues(s *metav1.Status) string {
	const invalid = "Invalid value: "
	if !slices.ContainsFunc(s.Details.Causes, func(c metav1.StatusCause) bool { return strings.HasPrefix(c.Message, invalid) }) {
		return s.Message
	}
	var all []string
	for _, c := range s.Details.Causes {
		text := c.Message
		if strings.HasPrefix(text, invalid) {
			text = text[strings.LastIndex(text, ": ")+2:]
		}
		all = append(all, c.Field+": "+text)
	}
	return strings.Join(all, "; ")
}
