package v1alpha1

import metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

// ConfigRollout records how the contents of a ConfigMap or Secret were rolled out, and which of them have
// failed on which workloads. The manager alone writes it: no edit of a workload takes the record away. There is
// none for an object of which no change was rolled out. To delete one is to forget it; what still fails is recorded
// again. The one that is named workloads is about what waits for no object of the namespace, and the one that is
// named adopted says with what config workloads were taken over as they ran.
//
// +kubebuilder:object:root=true
// +kubebuilder:resource:categories={spillway}
// +kubebuilder:printcolumn:name=Kind,type=string,JSONPath=`.object.kind`
// +kubebuilder:printcolumn:name=Object,type=string,JSONPath=`.object.name`
// +kubebuilder:printcolumn:name=Phase,type=string,JSONPath=`.rollout.phase`
// +kubebuilder:printcolumn:name=Complete,type=integer,JSONPath=`.rollout.units.complete`
// +kubebuilder:printcolumn:name=Total,type=integer,JSONPath=`.rollout.units.total`
// +kubebuilder:printcolumn:name=Waiting-For,type=string,JSONPath=`.rollout.waitingFor`
// +kubebuilder:printcolumn:name=Failed,type=integer,JSONPath=`.failed`,priority=1
// +kubebuilder:printcolumn:name=Age,type=date,JSONPath=`.metadata.creationTimestamp`
type ConfigRollout struct {
	metav1.TypeMeta `json:",inline"`
	// +optional
	metav1.ObjectMeta `json:"metadata,omitempty"`

	// Object is the ConfigMap or Secret, in the same namespace. It need not exist: the record
	// holds also for one that is created again with the same content.
	// +optional
	Object ConfigRolloutObject `json:"object,omitzero"`
	// Rollout is how far the last content that some workload did not have has come.
	// +optional
	Rollout *RolloutRecord `json:"rollout,omitempty"`
	// Paused is who has paused what is rolled out for the object, absent if it is not paused.
	// +optional
	Paused *Pause `json:"paused,omitempty"`
	// History are the rollouts before, the newest first.
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=10
	History []PastRolloutRecord `json:"history,omitempty"`
	// Failed is how many workloads have failed with the content that the object has now.
	// +optional
	Failed int32 `json:"failed"`
	// Failures are the contents that have failed, grouped by cause: those of the present content first,
	// then what failed first.
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=1000
	Failures []ConfigFailure `json:"failures,omitempty"`
	// Before says which workloads were not ready before they were rolled with a content: what they do
	// afterwards is compared with that, also if a tool removes what the manager has written on them. It is written before
	// a workload is rolled with the content.
	// +optional
	Before *ConfigBefore `json:"before,omitempty"`
	// Adopted says, in the record of that name, with what config the workloads of the namespace were taken over: no
	// edit of a workload has a change that came since count as taken over as well.
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=5000
	Adopted []AdoptedWorkloads `json:"adopted,omitempty"`
}

// AdoptedWorkloads are workloads with the same hash that ran with the same config when they were taken over: when they
// were opted in, or when more or less of their config began to count.
type AdoptedWorkloads struct {
	// Template is the hash that their Pod templates had, empty if they had none. With another one it says nothing.
	// +optional
	// +kubebuilder:validation:MaxLength=253
	Template string `json:"template,omitempty"`
	// Config is the hash of the config that they ran with.
	// +kubebuilder:validation:MaxLength=253
	Config string `json:"config"`
	// First is that of the config of a workload without a hash when it was opted in.
	// +optional
	// +kubebuilder:validation:MaxLength=253
	First string `json:"first,omitempty"`
	// Workloads are they: "Deployment web".
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=20000
	Workloads []string `json:"workloads"`
}

// ConfigBefore says how workloads did before they were rolled with a content.
type ConfigBefore struct {
	// Digest identifies the content, as that of a failure. With another content it says nothing.
	// +kubebuilder:validation:MaxLength=64
	Digest string `json:"digest"`
	// NotReady are the workloads of the namespace that were not ready. Others were. There are at most 500: any
	// more count as ready.
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=500
	NotReady []NotReadyWorkload `json:"notReady,omitempty"`
}

// NotReadyWorkload is a workload that was not ready before it was rolled.
type NotReadyWorkload struct {
	// Kind is Deployment, StatefulSet or DaemonSet.
	// +kubebuilder:validation:MaxLength=63
	Kind string `json:"kind"`
	// Name is its name.
	// +kubebuilder:validation:MaxLength=253
	Name string `json:"name"`
	// Hash is that of its Pod template at that time, empty if it had the content already.
	// +optional
	// +kubebuilder:validation:MaxLength=128
	Hash string `json:"hash,omitempty"`
	// Available is how many of its Pods were available.
	// +optional
	Available int32 `json:"available,omitempty"`
	// Failing is why others failed, empty if none did.
	// +optional
	// +kubebuilder:validation:MaxLength=1024
	Failing string `json:"failing,omitempty"`
}

// ConfigRolloutList is a list of ConfigRollouts.
//
// +kubebuilder:object:root=true
type ConfigRolloutList struct {
	metav1.TypeMeta `json:",inline"`
	// +optional
	metav1.ListMeta `json:"metadata,omitempty"`

	Items []ConfigRollout `json:"items"`
}

// ConfigRolloutObject is a ConfigMap or Secret.
type ConfigRolloutObject struct {
	// Kind is ConfigMap or Secret.
	// +kubebuilder:validation:Enum=ConfigMap;Secret
	Kind string `json:"kind"`
	// Name is its name.
	// +kubebuilder:validation:MaxLength=253
	Name string `json:"name"`
}

// ConfigFailure is a content with which workloads have failed in the same way.
type ConfigFailure struct {
	// Digest identifies the content. The UID of the object is its key, so that users without permission to read the object
	// cannot try guesses of the content.
	// +kubebuilder:validation:MaxLength=64
	Digest string `json:"digest"`
	// Cause is how they failed: "3 of 3 Pods CrashLoopBackOff".
	// +kubebuilder:validation:MaxLength=1024
	Cause string `json:"cause"`
	// Workloads are those that failed.
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=1000
	Workloads []FailedWorkload `json:"workloads"`
}

// FailedWorkload is a workload that has failed with a content.
type FailedWorkload struct {
	// Kind is Deployment, StatefulSet or DaemonSet.
	// +kubebuilder:validation:MaxLength=63
	Kind string `json:"kind"`
	// Namespace is its namespace.
	// +kubebuilder:validation:MaxLength=63
	Namespace string `json:"namespace"`
	// Name is its name.
	// +kubebuilder:validation:MaxLength=253
	Name string `json:"name"`
	// At is when it failed.
	At metav1.MicroTime `json:"at"`
	// Hash is that of the Pod template that has failed.
	// +optional
	// +kubebuilder:validation:MaxLength=128
	Hash string `json:"hash,omitempty"`
}
