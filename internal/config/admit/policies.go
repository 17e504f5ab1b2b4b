package admit

import (
	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	appsv1 "k8s.io/api/apps/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/spillway-dev/spillway/internal/admission"
	"github.com/spillway-dev/spillway/internal/config/workload"
	"github.com/spillway-dev/spillway/internal/vocabulary"
)

// policyName is the name of the policy and of its binding.
const policyName = "config.spillway.dev"

// policies warn the user who writes an invalid annotation immediately, and without
// a call from the API server. They never refuse: a workload with such an annotation
// works, without that setting.
func policies() []client.Object {
	ignore := admissionregistrationv1.Ignore
	return []client.Object{
		admission.Policy(policyName, admissionregistrationv1.ValidatingAdmissionPolicySpec{
			FailurePolicy:    &ignore,
			MatchConstraints: &admissionregistrationv1.MatchResources{ResourceRules: workloadRules()},
			MatchConditions:  []admissionregistrationv1.MatchCondition{{Name: "tracked-or-suspended", Expression: concernsUs()}},
			Validations:      validations(),
		}),
		admission.Binding(policyName, policyName, admissionregistrationv1.Warn),
	}
}

func workloadRules() []admissionregistrationv1.NamedRuleWithOperations {
	rule := admissionregistrationv1.NamedRuleWithOperations{}
	rule.Operations = []admissionregistrationv1.OperationType{admissionregistrationv1.Create, admissionregistrationv1.Update}
	rule.APIGroups, rule.APIVersions = []string{appsv1.GroupName}, []string{"v1"}
	for _, kind := range workload.Kinds() {
		rule.Resources = append(rule.Resources, resource(kind))
	}
	return []admissionregistrationv1.NamedRuleWithOperations{rule}
}

// validations report for each annotation what [workload.Problem] would report.
func validations() []admissionregistrationv1.Validation {
	const name, namespace, key = `[a-z0-9]([-a-z0-9.]*[a-z0-9])?`, `[a-z0-9]([-a-z0-9]*[a-z0-9])?`, `[-._a-zA-Z0-9]+`
	list := func(entry string) string {
		return `value.matches('^\\s*(` + entry + `\\s*(,\\s*` + entry + `\\s*)*)?$')`
	}
	extra, ignored := `(`+namespace+`/)?`+name, name+`(:`+key+`)?`
	const boolean, whole, duration = `value in ['true', 'false']`, `value.matches('^\\s*[+-]?[0-9]+\\s*$')`,
		`value.matches('^\\s*[+]?(0|([0-9]+([.][0-9]*)?|[.][0-9]+)(ns|us|µs|μs|ms|s|m|h))+\\s*$')`
	var all []admissionregistrationv1.Validation
	for _, v := range []struct {
		key                vocabulary.Key
		expression, action string
	}{
		{vocabulary.ConfigTracked, boolean, workload.MustBeBoolean},
		{vocabulary.Paused, boolean, workload.MustBePause},
		{vocabulary.ImagePullSecrets, boolean, workload.MustBeBoolean},
		{vocabulary.Priority, whole, workload.MustBeInteger},
		{vocabulary.CoalesceWindow, duration, workload.MustBeDuration},
		{vocabulary.CollectFor, duration, workload.MustBeDuration},
		{vocabulary.ExtraConfigMaps, list(extra), workload.MustBeExtra},
		{vocabulary.ExtraSecrets, list(extra), workload.MustBeExtra},
		{vocabulary.IgnoredConfigMaps, list(ignored), workload.MustBeIgnored},
		{vocabulary.IgnoredSecrets, list(ignored), workload.MustBeIgnored},
		{vocabulary.StuckPods, `value in ['Replace', 'Keep']`, workload.MustBeStuckPods},
	} {
		for _, annotation := range v.key.Names() {
			all = append(all, warning(annotation, v.expression, v.action))
		}
	}
	return all
}

func warning(annotation, expression, action string) admissionregistrationv1.Validation {
	at := "object.metadata.annotations['" + annotation + "']"
	return admissionregistrationv1.Validation{
		Expression: "!has(object.metadata.annotations) || !('" + annotation + "' in object.metadata.annotations) || " +
			"[" + at + "].all(value, " + expression + ")",
		MessageExpression: `'annotation ` + annotation + `: invalid value "' + ` + at + ` + '": ` + action + `'`,
	}
}
