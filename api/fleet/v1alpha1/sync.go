package v1alpha1

import (
	"regexp"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
)

// Sync is what to fetch and apply: an exact version of a source, and how its content
// is applied.
type Sync struct {
	// Bindings are evaluated on the workload cluster. On the hub there are at most 64;
	// an Assemblage has those of the hub as well, and the name of the cluster.
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=129
	Bindings []Binding `json:"bindings,omitempty"`
	// Source is where to fetch it. It is absent only in an assemblage, in a sync
	// that merely pins the cluster.
	// +optional
	Source *Source `json:"source,omitempty"`
	// Package is how to apply what the source has. Default: a chart of a Helm
	// repository with Helm, all else with kustomize, at the root of the source.
	// +optional
	Package *Package `json:"package,omitempty"`

	SyncOptions `json:",inline"`
}

// SyncOptions say how the content is applied.
type SyncOptions struct {
	// Interval is how often it is applied even if nothing has changed. Default 10m.
	// +optional
	// +kubebuilder:validation:Type=string
	// +kubebuilder:validation:Pattern=`^([0-9]+(\.[0-9]+)?(ms|s|m|h))+$`
	Interval *metav1.Duration `json:"interval,omitempty"`
	// Timeout is how long it may take to apply it, and to become healthy.
	// Default 5m.
	// +optional
	// +kubebuilder:validation:Type=string
	// +kubebuilder:validation:Pattern=`^([0-9]+(\.[0-9]+)?(ms|s|m|h))+$`
	Timeout *metav1.Duration `json:"timeout,omitempty"`
	// Prune deletes objects from the cluster that the package no longer contains.
	// Default true, and always so with Helm.
	// +optional
	Prune *bool `json:"prune,omitempty"`
	// Wait lets the sync succeed only once all applied objects are healthy. Default
	// true.
	// +optional
	Wait *bool `json:"wait,omitempty"`
	// HealthCheckExprs say when custom resources are healthy.
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=64
	HealthCheckExprs []HealthCheckExpr `json:"healthCheckExprs,omitempty"`
	// DependsOn names modules of the same namespace and kind. On each cluster it is applied
	// once what these have there is ready, and they are removed after it.
	// +optional
	// +listType=set
	// +kubebuilder:validation:MaxItems=32
	// +kubebuilder:validation:items:MinLength=1
	// +kubebuilder:validation:items:MaxLength=253
	DependsOn []string `json:"dependsOn,omitempty"`
}

// HealthCheckExpr says by CEL expressions over an object when those of a kind
// are healthy.
type HealthCheckExpr struct {
	// APIVersion and Kind are those of the objects.
	// +kubebuilder:validation:MinLength=1
	APIVersion string `json:"apiVersion"`
	// +kubebuilder:validation:MinLength=1
	Kind string `json:"kind"`
	// Current is true of an object that is healthy.
	// +kubebuilder:validation:MinLength=1
	Current string `json:"current"`
	// InProgress is true of one that is being applied.
	// +optional
	InProgress string `json:"inProgress,omitempty"`
	// Failed is true of one that has failed.
	// +optional
	Failed string `json:"failed,omitempty"`
}

// Source is a version of something that can be fetched. What moves (a branch, a range, a
// tag) is looked up once: the content of a module must not change automatically.
//
// +kubebuilder:validation:XValidation:rule="[has(self.git), has(self.oci), has(self.helm), has(self.bucket)].filter(x, x).size() == 1",message="exactly one of git, oci, helm and bucket must be set"
type Source struct {
	// Git is a Git repository.
	// +optional
	Git *GitSource `json:"git,omitempty"`
	// OCI is an artifact in an OCI registry.
	// +optional
	OCI *OCISource `json:"oci,omitempty"`
	// Helm is a chart in a Helm repository.
	// +optional
	Helm *HelmSource `json:"helm,omitempty"`
	// Bucket is a folder of an object storage.
	// +optional
	Bucket *BucketSource `json:"bucket,omitempty"`
}

// Moves reports whether what is fetched may become different, and is to be found out once.
func (s *Source) Moves() bool {
	switch {
	case s.Git != nil:
		return s.Git.Version.Revision == "" && !s.Git.Version.Mutable
	case s.OCI != nil:
		return s.OCI.Version.Digest == "" && !s.OCI.Version.Mutable
	default:
		return s.Helm != nil && !exactVersion.MatchString(s.Helm.Version)
	}
}

// exactVersion is a version as Semantic Versioning has it, with or without a "v" before it.
var exactVersion = regexp.MustCompile(`^v?\d+\.\d+\.\d+([-+][0-9A-Za-z.+-]+)?$`)

