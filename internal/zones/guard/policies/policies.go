// Package policies are the ValidatingAdmissionPolicies of the guards: what must hold also
// while no manager answers a webhook.
//
// # Why
//
//   - An Eviction does not have the labels of its Pod, so no selector tells which evictions
//     matter. A webhook that must answer would keep every node from being drained while no
//     manager runs; one that may be ignored guards nothing. So the webhook may be ignored, and
//     marks what it allows; a policy, whose parameters are the budgets of the namespace,
//     refuses what has no mark. A client that may evict can forge the mark, and could as well
//     delete the Pod.
//   - An API server knows the kind of the budgets only up to 30 s after it has started. A policy
//     with these as parameters is not evaluated until then: it lets all evictions pass, or none in
//     the whole cluster. So the manager labels the namespaces with budgets, and where the label is
//     set a policy without parameters decides, from the first request on. The other is for a
//     namespace whose budget is so new that it has no label yet.
//   - The answer names the UID of the Pod: an eviction that was admitted for a terminating Pod
//     has taken its successor.
package policies

import (
	"strings"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	appsv1 "k8s.io/api/apps/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/spillway-dev/spillway/internal/admission"
	"github.com/spillway-dev/spillway/internal/vocabulary"
)

// policyName is the name of the policy and of its binding.
const policyName = "no-downscale.zones.spillway.dev"

const (
	// IsScaleInCEL is true, in CEL, of a write of a scale subresource.
	IsScaleInCEL = "request.?subResource.orValue('') == 'scale'"
	// LowersInCEL is true, in CEL, of a write that takes replicas away. A Scale of no replicas does not say so.
	LowersInCEL = "(has(object.spec.replicas) || " + IsScaleInCEL + ") && has(oldObject.spec.replicas) && " +
		"object.spec.?replicas.orValue(0) < oldObject.spec.replicas"
)

// NoDownscale forbids to lower the replicas of an object that has the label, with no call
// that leaves the API server; so they hold when the manager is down.
func NoDownscale() []client.Object {
	return []client.Object{
		admission.Policy(policyName, admissionregistrationv1.ValidatingAdmissionPolicySpec{
			MatchConstraints: on(Rules(admissionregistrationv1.Update, appsv1.GroupName, "v1", "deployments", "statefulsets", "replicasets")),
			MatchConditions:  []admissionregistrationv1.MatchCondition{{Name: "labeled", Expression: HasLabel(vocabulary.NoDownscale)}},
			Validations: []admissionregistrationv1.Validation{{
				Expression: "!(" + LowersInCEL + ")", MessageExpression: refusedInCEL(),
			}},
		}),
		binding(policyName, policyName, nil, nil),
	}
}

// HasLabel is true, in CEL, of objects that had a label set to "true".
func HasLabel(key vocabulary.Key) string {
	var mentioned []string
	for _, name := range key.Names() {
		mentioned = append(mentioned, "oldObject.metadata.?labels['"+name+"'].orValue('') == 'true'")
	}
	return "(" + strings.Join(mentioned, " || ") + ")"
}

// binding denies what a policy does not allow, with parameters if it has some, in the namespaces
// that are selected; nil selects all.
func binding(name, policy string, params *admissionregistrationv1.ParamRef, namespaces *metav1.LabelSelector) client.Object {
	b := admission.Binding(name, policy, admissionregistrationv1.Deny)
	b.Spec.ParamRef = params
	if namespaces != nil {
		b.Spec.MatchResources = &admissionregistrationv1.MatchResources{NamespaceSelector: namespaces}
	}
	return b
}

// on are the same rules as those of a webhook.
func on(rules []admissionregistrationv1.RuleWithOperations) *admissionregistrationv1.MatchResources {
	named := make([]admissionregistrationv1.NamedRuleWithOperations, len(rules))
	for i := range rules {
		named[i].RuleWithOperations = rules[i]
	}
	return &admissionregistrationv1.MatchResources{ResourceRules: named}
}

// refusedInCEL is the sentence in which the guards refuse a downscale, in CEL.
func refusedInCEL() string {
	name := "'" + vocabulary.NoDownscale.Native + "'"
	for _, alias := range vocabulary.NoDownscale.Aliases {
		name = "('" + vocabulary.NoDownscale.Native + "' in oldObject.metadata.labels ? " + name + " : '" + alias + "')"
	}
	return "'downscale of ' + request.resource.resource + '/' + request.name + ' in ' + request.namespace + " +
		"' from ' + string(oldObject.spec.replicas) + ' to ' + string(object.spec.?replicas.orValue(0)) + " +
		"' replicas is not allowed because it has the label \\'' + " + name + " + '=true\\''"
}

// Rules are those of a webhook or a policy about one operation on some resources.
func Rules(operation admissionregistrationv1.OperationType, group, version string, resources ...string) []admissionregistrationv1.RuleWithOperations {
	return []admissionregistrationv1.RuleWithOperations{{
		Operations: []admissionregistrationv1.OperationType{operation},
		Rule:       admissionregistrationv1.Rule{APIGroups: []string{group}, APIVersions: []string{version}, Resources: resources},
	}}
}
