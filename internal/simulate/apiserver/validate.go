package apiserver

import (
	"fmt"
	"slices"
	"strings"

	appsv1 "k8s.io/api/apps/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// Mistakes are the values of a workload that an API server would refuse whatever else
// the object has: so they are mistakes also in a manifest that leaves something out,
// because it is applied over another. It is in the words of the API server
// (pkg/apis/apps/validation), as far as a rollout has to do with a field.
func Mistakes(obj client.Object) field.ErrorList {
	spec := field.NewPath("spec")
	switch o := obj.(type) {
	case *appsv1.StatefulSet:
		return mistakesInStatefulSet(&o.Spec, spec)
	case *appsv1.Deployment:
		return mistakesInDeployment(&o.Spec, spec)
	case *appsv1.DaemonSet:
		return mistakesInDaemonSet(&o.Spec, spec)
	default:
		return nil
	}
}

func mistakesInStatefulSet(s *appsv1.StatefulSetSpec, at *field.Path) field.ErrorList {
	errs := notNegative(s.Replicas, at.Child("replicas"))
	errs = append(errs, notNegative(&s.MinReadySeconds, at.Child("minReadySeconds"))...)
	if s.Ordinals != nil {
		errs = append(errs, notNegative(&s.Ordinals.Start, at.Child("ordinals", "start"))...)
	}
	switch s.PodManagementPolicy {
	case "", appsv1.OrderedReadyPodManagement, appsv1.ParallelPodManagement:
	default:
		errs = append(errs, field.Invalid(at.Child("podManagementPolicy"), s.PodManagementPolicy,
			fmt.Sprintf("must be '%s' or '%s'", appsv1.OrderedReadyPodManagement, appsv1.ParallelPodManagement)))
	}
	return append(errs, mistakesInSetStrategy(&s.UpdateStrategy, at.Child("updateStrategy"))...)
}

func mistakesInSetStrategy(s *appsv1.StatefulSetUpdateStrategy, at *field.Path) field.ErrorList {
	rolling := at.Child("rollingUpdate")
	switch s.Type {
	case "", appsv1.RollingUpdateStatefulSetStrategyType:
		if s.RollingUpdate == nil {
			return nil
		}
		most := s.RollingUpdate.MaxUnavailable
		return slices.Concat(
			notNegative(s.RollingUpdate.Partition, rolling.Child("partition")),
			atMostAll(most, rolling.Child("maxUnavailable")), notZero(most, rolling.Child("maxUnavailable")),
		)
	case appsv1.OnDeleteStatefulSetStrategyType:
		if s.RollingUpdate == nil {
			return nil
		}
		return field.ErrorList{field.Invalid(rolling, s.RollingUpdate, fmt.Sprintf("only allowed for updateStrategy '%s'", appsv1.RollingUpdateStatefulSetStrategyType))}
	default:
		return field.ErrorList{field.Invalid(at, *s, fmt.Sprintf("must be '%s' or '%s'", appsv1.RollingUpdateStatefulSetStrategyType, appsv1.OnDeleteStatefulSetStrategyType))}
	}
}

func mistakesInDeployment(s *appsv1.DeploymentSpec, at *field.Path) field.ErrorList {
	errs := notNegative(s.Replicas, at.Child("replicas"))
	errs = append(errs, notNegative(&s.MinReadySeconds, at.Child("minReadySeconds"))...)
	errs = append(errs, notNegative(s.ProgressDeadlineSeconds, at.Child("progressDeadlineSeconds"))...)
	if d := s.ProgressDeadlineSeconds; d != nil && *d <= s.MinReadySeconds {
		errs = append(errs, field.Invalid(at.Child("progressDeadlineSeconds"), *d, "must be greater than minReadySeconds"))
	}
	return append(errs, mistakesInDeploymentStrategy(&s.Strategy, at.Child("strategy"))...)
}

func mistakesInDeploymentStrategy(s *appsv1.DeploymentStrategy, at *field.Path) field.ErrorList {
	rolling := at.Child("rollingUpdate")
	switch s.Type {
	case "", appsv1.RollingUpdateDeploymentStrategyType:
		if s.RollingUpdate == nil {
			return nil
		}
		unavailable, surge := s.RollingUpdate.MaxUnavailable, s.RollingUpdate.MaxSurge
		errs := append(atMostAll(unavailable, rolling.Child("maxUnavailable")), positive(surge, rolling.Child("maxSurge"))...)
		if unavailable != nil && surge != nil && isZero(unavailable) && isZero(surge) {
			errs = append(errs, field.Invalid(rolling.Child("maxUnavailable"), *unavailable, "may not be 0 when `maxSurge` is 0"))
		}
		return errs
	case appsv1.RecreateDeploymentStrategyType:
		if s.RollingUpdate == nil {
			return nil
		}
		return field.ErrorList{field.Forbidden(rolling, "may not be specified when strategy `type` is 'Recreate'")}
	default:
		return field.ErrorList{field.NotSupported(at, *s, []appsv1.DeploymentStrategyType{appsv1.RecreateDeploymentStrategyType, appsv1.RollingUpdateDeploymentStrategyType})}
	}
}

func mistakesInDaemonSet(s *appsv1.DaemonSetSpec, at *field.Path) field.ErrorList {
	errs := notNegative(&s.MinReadySeconds, at.Child("minReadySeconds"))
	at = at.Child("updateStrategy")
	switch u := s.UpdateStrategy; u.Type {
	case "", appsv1.RollingUpdateDaemonSetStrategyType:
		if u.RollingUpdate != nil {
			errs = append(errs, mistakesInDaemonSetRolling(u.RollingUpdate, at.Child("rollingUpdate"))...)
		}
	case appsv1.OnDeleteDaemonSetStrategyType:
	default:
		errs = append(errs, field.NotSupported(at, u, []appsv1.DaemonSetUpdateStrategyType{appsv1.RollingUpdateDaemonSetStrategyType, appsv1.OnDeleteDaemonSetStrategyType}))
	}
	return errs
}

func mistakesInDaemonSetRolling(r *appsv1.RollingUpdateDaemonSet, at *field.Path) field.ErrorList {
	errs := append(atMostAll(r.MaxUnavailable, at.Child("maxUnavailable")), atMostAll(r.MaxSurge, at.Child("maxSurge"))...)
	if r.MaxUnavailable == nil || r.MaxSurge == nil {
		return errs
	}
	switch without := isZero(r.MaxUnavailable); {
	case without && isZero(r.MaxSurge):
		errs = append(errs, field.Required(at.Child("maxUnavailable"), "cannot be 0 when maxSurge is 0"))
	case !without && !isZero(r.MaxSurge):
		errs = append(errs, field.Invalid(at.Child("maxSurge"), *r.MaxSurge, "may not be set when maxUnavailable is non-zero"))
	}
	return errs
}

// notZero finds a number or a percentage that lets nothing go on.
func notZero(value *intstr.IntOrString, at *field.Path) field.ErrorList {
	if value == nil || !isZero(value) {
		return nil
	}
	return field.ErrorList{field.Invalid(at, *value, "cannot be 0")}
}

// atMostAll finds in addition a percentage of more than all.
func atMostAll(value *intstr.IntOrString, at *field.Path) field.ErrorList {
	errs := positive(value, at)
	if value != nil && len(errs) == 0 && value.Type == intstr.String && percentage(value) > whole {
		errs = append(errs, field.Invalid(at, *value, "must not be greater than 100%"))
	}
	return errs
}

// positive finds what is neither a number from 0 on nor a percentage.
func positive(value *intstr.IntOrString, at *field.Path) field.ErrorList {
	if value == nil {
		return nil
	}
	if value.Type == intstr.Int {
		return notNegative(&value.IntVal, at)
	}
	var errs field.ErrorList
	for _, message := range validation.IsValidPercent(value.StrVal) {
		errs = append(errs, field.Invalid(at, *value, message))
	}
	return errs
}

func notNegative(value *int32, at *field.Path) field.ErrorList {
	if value == nil || *value >= 0 {
		return nil
	}
	return field.ErrorList{field.Invalid(at, *value, "must be greater than or equal to 0")}
}

const whole = 100

// percentage is the number of a percentage, which may be longer than any number.
func percentage(value *intstr.IntOrString) int {
	n, err := intstr.GetScaledValueFromIntOrPercent(value, whole, false)
	if err != nil {
		return whole + 1
	}
	return n
}

// isZero is true as well of what is no percentage.
func isZero(value *intstr.IntOrString) bool {
	if value.Type == intstr.Int {
		return value.IntVal == 0
	}
	return len(validation.IsValidPercent(value.StrVal)) > 0 || strings.Trim(value.StrVal, "0") == "%"
}

// lacks are what a workload has to have that stands in no other object: without it, it
// is refused when it is created.
func lacks(obj client.Object) field.ErrorList {
	switch o := obj.(type) {
	case *appsv1.StatefulSet:
		return unselected(o.Spec.Selector, o.Spec.Template.Labels, "statefulset")
	case *appsv1.Deployment:
		return unselected(o.Spec.Selector, o.Spec.Template.Labels, "deployment")
	case *appsv1.DaemonSet:
		return unselected(o.Spec.Selector, o.Spec.Template.Labels, "daemonset")
	default:
		return nil
	}
}

// unselected finds a selector that is missing, or that does not select the Pods.
func unselected(s *metav1.LabelSelector, of labels.Set, kind string) field.ErrorList {
	var errs field.ErrorList
	at := field.NewPath("spec", "selector")
	switch {
	case s == nil && kind != "daemonset":
		errs = append(errs, field.Required(at, ""))
	case s != nil && len(s.MatchLabels)+len(s.MatchExpressions) == 0:
		errs = append(errs, field.Invalid(at, s, "empty selector is invalid for "+kind))
	}
	selector, err := metav1.LabelSelectorAsSelector(s)
	if err != nil {
		return append(errs, field.Invalid(at, s, err.Error()))
	}
	if !selector.Matches(of) {
		errs = append(errs, field.Invalid(field.NewPath("spec", "template", "metadata", "labels"), of, "`selector` does not match template `labels`"))
	}
	return errs
}