// HelmSource is a version of a chart in a Helm repository.
type HelmSource struct {
	// URL is that of the repository. One that begins with oci:// is a registry.
	// +kubebuilder:validation:Pattern=`^(https?|oci)://.+`
	// +kubebuilder:validation:MaxLength=2048
	URL string `json:"url"`
	// Chart is the name of the chart.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=253
	Chart string `json:"chart"`
	// Version is that of the chart. All clusters of a module get the version that a range
	// was when the first of them succeeded.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=256
	Version string `json:"version"`
	// SecretRef names the Secret with which to fetch it, on the cluster that does.
	// +optional
	SecretRef *LocalReference `json:"secretRef,omitempty"`
	// Spec is what else the HelmRepository of Flux says, by the names of its fields:
	// provider, certSecretRef, passCredentials. A field that has a place of its own here is
	// refused.
	// +optional
	// +kubebuilder:pruning:PreserveUnknownFields
	Spec *runtime.RawExtension `json:"spec,omitempty"`
}

// BucketSource is what an object storage has under a prefix. It has no versions: what is changed
// there reaches all clusters that fetch from it, at the same time.
//
// +kubebuilder:validation:XValidation:rule="has(self.prefix) || has(self.mutable) && self.mutable",message="a bucket has no versions: set prefix to that of a version which is never changed, or mutable to have all clusters follow what changes, at the same time"
type BucketSource struct {
	// Endpoint is the address of the object storage.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=2048
	Endpoint string `json:"endpoint"`
	// BucketName is the name of the bucket.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=253
	BucketName string `json:"bucketName"`
	// Prefix is what the names of the objects begin with that are fetched. It is the version, if
	// each version has a prefix of its own.
	// +optional
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=1024
	Prefix string `json:"prefix,omitempty"`
	// Mutable says that what is fetched is meant to change.
	// +optional
	Mutable bool `json:"mutable,omitempty"`
	// SecretRef names the Secret with which to fetch it, on the cluster that does.
	// +optional
	SecretRef *LocalReference `json:"secretRef,omitempty"`
	// Spec is what else the Bucket of Flux says, by the names of its fields: provider, region,
	// ignore. A field that has a place of its own here is refused.
	// +optional
	// +kubebuilder:pruning:PreserveUnknownFields
	Spec *runtime.RawExtension `json:"spec,omitempty"`
}

// GitSource is a version of a Git repository.
type GitSource struct {
	// URL is that of the repository.
	// +kubebuilder:validation:Pattern=`^(https?|ssh)://.+`
	// +kubebuilder:validation:MaxLength=2048
	URL string `json:"url"`
	// Version is an exact one.
	Version GitVersion `json:"version"`
	// SecretRef names the Secret with which to fetch it, on the cluster that does.
	// +optional
	SecretRef *LocalReference `json:"secretRef,omitempty"`
	// Spec is what else the GitRepository of Flux says, by the names of its fields:
	// provider, verify, ignore. A field that has a place of its own here is refused.
	// +optional
	// +kubebuilder:pruning:PreserveUnknownFields
	Spec *runtime.RawExtension `json:"spec,omitempty"`
}

// GitVersion is a commit, or what names one: a tag, a branch, a range of tags.
//
// +kubebuilder:validation:XValidation:rule="[has(self.tag), has(self.branch), has(self.semver), has(self.revision)].filter(x, x).size() == 1",message="exactly one of tag, branch, semver and revision must be set"
// +kubebuilder:validation:XValidation:rule="!has(self.mutable) || !self.mutable || !has(self.revision)",message="a revision is not mutable"
type GitVersion struct {
	// Tag is the name of a tag.
	// +optional
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=256
	Tag string `json:"tag,omitempty"`
	// Branch is the name of a branch.
	// +optional
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=256
	Branch string `json:"branch,omitempty"`
	// SemVer is a range of versions: the highest tag in it.
	// +optional
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=256
	SemVer string `json:"semver,omitempty"`
	// Revision is the hash of a commit, which must be on a branch, because Flux
	// looks for commits only there.
	// +optional
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=256
	Revision string `json:"revision,omitempty"`
	// Mutable says that the tag, branch or range is meant to move, and that each cluster
	// follows it automatically. Otherwise all clusters of a module get the commit that it was
	// when the first of them succeeded.
	// +optional
	Mutable bool `json:"mutable,omitempty"`
}

// OCISource is a version of an artifact in an OCI registry.
type OCISource struct {
	// URL is that of the artifact, without a tag.
	// +kubebuilder:validation:Pattern=`^oci://.+`
	// +kubebuilder:validation:MaxLength=2048
	URL string `json:"url"`
	// Version is an exact one.
	Version OCIVersion `json:"version"`
	// SecretRef names the Secret with which to fetch it, on the cluster that does.
	// +optional
	SecretRef *LocalReference `json:"secretRef,omitempty"`
	// Spec is what else the OCIRepository of Flux says, by the names of its fields:
	// provider, verify, ignore. A field that has a place of its own here is refused.
	// +optional
	// +kubebuilder:pruning:PreserveUnknownFields
	Spec *runtime.RawExtension `json:"spec,omitempty"`
}

