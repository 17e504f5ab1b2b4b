package v1alpha1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// GroupVersion is that of the kinds in this package.
var GroupVersion = schema.GroupVersion{Group: "spillway.dev", Version: "v1alpha1"}

// SchemeBuilder collects what makes the kinds known to a scheme.
var SchemeBuilder = runtime.NewSchemeBuilder(addKnownTypes)

// AddToScheme makes the kinds known to a scheme.
var AddToScheme = SchemeBuilder.AddToScheme

func addKnownTypes(s *runtime.Scheme) error {
	s.AddKnownTypes(GroupVersion,
		&RolloutGroup{}, &RolloutGroupList{},
		&ModuleRevision{}, &ModuleRevisionList{},
		&ClusterBudget{}, &ClusterBudgetList{},
		&RolloutGate{}, &RolloutGateList{},
		&GateTemplate{}, &GateTemplateList{},
		&Notifier{}, &NotifierList{},
		&ConfigPolicy{}, &ConfigPolicyList{},
		&ClusterConfigPolicy{}, &ClusterConfigPolicyList{},
		&ConfigRollout{}, &ConfigRolloutList{},
	)
	metav1.AddToGroupVersion(s, GroupVersion)
	return nil
}
