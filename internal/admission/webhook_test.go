package admission_test

import (
	"strings"
	"testing"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"

	"github.com/spillway-dev/spillway/internal/admission"
)

func TestValidate(t *testing.T) {
	declared := admission.Webhook{
		Name: "deployments.test.spillway.dev", Path: "/test", Mutating: true,
		FailurePolicy: admissionregistrationv1.Ignore, TimeoutSeconds: 5,
	}
	for name, change := range map[string]func(*admission.Webhook){
		"name":             func(w *admission.Webhook) { w.Name = "short" },
		"invalid path":     func(w *admission.Webhook) { w.Path = "test" },
		"failure policy":   func(w *admission.Webhook) { w.FailurePolicy = "" },
		"between 1 and 30": func(w *admission.Webhook) { w.TimeoutSeconds = 31 },
		"reinvocation policy": func(w *admission.Webhook) {
			w.Mutating, w.ReinvocationPolicy = false, new(admissionregistrationv1.ReinvocationPolicyType)
		},
	} {
		w := declared
		change(&w)
		if err := admission.Validate([]admission.Webhook{w}); err == nil || !strings.Contains(err.Error(), name) {
			t.Errorf("want an error with %q, got %v", name, err)
		}
	}
	if err := admission.Validate([]admission.Webhook{declared, declared}); err == nil {
		t.Error("two webhooks share name and path")
	}
}
