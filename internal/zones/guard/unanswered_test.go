package guard_test

import (
	"context"
	"errors"
	"strings"
	"testing"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/spillway-dev/spillway/internal/admission"
	"github.com/spillway-dev/spillway/internal/lab/testenv"
	"github.com/spillway-dev/spillway/internal/zones/guard"
	"github.com/spillway-dev/spillway/internal/zones/guard/policies"
)

// unanswered installs the policies about what no webhook answers, for the namespace alone.
func (w *world) unanswered() {
	w.t.Helper()
	w.keepParameters()
	testenv.Guards(w.t, w.client, w.namespace, guard.Declare(w.options).Unanswered)
}

// keepParameters has a binding name StatefulSets as parameters, of a policy that matches
// nothing, in this test process and after it. An API server without any such binding for a
// second stops to watch that kind, does not begin again, and evaluates all later policies
// without parameters (kubernetes/kubernetes#130887): so did the policies of a test that began
// when those of the tests before it were gone.
func (w *world) keepParameters() {
	w.t.Helper()
	for _, obj := range policies.Unasked() {
		obj.SetName("keep-parameters." + obj.GetName())
		if b, ok := obj.(*admissionregistrationv1.ValidatingAdmissionPolicyBinding); ok {
			b.Spec.PolicyName = "keep-parameters." + b.Spec.PolicyName
			b.Spec.MatchResources = &admissionregistrationv1.MatchResources{NamespaceSelector: admission.Within(nil, []string{"none"})}
		}
		if err := w.client.Create(w.t.Context(), obj); client.IgnoreAlreadyExists(err) != nil {
			w.t.Fatal(err)
		}
	}
}

// eventuallyRefused waits until a policy is heeded.
func (w *world) eventuallyRefused(ask func() error, text string) {
	w.t.Helper()
	testenv.Eventually(w.t, func(context.Context) error {
		if err := ask(); err == nil || !strings.Contains(err.Error(), text) {
			return errors.Join(errors.New("it is not refused"), err)
		}
		return nil
	})
}

// With no webhook to answer, only those keep their Pods that rely on an answer.
func TestNoWebhookAnswers(t *testing.T) {
	w := newWorld(t)
	w.unanswered()
	hooks := testenv.RegisterWebhooks(t, w.namespace, guard.Declare(w.options).Webhooks)
	hooks.WaitCalled(t, "failed calling webhook")
	hooks.Select(t, preparesScales, "true")
	w.group(zone("zone-a", 3, labeled("grafana.com/prepare-downscale", "true")), zone("zone-b", 3))

	wantNo(t, w.patch("zone-b", 2))
	wantError(t, w.patch("zone-a", 2), "failed calling webhook")
	wantError(t, w.scale("zone-a", 2), "failed calling webhook")

	wantNo(t, w.evict("zone-b-0"))
	w.create(budget())
	w.eventuallyRefused(func() error { return w.evict("zone-b-1", client.DryRunAll) }, "with ZoneAwarePodDisruptionBudget ingester-rollout, and the webhook of Spillway does not answer")
	wantRefused(t, w.evict("zone-b-1"), 403, "start its manager")
}

// A manager that is down keeps no other client from scaling where no StatefulSet needs its
// answer; and one that needs it is not lowered, also before its namespace has the label.
func TestScalesWhereTheWebhookIsNotAsked(t *testing.T) {
	w := newWorld(t)
	w.unanswered()
	hooks := testenv.RegisterWebhooks(t, w.namespace, guard.Declare(w.options).Webhooks)
	hooks.WaitCalled(t, "failed calling webhook")
	w.group(zone("zone-a", 3, labeled("grafana.com/prepare-downscale", "true")), zone("zone-b", 3))
	w.eventuallyRefused(func() error { return w.scale("zone-a", 2, client.DryRunAll) }, "must be told before they go")
	wantRefused(t, w.scale("zone-a", 2), 403, "label the namespace with spillway.dev/prepares-scales=true")
	wantError(t, w.patch("zone-a", 2), "failed calling webhook")
	wantNo(t, w.scale("zone-a", 4))
	wantNo(t, w.scale("zone-b", 2))
	hooks.Select(t, preparesScales, "true")
	wantError(t, w.scale("zone-a", 3), "failed calling webhook")
	wantError(t, w.scale("zone-b", 1), "failed calling webhook")
}

// evictUnguarded says that it was admitted.
func (w *world) evictUnguarded(pod string) error {
	w.t.Helper()
	eviction := &policyv1.Eviction{}
	eviction.Annotations = map[string]string{"spillway.dev/admitted": "true"}
	return w.client.SubResource("eviction").Create(w.t.Context(), &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: w.namespace, Name: pod}}, eviction)
}

// An eviction that is allowed passes the policy; and one that is refused is refused,
// also if it says that it was admitted.
func TestAWebhookAnswers(t *testing.T) {
	pods := testenv.ServePods(t)
	w := newWorld(t)
	w.guarded()
	w.group(zone("zone-a", 3, told(pods)), zone("zone-b", 3), zone("zone-c", 3))
	w.create(budget(most(1)))
	wantNo(t, w.evict("zone-c-0", client.DryRunAll))
	wantNo(t, w.scale("zone-a", 2))
	wantRefused(t, w.evictUnguarded("zone-c-0"), 429, "zone-a")
}
