package admit

import (
	"slices"

	"k8s.io/apimachinery/pkg/types"

	"github.com/spillway-dev/spillway/api/kudo/v1beta1"
	"github.com/spillway-dev/spillway/internal/plans/choice"
	"github.com/spillway-dev/spillway/internal/vocabulary"
)

// submission is an Instance that a client is about to create or update.
type submission struct {
	now *v1beta1.Instance
	// before is nil for an Instance that is new.
	before *v1beta1.Instance
	// versions are the OperatorVersions that were read, nil if one does not exist or must
	// not be read.
	versions map[types.NamespacedName]*choice.Version
}

// specs are those whose OperatorVersions must be read.
func (s *submission) specs() []*v1beta1.InstanceSpec {
	specs := []*v1beta1.InstanceSpec{&s.now.Spec}
	if s.before != nil {
		specs = append(specs, &s.before.Spec)
	}
	if applied := s.now.Status.LastAppliedInstanceSpec; applied != nil {
		specs = append(specs, applied)
	}
	return specs
}

// problems are why the submission would stall the Instance, without those that it had
// before: an old mistake does not prevent another change. An OperatorVersion that does
// not exist yet is no problem.
func (s *submission) problems() []choice.Problem {
	if s.version(&s.now.Spec) == nil {
		return nil
	}
	problems := append(s.judge(&s.now.Spec), s.gates()...)
	if s.before == nil {
		return problems
	}
	if s.version(&s.before.Spec) != nil && len(problems) > 0 {
		known := s.judge(&s.before.Spec)
		problems = slices.DeleteFunc(problems, func(p choice.Problem) bool { return slices.Contains(known, p) })
	}
	if problem := s.request(); problem != nil {
		problems = append(problems, *problem)
	}
	return problems
}

// judge says what the controller would say of a spec, with the present status.
func (s *submission) judge(spec *v1beta1.InstanceSpec) []choice.Problem {
	instance := *s.now
	instance.Spec = *spec
	status, former := s.status(), (*choice.Version)(nil)
	if applied := status.LastAppliedInstanceSpec; applied != nil {
		former = s.version(applied)
	}
	_, problems := choice.Choose(choice.ReplacementOf(&instance, status, s.version(spec), former))
	return problems
}

// status is that of the Instance, with what KUDO has applied, which the controller may
// not have written yet.
func (s *submission) status() *v1beta1.InstanceStatus {
	status := s.now.Status.DeepCopy()
	if s.before != nil && s.version(&s.before.Spec) != nil {
		choice.Adopt(status, s.before, s.version(&s.before.Spec))
	}
	return status
}

// gates are the problems of the gates. Where they are as they were, they are old mistakes.
func (s *submission) gates() []choice.Problem {
	is := vocabulary.PlanGates.Get(s.now.Annotations)
	if s.before != nil && is == vocabulary.PlanGates.Get(s.before.Annotations) {
		return nil
	}
	_, problems := choice.Gates(s.now, s.version(&s.now.Spec))
	return problems
}

// request is the problem of the requested plan, if it was not requested before.
func (s *submission) request() *choice.Problem {
	plan := s.now.Spec.PlanExecution.PlanName
	if plan == "" || plan == s.before.Spec.PlanExecution.PlanName {
		return nil
	}
	return choice.RequestProblem(s.version(&s.now.Spec), plan)
}

func (s *submission) version(spec *v1beta1.InstanceSpec) *choice.Version {
	return s.versions[choice.VersionKey(s.now.Namespace, spec)]
}
