package apiserver

import (
	"fmt"

	autoscalingv1 "k8s.io/api/autoscaling/v1"
	autoscalingv2 "k8s.io/api/autoscaling/v2"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
)

// inOneVersion is what is to be applied in the version in which its kind is kept: the
// newest of HorizontalPodAutoscalers, and of other kinds the one that came first. Of kinds
// that no Go type is known of another version is another name, as it is to an API server
// whose CustomResourceDefinition names no webhook.
func (s *Store) inOneVersion(u *unstructured.Unstructured) (*unstructured.Unstructured, error) {
	gvk := u.GroupVersionKind()
	if gvk == autoscalingv1.SchemeGroupVersion.WithKind("HorizontalPodAutoscaler") {
		return autoscalerV2(u)
	}
	k := s.of(gvk)
	switch {
	case len(k.objects) == 0 || k.gvk.Version == gvk.Version:
		return u, nil
	case s.scheme.Recognizes(gvk) || s.scheme.Recognizes(k.gvk):
		return nil, apierrors.NewBadRequest(fmt.Sprintf("others of its kind are of %s; write all of one kind in one version, because nothing converts them here",
			k.gvk.GroupVersion()))
	default:
		u.SetGroupVersionKind(k.gvk)
		return u, nil
	}
}

// autoscalerV2 is a HorizontalPodAutoscaler of autoscaling/v1 as one of v2.
func autoscalerV2(u *unstructured.Unstructured) (*unstructured.Unstructured, error) {
	v1 := &autoscalingv1.HorizontalPodAutoscaler{}
	if err := runtime.DefaultUnstructuredConverter.FromUnstructured(u.Object, v1); err != nil {
		return nil, apierrors.NewBadRequest(fmt.Sprintf("HorizontalPodAutoscaler cannot be read: %v", err))
	}
	spec := autoscalingv2.HorizontalPodAutoscalerSpec{
		ScaleTargetRef: autoscalingv2.CrossVersionObjectReference(v1.Spec.ScaleTargetRef), MinReplicas: v1.Spec.MinReplicas, MaxReplicas: v1.Spec.MaxReplicas,
	}
	if percent := v1.Spec.TargetCPUUtilizationPercentage; percent != nil {
		spec.Metrics = []autoscalingv2.MetricSpec{{Type: autoscalingv2.ResourceMetricSourceType, Resource: &autoscalingv2.ResourceMetricSource{
			Name: corev1.ResourceCPU, Target: autoscalingv2.MetricTarget{Type: autoscalingv2.UtilizationMetricType, AverageUtilization: percent},
		}}}
	}
	written, err := runtime.DefaultUnstructuredConverter.ToUnstructured(&spec)
	if err != nil {
		return nil, fmt.Errorf("convert HorizontalPodAutoscaler %s: %w", u.GetName(), err)
	}
	v2 := u.DeepCopy()
	v2.SetAPIVersion(autoscalingv2.SchemeGroupVersion.String())
	v2.Object["spec"] = written
	return v2, nil
}
