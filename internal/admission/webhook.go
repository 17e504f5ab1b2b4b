package admission

import (
	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	webhook "sigs.k8s.io/controller-runtime/pkg/webhook/admission"
)

// Webhook declares one webhook of a ring. It is a value, so that it can be
// installed without a manager.
type Webhook struct {
	// Name is the webhook's within its configuration, such as
	// "deployments.config.spillway.dev".
	Name string
	// Path is where it is served, such as "/mutate-apps-v1-deployment".
	Path string
	// Mutating webhooks may answer with a patch; the others only allow or refuse.
	Mutating bool
	// Rules say for what the API server calls.
	Rules []admissionregistrationv1.RuleWithOperations
	// MatchConditions are CEL expressions that must all be true for a call. They
	// are evaluated in the API server: what they leave out costs nothing.
	MatchConditions []admissionregistrationv1.MatchCondition
	// Marked webhooks set the annotation [vocabulary.Admitted] on what they allow.
	// Without an answer the API server goes on without it; and a policy of
	// [Declared.Unanswered] refuses, inside the API server, what needs the answer. So a
	// manager that is down affects only objects that rely on it. What else the answer
	// changes is changed only where we have registered the webhook ourselves.
	Marked bool
	// GuardedBy is the name of the policy of [Declared.Unanswered] that refuses what would do
	// harm without an answer, empty if there is none. It matters where the failure policy is
	// Ignore: for what is exported of it.
	GuardedBy string
	// FailurePolicy is what the API server does without an answer. It is required. For
	// a marked webhook it is used when the server runs.
	FailurePolicy admissionregistrationv1.FailurePolicyType
	// ReinvocationPolicy is for mutating webhooks; nil is Never.
	ReinvocationPolicy *admissionregistrationv1.ReinvocationPolicyType
	// TimeoutSeconds is how long the API server waits, from 1 to 30.
	TimeoutSeconds int32
	// NamespaceSelector and ObjectSelector narrow the calls further. The
	// namespaces that the manager watches are added to the former.
	NamespaceSelector, ObjectSelector *metav1.LabelSelector
	// SideEffects is None if empty. A webhook that has any on a run that is not
	// dry says NoneOnDryRun.
	SideEffects admissionregistrationv1.SideEffectClass
}

// Mutates is true of webhooks whose answer may be a patch.
func (w Webhook) Mutates() bool { return w.Mutating || w.Marked }

// registered is the webhook as the API server is to know it.
func (w Webhook) registered() Webhook {
	if w.Marked {
		w.Path, w.FailurePolicy = w.MarkedPath(), admissionregistrationv1.Ignore
	}
	return w
}

// MarkedPath is where the answer comes with the mark. The path itself answers
// without, since a webhook that only validates must not answer with a patch.
func (w Webhook) MarkedPath() string { return w.Path + "/marked" }

// Served are the paths at which the webhook is answered.
func (w Webhook) Served() []string {
	if w.Marked {
		return []string{w.Path, w.MarkedPath()}
	}
	return []string{w.Path}
}

// RegisteredPath is the one of our own configurations.
func (w Webhook) RegisteredPath() string { return w.registered().Path }

// Route is the handler of a path. Each path that a [Webhook] names has one.
type Route struct {
	Path string
	// Handler answers an API server. Its context ends when the answer is due; what it
	// returns later is dropped. It must tolerate a request without dryRun or objects.
	Handler webhook.Handler
	// Blind answers who has not shown to be an API server, from the request alone: it has
	// no client, so that it can neither read nor write anything. Where an answer
	// takes more than that, it says no with [NoKey]. Nil answers as the failure policy says.
	Blind webhook.Handler
}

// NoKey is why there is no other answer to a request without a valid key in its path.
const NoKey = "this webhook's configuration has no valid key in the path, so that anybody may have asked; " +
	"the manager sets the key, and spillway check says which configuration lacks it and why"

// Declared is what a ring wants the cluster to have besides the manager.
type Declared struct {
	// Webhooks are put into the ring's webhook configurations.
	Webhooks []Webhook
	// Policies are admission policies and their bindings, which the API server
	// evaluates without a call. They are labeled when they are installed.
	Policies []client.Object
	// Unanswered are policies and bindings that refuse what a marked webhook has not
	// answered. They are installed as long as the webhooks are.
	Unanswered []client.Object
}
