package plans

import (
	"slices"

	"k8s.io/apimachinery/pkg/types"

	"github.com/spillway-dev/spillway/api/kudo/v1beta1"
)

// submission is what somebody is about to make of an Instance.
type submission struct {
	now *v1beta1.Instance
	// before is nil for an Instance that is new.
	before *v1beta1.Instance
	// versions are the OperatorVersions that were looked at, nil if one is not there
	// or may not be seen.
	versions map[types.NamespacedName]*Version
}

// specs are those whose OperatorVersions have to be looked at.
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

func (s *submission) version(spec *v1beta1.InstanceSpec) *Version {
	return s.versions[versionKey(s.now.Namespace, spec)]
}

// problems are why the controller would not follow what is submitted, but for
// those that were there before: nobody has to fix what they have not touched, to
// be let do something else. An OperatorVersion that is not there yet is waited for.
func (s *submission) problems() []Problem {
	if s.version(&s.now.Spec) == nil {
		return nil
	}
	problems := s.judge(&s.now.Spec)
	if s.before == nil {
		return problems
	}
	if s.version(&s.before.Spec) != nil && len(problems) > 0 {
		known := s.judge(&s.before.Spec)
		problems = slices.DeleteFunc(problems, func(p Problem) bool { return slices.Contains(known, p) })
	}
	if problem := s.request(); problem != nil {
		problems = append(problems, *problem)
	}
	return problems
}

// judge says of a spec what the controller would say of it, if it saw it with the
// status that there is.
func (s *submission) judge(spec *v1beta1.InstanceSpec) []Problem {
	instance := *s.now
	instance.Spec = *spec
	d := &decision{o: &Observed{Instance: &instance, Version: s.version(spec)}, status: *s.status().DeepCopy()}
	if applied := d.status.LastAppliedInstanceSpec; applied != nil {
		d.o.Former = s.version(applied)
	}
	_, problems := Choose(d.replacement())
	return problems
}

// status is that of the Instance, with what was taken over from the predecessor
// though the controller may not have noted it yet.
func (s *submission) status() *v1beta1.InstanceStatus {
	if s.before == nil || s.version(&s.before.Spec) == nil {
		return &s.now.Status
	}
	d := &decision{o: &Observed{Instance: s.before, Version: s.version(&s.before.Spec)}, status: *s.now.Status.DeepCopy()}
	d.adopts()
	return &d.status
}

// request is what is wrong with the plan that is asked for, if it is not the one
// that was asked for before.
func (s *submission) request() *Problem {
	plan := s.now.Spec.PlanExecution.PlanName
	if plan == "" || plan == s.before.Spec.PlanExecution.PlanName {
		return nil
	}
	return unaskable(s.version(&s.now.Spec), plan)
}
