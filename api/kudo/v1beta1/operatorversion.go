package v1beta1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
)

// OperatorVersion is one version of an application: its templates, its
// parameters, and the plans that install, change and remove it.
//
// +kubebuilder:object:root=true
// +kubebuilder:resource:shortName=ov,categories={kudo,spillway}
// +kubebuilder:printcolumn:name=Operator,type=string,JSONPath=`.spec.operator.name`
// +kubebuilder:printcolumn:name=Version,type=string,JSONPath=`.spec.version`
// +kubebuilder:printcolumn:name=App-Version,type=string,JSONPath=`.spec.appVersion`
// +kubebuilder:printcolumn:name=Age,type=date,JSONPath=`.metadata.creationTimestamp`
type OperatorVersion struct {
	metav1.TypeMeta `json:",inline"`
	// +optional
	metav1.ObjectMeta `json:"metadata,omitempty"`

	// Spec is the package.
	// +optional
	// +kubebuilder:validation:XValidation:rule="!has(self.operator) || !has(self.operator.name) || size(self.operator.name) <= 63",message="operator.name may have at most 63 characters: it is the value of a label of all objects"
	Spec OperatorVersionSpec `json:"spec,omitempty"`
	// Status has no fields; manifests that were written for KUDO contain it.
	// +optional
	Status OperatorVersionStatus `json:"status,omitempty"`
}

// OperatorVersionList is a list of OperatorVersions.
//
// +kubebuilder:object:root=true
type OperatorVersionList struct {
	metav1.TypeMeta `json:",inline"`
	// +optional
	metav1.ListMeta `json:"metadata,omitempty"`

	Items []OperatorVersion `json:"items"`
}

// ObjectReference names an object, as in the core API group.
//
// +structType=atomic
type ObjectReference struct {
	// +optional
	Kind string `json:"kind,omitempty"`
	// +optional
	// +kubebuilder:validation:MaxLength=253
	// +kubebuilder:validation:Pattern=`^([a-z0-9]([-a-z0-9.]*[a-z0-9])?)?$`
	Namespace string `json:"namespace,omitempty"`
	// +optional
	// +kubebuilder:validation:MaxLength=253
	// +kubebuilder:validation:Pattern=`^([a-z0-9]([-a-z0-9.]*[a-z0-9])?)?$`
	Name string `json:"name,omitempty"`
	// +optional
	UID types.UID `json:"uid,omitempty"`
	// +optional
	APIVersion string `json:"apiVersion,omitempty"`
	// +optional
	ResourceVersion string `json:"resourceVersion,omitempty"`
	// +optional
	FieldPath string `json:"fieldPath,omitempty"`
}

// OperatorVersionSpec is a package. Changing it changes no Instance until a plan
// begins there; a plan that is running continues with the content that it began
// with.
type OperatorVersionSpec struct {
	// Operator is the application.
	// +optional
	Operator ObjectReference `json:"operator,omitempty"`
	// Version is that of the package.
	// +optional
	Version string `json:"version,omitempty"`
	// AppVersion is that of the application inside.
	// +optional
	AppVersion string `json:"appVersion,omitempty"`
	// Templates are the manifests, by file name.
	// +optional
	Templates map[string]string `json:"templates,omitempty"`
	// Tasks are what steps can do.
	// +optional
	// +listType=map
	// +listMapKey=name
	Tasks []Task `json:"tasks,omitempty"`
	// Parameters are what an Instance can set.
	// +optional
	// +listType=map
	// +listMapKey=name
	Parameters []Parameter `json:"parameters,omitempty"`
	// Plans are what can be run; deploy, update, upgrade and cleanup have a meaning.
	// +optional
	// +nullable
	Plans map[string]Plan `json:"plans,omitempty"`
	// Health are rules by which custom resources are ready, in place of their conditions. KUDO has
	// no such field.
	// +optional
	// +listType=map
	// +listMapKey=group
	// +listMapKey=kind
	// +kubebuilder:validation:MaxItems=64
	Health []HealthRule `json:"health,omitempty"`
	// ConnectionString is not used.
	// +optional
	ConnectionString string `json:"connectionString,omitempty"`
	// UpgradableFrom is not used.
	// +optional
	// +listType=atomic
	UpgradableFrom []ObjectReference `json:"upgradableFrom,omitempty"`
}

// HealthRule says by which conditions the objects of a kind are ready, or have failed. Both are CEL
// expressions over the object.
type HealthRule struct {
	// Group is the API group of the kind. Kubernetes' own kinds have no rules.
	// +kubebuilder:validation:MaxLength=253
	// +kubebuilder:validation:Pattern=`^[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)+$`
	Group string `json:"group"`
	// Kind is the kind.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=63
	Kind string `json:"kind"`
	// Ready is true of an object that is ready, such as object.status.phase == 'Running'. An object
	// without the field is not.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=1024
	Ready string `json:"ready"`
	// Failed is true of an object that will never be ready: the plan fails.
	// +optional
	// +kubebuilder:validation:MaxLength=1024
	Failed string `json:"failed,omitempty"`
}

