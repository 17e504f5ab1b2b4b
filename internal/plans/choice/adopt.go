package choice

import (
	"encoding/json"

	"github.com/spillway-dev/spillway/api/kudo/v1beta1"
	"github.com/spillway-dev/spillway/internal/vocabulary"
)

// Adopt completes the status of an Instance that KUDO has managed: what was last
// applied is the spec that old versions of KUDO recorded in an annotation, or, if
// one of KUDO's plans is complete, the spec as it is. So changing over to Spillway
// runs no plan.
func Adopt(s *v1beta1.InstanceStatus, i *v1beta1.Instance, version *Version) {
	if s.LastAppliedInstanceSpec != nil || s.Execution != nil {
		return
	}
	if spec := recorded(i.Annotations); spec != nil {
		s.LastAppliedInstanceSpec = spec
	} else if isInstalled(s.PlanStatus) {
		s.LastAppliedInstanceSpec = Target(&i.Spec)
	}
	if s.LastAppliedInstanceSpec != nil {
		s.ImmutableParameters = Immutables(version.Spec, s.LastAppliedInstanceSpec.Parameters, nil)
		s.PlanStatus = withoutRunning(s.PlanStatus)
		s.AggregatedStatus.Status = v1beta1.Complete
	}
}

func recorded(annotations map[string]string) *v1beta1.InstanceSpec {
	value := vocabulary.LastAppliedInstanceState.Get(annotations)
	if value == "" {
		return nil
	}
	spec := &v1beta1.InstanceSpec{}
	if json.Unmarshal([]byte(value), spec) != nil || spec.OperatorVersion.Name == "" {
		return nil
	}
	return Target(spec)
}

// isInstalled is true if a plan has installed the application.
func isInstalled(plans map[string]v1beta1.PlanStatus) bool {
	for _, plan := range []string{v1beta1.DeployPlan, v1beta1.UpdatePlan, v1beta1.UpgradePlan} {
		if plans[plan].Status == v1beta1.Complete {
			return true
		}
	}
	return false
}

// withoutRunning ends the plans that KUDO left running.
func withoutRunning(plans map[string]v1beta1.PlanStatus) map[string]v1beta1.PlanStatus {
	for name, p := range plans {
		if p.Status.IsRunning() {
			p.Status, p.Message = v1beta1.FatalError, "left unfinished by KUDO"
			plans[name] = p
		}
	}
	return plans
}