// OCIVersion is a digest, or what names one: a tag, a range of tags.
//
// +kubebuilder:validation:XValidation:rule="[has(self.tag), has(self.semver), has(self.digest)].filter(x, x).size() == 1",message="exactly one of tag, semver and digest must be set"
// +kubebuilder:validation:XValidation:rule="!has(self.mutable) || !self.mutable || !has(self.digest)",message="a digest is not mutable"
type OCIVersion struct {
	// Tag is the name of a tag.
	// +optional
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=256
	Tag string `json:"tag,omitempty"`
	// SemVer is a range of versions: the highest tag in it.
	// +optional
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=256
	SemVer string `json:"semver,omitempty"`
	// Digest is that of the artifact: "sha256:..."
	// +optional
	// +kubebuilder:validation:Pattern=`^[a-z0-9]+:[a-f0-9]{32,}$`
	// +kubebuilder:validation:MaxLength=256
	Digest string `json:"digest,omitempty"`
	// Mutable says that the tag or range is meant to move, and that each cluster follows it
	// automatically. Otherwise all clusters of a module get the digest that it was when the
	// first of them succeeded.
	// +optional
	Mutable bool `json:"mutable,omitempty"`
}

// Package is how to apply what a source has.
//
// +kubebuilder:validation:XValidation:rule="!(has(self.kustomize) && has(self.helm))",message="at most one of kustomize and helm may be set"
type Package struct {
	// Kustomize applies it with kustomize.
	// +optional
	Kustomize *Kustomize `json:"kustomize,omitempty"`
	// Helm installs the chart that the source has with Helm.
	// +optional
	Helm *Helm `json:"helm,omitempty"`
}

// Helm is how to install a chart with Helm.
type Helm struct {
	// Path is that of the folder of the chart in a Git repository or bucket. Default ".".
	// +optional
	// +kubebuilder:validation:MaxLength=1024
	Path string `json:"path,omitempty"`
	// Values are those of the chart. Texts in them may refer to bindings: "$(NAME)"; "$$" is
	// a dollar.
	// +optional
	// +kubebuilder:pruning:PreserveUnknownFields
	Values *runtime.RawExtension `json:"values,omitempty"`
	// Chart is what else the HelmChart of Flux says, by the names of its fields:
	// valuesFiles, verify. A field that has a place of its own in the sync is refused.
	// +optional
	// +kubebuilder:pruning:PreserveUnknownFields
	Chart *runtime.RawExtension `json:"chart,omitempty"`
	// Spec is what else the HelmRelease of Flux says, by the names of its fields:
	// releaseName, targetNamespace, upgrade, valuesFrom. A field that has a place of its own
	// in the sync is refused.
	// +optional
	// +kubebuilder:pruning:PreserveUnknownFields
	Spec *runtime.RawExtension `json:"spec,omitempty"`
}

// Kustomize is how to apply something with kustomize.
type Kustomize struct {
	// Path is that of the folder in the source. Default ".".
	// +optional
	// +kubebuilder:validation:MaxLength=1024
	Path string `json:"path,omitempty"`
	// Substitute are values for the variables in the manifests. They may refer to
	// bindings: "$(NAME)"; "$$" is a dollar.
	// +optional
	Substitute map[string]string `json:"substitute,omitempty"`
	// Spec is what else the Kustomization of Flux says, by the names of its fields:
	// decryption, serviceAccountName, patches, targetNamespace. A field that has a place
	// of its own in the sync is refused.
	// +optional
	// +kubebuilder:pruning:PreserveUnknownFields
	Spec *runtime.RawExtension `json:"spec,omitempty"`
}

// Binding gives a name to a value, which substitutions refer to as "$(NAME)".
//
// +kubebuilder:validation:XValidation:rule="!(has(self.value) && has(self.objectFieldRef))",message="at most one of value and objectFieldRef may be set"
type Binding struct {
	// Name is how to refer to it. CLUSTER_NAME exists without being bound.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=253
	Name string `json:"name"`
	// Value is the value; it may refer to other bindings.
	// +optional
	Value *string `json:"value,omitempty"`
	// ObjectFieldRef takes the value from a field of an object.
	// +optional
	ObjectFieldRef *ObjectFieldReference `json:"objectFieldRef,omitempty"`
}

// ObjectFieldReference is a field of an object in the namespace of what refers to
// it. All of it may refer to bindings.
type ObjectFieldReference struct {
	// APIVersion and Kind are those of the object.
	// +optional
	APIVersion string `json:"apiVersion,omitempty"`
	// +kubebuilder:validation:MinLength=1
	Kind string `json:"kind"`
	// Name is that of the object.
	// +kubebuilder:validation:MinLength=1
	Name string `json:"name"`
	// FieldPath is a JSON pointer: "/data/region".
	// +kubebuilder:validation:MinLength=1
	FieldPath string `json:"fieldPath"`
}

// LocalReference names an object in the same namespace.
type LocalReference struct {
	// Name is that of the object.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=253
	// +kubebuilder:validation:Pattern=`^[a-z0-9]([-a-z0-9.]*[a-z0-9])?$`
	Name string `json:"name"`
}
