package admit

import (
	"strings"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	appsv1 "k8s.io/api/apps/v1"

	"github.com/spillway-dev/spillway/internal/admission"
	"github.com/spillway-dev/spillway/internal/config/pin"
	"github.com/spillway-dev/spillway/internal/config/workload"
	"github.com/spillway-dev/spillway/internal/vocabulary"
)

// webhookTimeout is how long, in seconds, the API server waits for an answer.
const webhookTimeout = 5

// Declared are the webhooks and the policy of the ring, to be installed. In some namespaces webhooks
// may point Pods at the snapshots of their config, instead of a policy.
func Declared(pinned pin.Namespaces) admission.Declared {
	d := admission.Declared{Policies: policies()}
	if !pinned.IsEmpty() {
		d.Webhooks = pin.Webhooks(pinned)
	}
	for _, kind := range workload.Kinds() {
		d.Webhooks = append(d.Webhooks, declared(kind))
	}
	return d
}

// declared is the webhook for a kind of workload. The API server calls it only
// for workloads that are tracked or suspended, and only when they are created, when
// their Pod template changes, or while they are suspended. Without an answer the
// request passes unchanged, and the ring sets the hash later.
func declared(kind string) admission.Webhook {
	again := admissionregistrationv1.IfNeededReinvocationPolicy
	return admission.Webhook{
		Name: resource(kind) + ".config.spillway.dev", Path: webhookPath(kind), Mutating: true,
		Rules: []admissionregistrationv1.RuleWithOperations{{
			Operations: []admissionregistrationv1.OperationType{admissionregistrationv1.Create, admissionregistrationv1.Update},
			Rule: admissionregistrationv1.Rule{
				APIGroups: []string{appsv1.GroupName}, APIVersions: []string{"v1"}, Resources: []string{resource(kind)},
			},
		}},
		MatchConditions: []admissionregistrationv1.MatchCondition{
			{Name: "tracked-or-suspended", Expression: concernsUs()},
			{Name: "starts-or-changes-pods", Expression: "request.operation == 'CREATE' || object.spec.template != oldObject.spec.template || " + suspendedInCEL()},
		},
		FailurePolicy:      admissionregistrationv1.Ignore,
		SideEffects:        admissionregistrationv1.SideEffectClassNoneOnDryRun, // snapshots
		ReinvocationPolicy: &again,                                              // what other webhooks add to the template counts too
		TimeoutSeconds:     webhookTimeout,
	}
}

// resource is the plural of a kind, as in the API.
func resource(kind string) string { return strings.ToLower(kind) + "s" }

// webhookPath is the path that wave has for a kind.
func webhookPath(kind string) string { return "/mutate-apps-v1-" + strings.ToLower(kind) }

// concernsUs is true, in CEL, for workloads that are tracked or suspended, or were.
func concernsUs() string {
	var mentioned []string
	for _, key := range []vocabulary.Key{vocabulary.ConfigTracked, vocabulary.Suspended, vocabulary.SchedulingDisabled} {
		for _, name := range key.Names() {
			mentioned = append(mentioned, "'"+name+"' in object.metadata.annotations")
		}
	}
	return "(has(object.metadata.annotations) && (" + strings.Join(mentioned, " || ") + ")) || " + suspendedInCEL()
}

// suspendedInCEL is [workload.Suspension.IsSuspended] in CEL.
func suspendedInCEL() string {
	const pod = "object.spec.template.spec"
	return "(has(" + pod + ".schedulingGates) && " + pod + ".schedulingGates.exists(g, g.name == '" + vocabulary.SchedulingGate + "')) || " +
		"(has(" + pod + ".schedulerName) && " + pod + ".schedulerName == '" + vocabulary.SuspendedScheduler + "')"
}