// OperatorVersionStatus has no fields.
type OperatorVersionStatus struct{}

// The plans that have a meaning.
const (
	// DeployPlan installs; every package has it.
	DeployPlan = "deploy"
	// UpdatePlan follows a change of parameters that have no trigger of their own.
	UpdatePlan = "update"
	// UpgradePlan follows a change of the OperatorVersion.
	UpgradePlan = "upgrade"
	// CleanupPlan runs before an Instance is deleted.
	CleanupPlan = "cleanup"
)

// Ordering is how the parts of a plan follow one another; empty is parallel.
// +kubebuilder:validation:Enum="";serial;parallel
type Ordering string

// The orderings.
const (
	Serial   Ordering = "serial"
	Parallel Ordering = "parallel"
)

// Plan is a number of phases.
type Plan struct {
	// Strategy is how the phases follow one another.
	// +optional
	Strategy Ordering `json:"strategy,omitempty"`
	// Timeout is how long the plan may take. Default: for ever.
	// +optional
	// +kubebuilder:validation:Type=string
	// +kubebuilder:validation:Pattern=`^([0-9]+(\.[0-9]+)?(ns|us|ms|s|m|h))+$`
	Timeout *metav1.Duration `json:"timeout,omitempty"`
	// Phases are its parts.
	// +optional
	// +nullable
	// +listType=map
	// +listMapKey=name
	Phases []Phase `json:"phases,omitempty"`
}

// Phase is a number of steps.
type Phase struct {
	// Name is unique in its plan.
	// +kubebuilder:validation:MinLength=1
	Name string `json:"name"`
	// Strategy is how the steps follow one another.
	// +optional
	Strategy Ordering `json:"strategy,omitempty"`
	// Timeout is how long the phase may take. Default: for ever.
	// +optional
	// +kubebuilder:validation:Type=string
	// +kubebuilder:validation:Pattern=`^([0-9]+(\.[0-9]+)?(ns|us|ms|s|m|h))+$`
	Timeout *metav1.Duration `json:"timeout,omitempty"`
	// Steps are its parts.
	// +optional
	// +nullable
	// +listType=map
	// +listMapKey=name
	Steps []Step `json:"steps,omitempty"`
}

// Step is a number of tasks, which are all begun, in the order in which they are
// listed. It is complete when all of them are done.
type Step struct {
	// Name is unique in its phase.
	// +kubebuilder:validation:MinLength=1
	Name string `json:"name"`
	// Timeout is how long the step may take. Default: for ever.
	// +optional
	// +kubebuilder:validation:Type=string
	// +kubebuilder:validation:Pattern=`^([0-9]+(\.[0-9]+)?(ns|us|ms|s|m|h))+$`
	Timeout *metav1.Duration `json:"timeout,omitempty"`
	// Tasks are the names of what it does.
	// +optional
	// +nullable
	// +listType=atomic
	Tasks []string `json:"tasks,omitempty"`
}

// The kinds of tasks.
const (
	ApplyTask        = "Apply"
	DeleteTask       = "Delete"
	ToggleTask       = "Toggle"
	PipeTask         = "Pipe"
	KudoOperatorTask = "KudoOperator"
	DummyTask        = "Dummy"
)

// Task is something that a step does.
//
// +kubebuilder:validation:XValidation:rule="self.kind != 'Toggle' || has(self.spec) && has(self.spec.parameter)",message="a Toggle needs spec.parameter, the name of the parameter that says which of the two it does"
// +kubebuilder:validation:XValidation:rule="self.kind != 'Pipe' || has(self.spec) && has(self.spec.pod) && has(self.spec.pipe)",message="a Pipe needs spec.pod, the template of its Pod, and spec.pipe, the files to keep"
// +kubebuilder:validation:XValidation:rule="self.kind != 'KudoOperator' || has(self.spec) && has(self.spec.__package__)",message="a KudoOperator needs spec.package, the operator to install"
type Task struct {
	// Name is unique in the OperatorVersion.
	// +kubebuilder:validation:MinLength=1
	Name string `json:"name"`
	// Kind is Apply, Delete, Toggle, Pipe, KudoOperator or Dummy.
	// +kubebuilder:validation:Enum=Apply;Delete;Toggle;Pipe;KudoOperator;Dummy
	Kind string `json:"kind"`
	// Spec has the fields of its kind.
	// +optional
	Spec TaskSpec `json:"spec,omitempty"`
}

