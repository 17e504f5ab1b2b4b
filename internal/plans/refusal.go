package plans

import (
	"errors"
	"slices"
	"strings"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	apimeta "k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
)

// extractError is a file of a Pipe that could not be read, or never can be.
type extractError struct {
	err   error
	fatal bool
}

func (e *extractError) Error() string { return e.err.Error() }
func (e *extractError) Unwrap() error { return e.err }

// classify says what an error of a write means: nothing, a refusal, or, if it is
// bad, that nobody knows what became of it, or that the view was old, so that the
// pass ends. live is the object as it was seen, empty if it was not there.
func classify(err error, w Write, live types.UID, now time.Time) (refusal *Refusal, bad bool) {
	var extraction *extractError
	var status apierrors.APIStatus
	switch {
	case err == nil:
		return nil, false
	case errors.As(err, &extraction):
		return &Refusal{At: now, Reason: err.Error(), Fatal: extraction.fatal}, false
	case apimeta.IsNoMatchError(err):
		return &Refusal{At: now, Reason: "the API server does not know the kind"}, false
	case apierrors.IsConflict(err), !errors.As(err, &status), w.isAboutInstance():
		return nil, true
	}
	s := status.Status()
	refusal = &Refusal{At: now, Reason: reasonOf(&s, w)}
	if w.Act == Apply && isImmutable(&s) {
		refusal.Immutable = live
	}
	refusal.Fatal = refusal.Immutable == "" && isFatal(&s)
	return refusal, false
}

// isAboutInstance is true of writes to the Instance itself, which are preconditions
// of the next decision and not part of a plan.
func (w *Write) isAboutInstance() bool {
	return w.Act != Apply && w.Act != Delete && w.Act != Extract
}

// isImmutable is true if a field would change that cannot. The API server has no
// word of its own for it; these are those of its validation.
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

// isFatal is true of what no waiting will make acceptable. What a policy or a
// webhook refuses may well be accepted later.
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

// reasonOf is what came back. Of a Secret it names the fields, never what is in
// them.
func reasonOf(s *metav1.Status, w Write) string {
	if w.Ref.GroupKind() != secretKind || s.Reason != metav1.StatusReasonInvalid && s.Reason != metav1.StatusReasonBadRequest {
		return s.Message
	}
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
