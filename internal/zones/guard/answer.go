package guard

import (
	"net/http"

	admissionv1 "k8s.io/api/admission/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/webhook/admission"
)

// deny refuses without a code, as rollout-operator does; the API server makes it a 400.
func deny(message string) admission.Response { return denyWith(0, message) }

// unknown answers what could not be found out: it passes with a warning, unless
// the user of the manager has chosen otherwise.
func (o *Options) unknown(warning string) admission.Response {
	if o.FailClosed {
		return denyWith(http.StatusForbidden, "spillway is set to fail closed: "+warning)
	}
	return allow(warning)
}

func allow(warnings ...string) admission.Response {
	return admission.Response{AdmissionResponse: admissionv1.AdmissionResponse{Allowed: true, Warnings: warnings}}
}

func denyWith(code int32, message string) admission.Response {
	return admission.Response{AdmissionResponse: admissionv1.AdmissionResponse{Result: &metav1.Status{Message: message, Code: code}}}
}
