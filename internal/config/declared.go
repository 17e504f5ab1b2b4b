package config

import (
	"strings"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	appsv1 "k8s.io/api/apps/v1"
	ctrl "sigs.k8s.io/controller-runtime"

	"github.com/spillway-dev/spillway/internal/admission"
	"github.com/spillway-dev/spillway/internal/vocabulary"
)

// webhookTimeout is how long, in seconds, the API server waits for an answer.
const webhookTimeout = 5

// Declared is what the ring wants the cluster to have.
func Declared() admission.Declared {
	d := admission.Declared{Policies: policies()}
	for _, kind := range sortedKinds() {
		d.Webhooks = append(d.Webhooks, declared(kind))
	}
	return d
}

// declared is the webhook for a kind of workload. The API server calls it only
// for workloads that are tracked or suspended, and only when they are new, when
// their Pod template changes, or while they are suspended. If nobody answers they are made
// as they are, and the ring catches up.
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
		ReinvocationPolicy: &again, // what others add to the template counts too
		TimeoutSeconds:     webhookTimeout,
	}
}

// resource is the plural by which the API server knows a kind.
func resource(kind string) string { return strings.ToLower(kind) + "s" }

// webhookPath is the path that the predecessor has for a kind.
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

// suspendedInCEL is [Suspension.suspended] in CEL.
func suspendedInCEL() string {
	const pod = "object.spec.template.spec"
	return "(has(" + pod + ".schedulingGates) && " + pod + ".schedulingGates.exists(g, g.name == '" + vocabulary.SchedulingGate + "')) || " +
		"(has(" + pod + ".schedulerName) && " + pod + ".schedulerName == '" + vocabulary.SuspendedScheduler + "')"
}

// Routes answer the ring's webhooks.
func Routes(mgr ctrl.Manager, o Options) ([]admission.Route, error) {
	provided, err := driverInstalled(mgr.GetRESTMapper())
	if err != nil {
		return nil, err
	}
	handler := &admitter{options: o, live: mgr.GetAPIReader(), lists: mgr.GetCache(), provided: provided}
	var routes []admission.Route
	for _, kind := range sortedKinds() {
		routes = append(routes, admission.Route{Path: webhookPath(kind), Handler: handler})
	}
	return routes, nil
}