// TaskSpec has the fields of all kinds of tasks.
type TaskSpec struct {
	// Resources are names of templates: Apply, Delete, Toggle.
	// +optional
	// +nullable
	// +listType=atomic
	Resources []string `json:"resources,omitempty"`
	// Chart is the template with the archive of a Helm chart, in base64: Apply, Delete, Toggle.
	// What the chart makes is added to the objects of Resources. A Delete leaves its
	// CustomResourceDefinitions, and what the chart keeps.
	// +optional
	Chart string `json:"chart,omitempty"`
	// Values is the template that makes the values of the chart.
	// +optional
	Values string `json:"values,omitempty"`
	// Hook is the hook of Helm whose objects are meant, such as pre-install; empty are those of none.
	// +optional
	Hook string `json:"hook,omitempty"`
	// Parameter is the parameter of a Toggle: it applies if it is true, and else
	// deletes.
	// +optional
	Parameter string `json:"parameter,omitempty"`
	// Pod is the name of the template of the Pod of a Pipe.
	// +optional
	Pod string `json:"pod,omitempty"`
	// Pipe are the files that a Pipe keeps.
	// +optional
	// +nullable
	// +listType=atomic
	Pipe []PipeFile `json:"pipe,omitempty"`
	// Package is the operator that a KudoOperator installs.
	// +optional
	// +kubebuilder:validation:Pattern=`^[^/%]*$`
	Package string `json:"package,omitempty"`
	// AppVersion is that of the application inside.
	// +optional
	// +kubebuilder:validation:Pattern=`^[^/%]*$`
	AppVersion string `json:"appVersion,omitempty"`
	// OperatorVersion is that of the package.
	// +optional
	// +kubebuilder:validation:Pattern=`^[^/%]*$`
	OperatorVersion string `json:"operatorVersion,omitempty"`
	// InstanceName is the name of the child; default PARENT-PACKAGE.
	// +optional
	// +kubebuilder:validation:Pattern=`^([a-z0-9]([-a-z0-9.]*[a-z0-9])?)?$`
	// +kubebuilder:validation:MaxLength=63
	InstanceName string `json:"instanceName,omitempty"`
	// ParameterFile is the template of the child's parameters.
	// +optional
	ParameterFile string `json:"parameterFile,omitempty"`
	// WantErr makes a Dummy fail; it is retried.
	// +optional
	WantErr bool `json:"wantErr,omitempty"`
	// Fatal makes it fail for good.
	// +optional
	Fatal bool `json:"fatal,omitempty"`
	// Done lets a Dummy be done.
	// +optional
	Done bool `json:"done,omitempty"`
}

// PipeFile is a file that a Pipe keeps in a Secret or a ConfigMap.
//
// +kubebuilder:validation:XValidation:rule=`(has(self.file) && self.file != "") != (has(self.envFile) && self.envFile != "")`,message="needs either a file or an envFile"
type PipeFile struct {
	// File is the path of a file whose content is kept as it is.
	// +optional
	File string `json:"file,omitempty"`
	// EnvFile is the path of a file of lines KEY=VALUE, each of which becomes a key.
	// +optional
	EnvFile string `json:"envFile,omitempty"`
	// Kind is Secret or ConfigMap.
	// +kubebuilder:validation:Enum=Secret;ConfigMap
	// +optional
	Kind string `json:"kind,omitempty"`
	// Key is the name by which templates find the object: .Pipes.KEY.
	// +optional
	Key string `json:"key,omitempty"`
}

// ParameterType is the type of a parameter; empty is string.
// +kubebuilder:validation:Enum="";string;integer;number;boolean;array;map
type ParameterType string

// The types.
const (
	StringType  ParameterType = "string"
	IntegerType ParameterType = "integer"
	NumberType  ParameterType = "number"
	BooleanType ParameterType = "boolean"
	ArrayType   ParameterType = "array"
	MapType     ParameterType = "map"
)

// Parameter is something that an Instance can set.
type Parameter struct {
	// Name is its name in templates and Instances.
	// +kubebuilder:validation:MinLength=1
	Name string `json:"name"`
	// DisplayName is its name for people.
	// +optional
	DisplayName string `json:"displayName,omitempty"`
	// Description is what it does.
	// +optional
	Description string `json:"description,omitempty"`
	// Required: an Instance must set it if there is no default.
	// +optional
	Required *bool `json:"required,omitempty"`
	// Default is its value if an Instance does not set it.
	// +optional
	Default *string `json:"default,omitempty"`
	// Trigger is the plan that follows a change of it. Default update, else deploy.
	// +optional
	Trigger string `json:"trigger,omitempty"`
	// Type is what its value must be.
	// +optional
	Type ParameterType `json:"value-type,omitempty"`
	// Immutable: its value cannot change after the Instance was created.
	// +optional
	Immutable *bool `json:"immutable,omitempty"`
	// Enum are the values that it may have.
	// +optional
	// +listType=atomic
	Enum *[]string `json:"enum,omitempty"`
}

// IsRequired is true if it must have a value.
func (p *Parameter) IsRequired() bool { return p.Required != nil && *p.Required }

// IsImmutable is true if its value cannot change.
func (p *Parameter) IsImmutable() bool { return p.Immutable != nil && *p.Immutable }
