package outcome

import (
	"errors"
	"net/http"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/spillway-dev/spillway/api/fleet/v1alpha1"
)

// Refusal is what an API server says to a write that it does not accept as things are.
type Refusal struct {
	// State is failed if the write is not valid, and waiting if it may be accepted
	// later: once there is a permission, room in a quota, or another webhook.
	State v1alpha1.State
	// Message says what was refused, and why.
	Message string
}

// RefusalOf is the refusal that an error is, nil if it is none: then the write was made
// from an old view, or no answer came, and it is merely retried.
func RefusalOf(err error) *Refusal {
	var status apierrors.APIStatus
	if !errors.As(err, &status) || isPassing(err) {
		return nil
	}
	r := &Refusal{State: v1alpha1.StateWaiting, Message: "the API server refused a write: " + Shortened(err.Error())}
	if s := status.Status(); s.Reason == metav1.StatusReasonInvalid && !isPolicy(&s) {
		r.State = v1alpha1.StateFailed
	}
	return r
}

// isPassing is true of what says nothing about the write.
func isPassing(err error) bool {
	var status apierrors.APIStatus
	errors.As(err, &status)
	code := int(status.Status().Code)
	return apierrors.IsConflict(err) || apierrors.IsNotFound(err) || apierrors.IsTooManyRequests(err) || apierrors.IsUnauthorized(err) ||
		code != http.StatusInternalServerError && code >= http.StatusInternalServerError // a webhook that does not answer is one of the former
}

// isPolicy is true if a webhook has refused it, in whatever words.
func isPolicy(s *metav1.Status) bool { return strings.Contains(s.Message, "admission webhook") }
