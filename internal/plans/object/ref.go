package object

import (
	"fmt"
	"slices"

	"k8s.io/apimachinery/pkg/api/validate/content"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/validation"

	"github.com/spillway-dev/spillway/api/kudo/v1beta1"
	"github.com/spillway-dev/spillway/internal/message"
)

// Ref names an object.
type Ref struct {
	schema.GroupVersionKind

	Namespace, Name string
}

// String is how messages name the object: "StatefulSet zookeeper".
func (r Ref) String() string { return r.Kind + " " + r.Name }

// Problem is why no request can be about the object, empty if one can: its name is part of the
// path.
func (r Ref) Problem() string {
	if why := NameProblem(r.Name); why != "" {
		return r.Kind + ": metadata.name: " + why
	}
	return ""
}

// NameProblem is what is wrong with the name of an object of any kind, empty if nothing is. Each
// kind has rules of its own besides.
func NameProblem(name string) string {
	if problems := content.IsPathSegmentName(name); len(problems) > 0 {
		return fmt.Sprintf("invalid value %s: %s", message.Quote(name), problems[0])
	}
	return ""
}

// versionProblem is what is wrong with an apiVersion, empty if nothing is.
func versionProblem(apiVersion string) string {
	gv, err := schema.ParseGroupVersion(apiVersion)
	if err != nil || gv.Group != "" && len(validation.IsDNS1123Subdomain(gv.Group)) > 0 || len(validation.IsDNS1035Label(gv.Version)) > 0 {
		return fmt.Sprintf("invalid value %s: must be VERSION or GROUP/VERSION, such as apps/v1", message.Quote(apiVersion))
	}
	return ""
}

// Same is true of one object in any versions of its group.
func (r Ref) Same(other Ref) bool {
	return r.GroupKind() == other.GroupKind() && r.Namespace == other.Namespace && r.Name == other.Name
}

// Resembles ignores namespaces, for objects whose scope is not known.
func (r Ref) Resembles(other Ref) bool {
	return r.GroupKind() == other.GroupKind() && r.Name == other.Name
}

// RefOf names an object that was read or rendered.
func RefOf(u *unstructured.Unstructured) Ref {
	return Ref{GroupVersionKind: u.GroupVersionKind(), Namespace: u.GetNamespace(), Name: u.GetName()}
}

// EntryRef names an object of an inventory.
func EntryRef(e v1beta1.InventoryEntry) Ref {
	return Ref{
		GroupVersionKind: schema.GroupVersionKind{Group: e.Group, Version: e.Version, Kind: e.Kind},
		Namespace:        e.Namespace, Name: e.Name,
	}
}

// Scope is where the objects of a kind live.
type Scope int

// The scopes.
const (
	// Namespaced kinds live in namespaces.
	Namespaced Scope = iota + 1
	// ClusterScoped kinds do not.
	ClusterScoped
	// NoSuchKind: the API server does not know the kind.
	NoSuchKind
)

// The kinds that plans treat in a way of their own.
var (
	NamespaceKind   = schema.GroupKind{Kind: "Namespace"}
	CRDKind         = schema.GroupKind{Group: "apiextensions.k8s.io", Kind: "CustomResourceDefinition"}
	PodKind         = schema.GroupKind{Kind: "Pod"}
	JobKind         = schema.GroupKind{Group: "batch", Kind: "Job"}
	ServiceKind     = schema.GroupKind{Kind: "Service"}
	SecretKind      = schema.GroupKind{Kind: "Secret"}
	ConfigMapKind   = schema.GroupKind{Kind: "ConfigMap"}
	AccountKind     = schema.GroupKind{Kind: "ServiceAccount"}
	VolumeKind      = schema.GroupKind{Kind: "PersistentVolume"}
	ClaimKind       = schema.GroupKind{Kind: "PersistentVolumeClaim"}
	DeploymentKind  = schema.GroupKind{Group: "apps", Kind: "Deployment"}
	StatefulSetKind = schema.GroupKind{Group: "apps", Kind: "StatefulSet"}
	DaemonSetKind   = schema.GroupKind{Group: "apps", Kind: "DaemonSet"}
	InstanceKind    = schema.GroupKind{Group: v1beta1.GroupVersion.Group, Kind: "Instance"}
)

// IsWorkload is true of the workloads that keep Pods running.
func IsWorkload(gk schema.GroupKind) bool {
	return slices.Contains([]schema.GroupKind{DeploymentKind, StatefulSetKind, DaemonSetKind}, gk)
}
