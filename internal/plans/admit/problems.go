package admit

import (
	"k8s.io/apimachinery/pkg/types"

	"github.com/spillway-dev/spillway/api/kudo/v1beta1"
	"github.com/spillway-dev/spillway/internal/plans/choice"
)

// ProblemsOf are why an Instance that is created from a manifest would not be deployed
// with an OperatorVersion: what the webhook would answer.
func ProblemsOf(instance *v1beta1.Instance, version *v1beta1.OperatorVersion) []choice.Problem {
	now := instance.DeepCopy()
	now.Status = v1beta1.InstanceStatus{}
	v := choice.NewVersion(version)
	s := submission{now: now, versions: map[types.NamespacedName]*choice.Version{choice.VersionKey(now.Namespace, &now.Spec): v}}
	problems := s.problems()
	if plan := now.Spec.PlanExecution.PlanName; plan != "" {
		if problem := choice.RequestProblem(v, plan); problem != nil {
			problems = append(problems, *problem)
		}
	}
	return problems
}
