package write

import (
	"errors"
	"net/http"
	"testing"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	"github.com/spillway-dev/spillway/internal/plans/object"
	"github.com/spillway-dev/spillway/rollout"
)

// invalid is what the API server says of fields that it does not accept.
func invalid(message string, causes ...string) error {
	status := metav1.Status{Reason: metav1.StatusReasonInvalid, Code: http.StatusUnprocessableEntity, Message: message, Details: &metav1.StatusDetails{}}
	for _, c := range causes {
		status.Details.Causes = append(status.Details.Causes, metav1.StatusCause{Field: "spec.x", Message: c})
	}
	return &apierrors.StatusError{ErrStatus: status}
}

func TestWhatARefusalMeans(t *testing.T) {
	secrets := schema.GroupResource{Resource: "secrets"}
	for name, test := range map[string]struct {
		err                   error
		kind                  string
		act                   Act
		isNew                 bool
		bad, immutable, fatal bool
		reason                string
	}{
		"nothing":                    {err: nil},
		"a conflict":                 {err: apierrors.NewConflict(secrets, "s", errors.New("x")), bad: true},
		"no answer":                  {err: errors.New("connection refused"), bad: true},
		"not allowed":                {err: apierrors.NewForbidden(secrets, "s", errors.New("no")), reason: `secrets "s" is forbidden: no`},
		"too many requests":          {err: apierrors.NewTooManyRequests("later", 1), reason: "later"},
		"an immutable field":         {err: invalid("m", "field is immutable"), immutable: true, reason: "m"},
		"an immutable value":         {err: invalid("m: hunter2", `Invalid value: {"env": "hunter2: x"}: field is immutable`), immutable: true, reason: "spec.x: field is immutable"},
		"a StatefulSet":              {err: invalid("m", "updates to statefulset spec for fields other than 'replicas' are forbidden"), immutable: true, reason: "m"},
		"immutable, but it is new":   {err: invalid("m", "field is immutable"), isNew: true, fatal: true, reason: "m"},
		"an invalid field":           {err: invalid("m", "must be positive"), fatal: true, reason: "m"},
		"a policy":                   {err: invalid("ValidatingAdmissionPolicy 'p' with binding 'b' denied request: no"), reason: "ValidatingAdmissionPolicy 'p' with binding 'b' denied request: no"},
		"a bad request":              {err: apierrors.NewBadRequest("m"), fatal: true, reason: "m"},
		"a Secret's field":           {err: invalid("s3cret is wrong", "s3cret"), kind: "Secret", fatal: true, reason: "the API server does not accept spec.x"},
		"a file that does not exist": {err: &ExtractError{errors.New("m"), false}, act: Extract, reason: "m"},
		"a file that is too long":    {err: &ExtractError{errors.New("m"), true}, act: Extract, fatal: true, reason: "m"},
		"a write to the Instance":    {err: invalid("m"), act: ClearRequest, bad: true, reason: "m"},
	} {
		t.Run(name, func(t *testing.T) {
			w := Write{Act: Apply, Ref: object.Ref{GroupVersionKind: schema.GroupVersionKind{Version: "v1", Kind: "ConfigMap"}}, Path: rollout.Path{"p"}}
			if test.kind != "" {
				w.Ref.Kind = test.kind
			}
			if test.act != "" {
				w.Act = test.act
			}
			refusal, bad := Classify(test.err, w, map[bool]types.UID{false: "seen"}[test.isNew], time.Time{})
			if bad != test.bad || (refusal != nil) != (test.reason != "") {
				t.Fatalf("%+v, %v", refusal, bad)
			}
			if refusal != nil && ((refusal.Immutable == "seen") != test.immutable || refusal.Fatal != test.fatal || refusal.Reason != test.reason) {
				t.Errorf("%+v", refusal)
			}
		})
	}
}
