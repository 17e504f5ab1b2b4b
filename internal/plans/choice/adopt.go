package choice

import (
	"encoding/json"
	"maps"
	"slices"

	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/validation"

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
	s.KUDOExecutions = executions(s.PlanStatus)
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
	if json.Unmarshal([]byte(value), spec) != nil || len(validation.IsDNS1123Subdomain(spec.OperatorVersion.Name)) > 0 {
		return nil
	}
	if of := spec.OperatorVersion.Namespace; of != "" && len(validation.IsDNS1123Label(of)) > 0 {
		return nil
	}
	return Target(spec)
}

// executions are the last one of each plan.
func executions(plans map[string]v1beta1.PlanStatus) []types.UID {
	var all []types.UID
	for _, name := range slices.Sorted(maps.Keys(plans)) {
		if uid := plans[name].UID; uid != "" && !slices.Contains(all, uid) {
			all = append(all, uid)
		}
	}
	return all
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
