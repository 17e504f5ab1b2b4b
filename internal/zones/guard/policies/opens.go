package policies

import (
	"strconv"
	"strings"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	appsv1 "k8s.io/api/apps/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/spillway-dev/spillway/internal/admission"
	"github.com/spillway-dev/spillway/internal/vocabulary"
)

// opensName is the name of the policy and of its binding.
const opensName = "out-of-turn.zones.spillway.dev"

// OutOfTurn forbids writes by which Kubernetes replaces Pods of a zone whose turn it is not: the
// zone is not held any more, by its type OnDelete or by its partition, and in the same write its
// template changes, or by its type while Pods are outdated. The manager cannot hold such a zone in
// time, and zones that are written in one apply would all lose Pods at the same time.
//
// A zone that has its turn is not held already. One that Spillway has lent the type OnDelete has
// its turn, too.
func OutOfTurn() []client.Object {
	return []client.Object{
		admission.Policy(opensName, admissionregistrationv1.ValidatingAdmissionPolicySpec{
			MatchConstraints: on(Rules(admissionregistrationv1.Update, appsv1.GroupName, "v1", "statefulsets")),
			MatchConditions: []admissionregistrationv1.MatchCondition{
				{Name: "in-a-group", Expression: groupCEL("oldObject") + " != '' && " + groupCEL("object") + " == " + groupCEL("oldObject")},
				{Name: "opens", Expression: isOpenCEL("object") + " && !(" + isOpenCEL("oldObject") + ")"},
				{Name: "not-lent", Expression: "!(" + strconv.Quote(vocabulary.LentStrategy.Native) + " in oldObject.metadata.?annotations.orValue({}))"},
			},
			Variables: []admissionregistrationv1.Variable{
				{Name: "changes", Expression: "object.spec.template != oldObject.spec.template"},
				{Name: "byType", Expression: "oldObject.spec.updateStrategy.?type.orValue('') != 'RollingUpdate'"},
				{Name: "outdated", Expression: "oldObject.?status.?updateRevision.orValue('') != oldObject.?status.?currentRevision.orValue('')"},
			},
			Validations: []admissionregistrationv1.Validation{{
				Expression: "!variables.changes && !(variables.byType && variables.outdated)",
				MessageExpression: "'StatefulSet ' + object.metadata.name + ': ' + (variables.byType ? 'spec.updateStrategy.type: invalid value \"RollingUpdate\"' : " +
					"'spec.updateStrategy.rollingUpdate.partition: invalid value ' + string(" + partitionCEL("object") + ")) + " +
					"(variables.changes ? ' together with another spec.template' : ' while Pods are outdated') + " +
					"': Kubernetes would replace Pods out of turn, whatever RolloutGroup ' + " + groupCEL("object") + " + ' says; ' + " +
					"(variables.byType ? 'set the type of all StatefulSets of the group while it is Complete, and then change spec.template' : " +
					"'leave the partition out, and keep the one that Spillway has set')",
			}},
		}),
		binding(opensName, opensName, nil, nil),
	}
}

// groupCEL is the group of an object, in CEL, empty if it has none. An annotation wins over a label.
func groupCEL(object string) string {
	var named []string
	for _, in := range []string{"annotations", "labels"} {
		for _, name := range vocabulary.RolloutGroup.Names() {
			named = append(named, object+".metadata.?"+in+"['"+name+"']")
		}
	}
	return strings.Join(named, ".or(") + strings.Repeat(")", len(named)-1) + ".orValue('')"
}

// isOpenCEL is true, in CEL, of a StatefulSet whose controller replaces outdated Pods.
func isOpenCEL(object string) string {
	return object + ".spec.updateStrategy.?type.orValue('') == 'RollingUpdate' && " + partitionCEL(object) + " < " + object + ".spec.?replicas.orValue(1)"
}

func partitionCEL(object string) string {
	return object + ".spec.updateStrategy.?rollingUpdate.?partition.orValue(0)"
}
