package source

import (
	"slices"

	"k8s.io/apimachinery/pkg/runtime/schema"
)

// InNamespace puts the objects that name no namespace, and whose kind has one, into
// a namespace, as kubectl does with its flag.
func InNamespace(documents []Document, namespace string) {
	for i := range documents {
		object := documents[i].Object
		if object.GetNamespace() == "" && IsNamespaced(object.GroupVersionKind().GroupKind()) {
			object.SetNamespace(namespace)
		}
	}
}

// clusterScoped are the kinds of Kubernetes, and of what Spillway works with, that
// are in no namespace, by their group.
var clusterScoped = map[string][]string{
	"":                             {"ComponentStatus", "Namespace", "Node", "PersistentVolume"},
	"admissionregistration.k8s.io": nil,
	"apiextensions.k8s.io":         nil,
	"apiregistration.k8s.io":       nil,
	"certificates.k8s.io":          {"CertificateSigningRequest", "ClusterTrustBundle"},
	"flowcontrol.apiserver.k8s.io": nil,
	"networking.k8s.io":            {"IngressClass", "IPAddress", "ServiceCIDR"},
	"node.k8s.io":                  nil,
	"rbac.authorization.k8s.io":    {"ClusterRole", "ClusterRoleBinding"},
	"resource.k8s.io":              {"DeviceClass", "DeviceTaintRule", "ResourceSlice"},
	"scheduling.k8s.io":            {"PriorityClass"},
	"storage.k8s.io":               {"CSIDriver", "CSINode", "StorageClass", "VolumeAttributesClass", "VolumeAttachment"},
}

// IsNamespaced is true of kinds whose objects are in a namespace, as far as can be
// known without a cluster: of kinds that are not known, most are.
func IsNamespaced(kind schema.GroupKind) bool {
	kinds, listed := clusterScoped[kind.Group]
	return !listed || kinds != nil && !slices.Contains(kinds, kind.Kind)
}
