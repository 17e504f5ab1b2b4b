package apiserver

import (
	"reflect"
	"slices"

	appsv1 "k8s.io/api/apps/v1"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// admit refuses what an API server would: values that a kind does not allow, and other
// values of immutable fields. Before is nil of what is created.
func (k *kind) admit(before, after client.Object) error {
	errs := slices.Concat(Mistakes(after), lacks(after))
	if before != nil {
		errs = append(errs, frozen(before, after)...)
	}
	if len(errs) == 0 {
		return nil
	}
	return apierrors.NewInvalid(k.gvk.GroupKind(), after.GetName(), errs)
}

// frozen are the immutable fields that were changed, in the words by which a ring
// recognizes that an object must be recreated.
func frozen(before, after client.Object) field.ErrorList {
	switch is := after.(type) {
	case *corev1.ConfigMap:
		was, _ := before.(*corev1.ConfigMap)
		return sealed(was.Immutable, is.Immutable, map[string]bool{
			"data": reflect.DeepEqual(was.Data, is.Data), "binaryData": reflect.DeepEqual(was.BinaryData, is.BinaryData),
		})
	case *corev1.Secret:
		was, _ := before.(*corev1.Secret)
		return append(unchanged(was.Type, is.Type, field.NewPath("type")),
			sealed(was.Immutable, is.Immutable, map[string]bool{"data": reflect.DeepEqual(was.Data, is.Data)})...)
	case *appsv1.StatefulSet:
		was, _ := before.(*appsv1.StatefulSet)
		return frozenInStatefulSet(&was.Spec, &is.Spec)
	case *appsv1.Deployment:
		was, _ := before.(*appsv1.Deployment)
		return unchanged(was.Spec.Selector, is.Spec.Selector, field.NewPath("spec", "selector"))
	case *appsv1.DaemonSet:
		was, _ := before.(*appsv1.DaemonSet)
		return unchanged(was.Spec.Selector, is.Spec.Selector, field.NewPath("spec", "selector"))
	case *batchv1.Job:
		was, _ := before.(*batchv1.Job)
		return frozenInJob(&was.Spec, &is.Spec)
	default:
		return nil
	}
}

func frozenInStatefulSet(was, is *appsv1.StatefulSetSpec) field.ErrorList {
	at := field.NewPath("spec")
	return slices.Concat(
		unchanged(was.Selector, is.Selector, at.Child("selector")),
		unchanged(was.VolumeClaimTemplates, is.VolumeClaimTemplates, at.Child("volumeClaimTemplates")),
		unchanged(was.ServiceName, is.ServiceName, at.Child("serviceName")),
		unchanged(was.PodManagementPolicy, is.PodManagementPolicy, at.Child("podManagementPolicy")),
	)
}

// frozenInJob are those of a Job that is not suspended.
func frozenInJob(was, is *batchv1.JobSpec) field.ErrorList {
	at := field.NewPath("spec")
	errs := slices.Concat(
		unchanged(was.Selector, is.Selector, at.Child("selector")),
		unchanged(was.CompletionMode, is.CompletionMode, at.Child("completionMode")),
	)
	if is.CompletionMode == nil || *is.CompletionMode != batchv1.IndexedCompletion {
		errs = append(errs, unchanged(was.Completions, is.Completions, at.Child("completions"))...)
	}
	if was.Suspend == nil || !*was.Suspend {
		errs = append(errs, unchanged(was.Template, is.Template, at.Child("template"))...)
	}
	return errs
}

func unchanged(was, is any, at *field.Path) field.ErrorList {
	if equality.Semantic.DeepEqual(was, is) {
		return nil
	}
	return field.ErrorList{field.Invalid(at, is, "field is immutable")}
}

// sealed are the fields of an immutable ConfigMap or Secret that are not the same. It
// stays immutable.
func sealed(was, is *bool, same map[string]bool) field.ErrorList {
	if was == nil || !*was {
		return nil
	}
	same["immutable"] = is != nil && *is
	var errs field.ErrorList
	for _, name := range []string{"immutable", "data", "binaryData"} {
		if kept, has := same[name]; has && !kept {
			errs = append(errs, field.Forbidden(field.NewPath(name), "field is immutable when `immutable` is set"))
		}
	}
	return errs
}
