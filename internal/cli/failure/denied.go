package failure

import (
	"errors"
	"regexp"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
)

// denial is how the API server passes on what a policy or a webhook of Spillway says. Those of
// others keep their names, by which a user finds whom to ask.
var denial = regexp.MustCompile(`(?s)^(?:[^']* is forbidden: ValidatingAdmissionPolicy '(?:[^']+\.)?spillway\.dev' with binding '[^']*' denied request|admission webhook "(?:[^"]+\.)?spillway\.dev" denied the request): (.+)$`)

// denied keeps what the command says itself, and the sentence of Spillway's own admission, which
// says what to do.
func denied(err error) string {
	var status *apierrors.StatusError
	if !errors.As(err, &status) {
		return ""
	}
	m := denial.FindStringSubmatch(status.Error())
	if m == nil {
		return ""
	}
	return strings.Replace(err.Error(), status.Error(), m[1], 1)
}
