package v1

import (
	"fmt"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// GroupVersion is that of the kinds in this package.
var GroupVersion = schema.GroupVersion{Group: "rollout-operator.grafana.com", Version: "v1"}

var schemeBuilder = runtime.NewSchemeBuilder(addKnownTypes)

// AddToScheme makes the kinds known to a scheme.
func AddToScheme(s *runtime.Scheme) error {
	if err := schemeBuilder.AddToScheme(s); err != nil {
		return fmt.Errorf("make the kinds of %s known: %w", GroupVersion, err)
	}
	return nil
}

func addKnownTypes(s *runtime.Scheme) error {
	s.AddKnownTypes(GroupVersion,
		&ReplicaTemplate{}, &ReplicaTemplateList{},
		&ZoneAwarePodDisruptionBudget{}, &ZoneAwarePodDisruptionBudgetList{},
	)
	metav1.AddToGroupVersion(s, GroupVersion)
	return nil
}
