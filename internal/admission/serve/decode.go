package serve

import (
	"context"
	"errors"
	"fmt"
	"io"
	"mime"
	"net/http"
	"slices"

	admissionv1 "k8s.io/api/admission/v1"
	"k8s.io/apimachinery/pkg/util/json"
)

// maxBody is as much as the API server can send: two objects of at most 3 MiB
// each, and what is said about them.
const maxBody = 7 << 20

// refusal is an HTTP error: the request cannot be answered by a review. The API
// server treats it as a failed call, and applies the webhook's failure policy.
type refusal struct {
	code   int
	reason string
}

// Error says what is wrong with the request.
func (r refusal) Error() string { return r.reason }

// checkHeader refuses what is not a review, before its body is read.
func checkHeader(r *http.Request) error {
	if r.Method != http.MethodPost {
		return refusal{http.StatusMethodNotAllowed, "only POST is served here"}
	}
	if media, _, err := mime.ParseMediaType(r.Header.Get("Content-Type")); err != nil || media != "application/json" {
		return refusal{http.StatusUnsupportedMediaType, "the Content-Type must be application/json"}
	}
	if r.ContentLength > maxBody {
		return tooLarge()
	}
	return nil
}

// readBody reads at most [maxBody] bytes.
func readBody(ctx context.Context, w http.ResponseWriter, r *http.Request) ([]byte, error) {
	body, err := io.ReadAll(http.MaxBytesReader(w, r.Body, maxBody))
	var excess *http.MaxBytesError
	switch {
	case errors.As(err, &excess):
		return nil, tooLarge()
	case ctx.Err() != nil:
		return nil, refusal{http.StatusRequestTimeout, "the body was not received in time"}
	case err != nil:
		return nil, refusal{http.StatusBadRequest, "the body could not be read"}
	}
	return body, nil
}

func tooLarge() error {
	return refusal{http.StatusRequestEntityTooLarge, fmt.Sprintf("the body is larger than %d bytes", maxBody)}
}

var (
	versions   = []string{"admission.k8s.io/v1", "admission.k8s.io/v1beta1"} // alike in all that is used
	operations = []admissionv1.Operation{admissionv1.Create, admissionv1.Update, admissionv1.Delete, admissionv1.Connect}
)

// decode reads a review that can be answered: it has a request with a uid and
// a known operation. Its DryRun is never nil.
func decode(body []byte) (*admissionv1.AdmissionReview, error) {
	review := &admissionv1.AdmissionReview{}
	if err := json.Unmarshal(body, review); err != nil {
		return nil, malformed("the body is not the JSON of an AdmissionReview")
	}
	request := review.Request
	switch {
	case review.Kind != "AdmissionReview" || !slices.Contains(versions, review.APIVersion):
		return nil, malformed("the body is not an AdmissionReview of admission.k8s.io/v1")
	case request == nil:
		return nil, malformed("the AdmissionReview has no request")
	case request.UID == "":
		return nil, malformed("the request has no uid")
	case !slices.Contains(operations, request.Operation):
		return nil, malformed("the request's operation is none of CREATE, UPDATE, DELETE and CONNECT")
	}
	if request.DryRun == nil {
		request.DryRun = new(bool)
	}
	return review, nil
}

// malformed does not repeat what was sent: it may be anything, and large.
func malformed(reason string) error { return refusal{http.StatusBadRequest, reason} }
