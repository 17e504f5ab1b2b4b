package object

import (
	"slices"

	"k8s.io/apimachinery/pkg/runtime/schema"
)

// retired are the versions of Kubernetes' own kinds that API servers no longer serve, and
// the version to use instead; none if the kind itself was removed. No kinds means all of
// the version.
var retired = []struct {
	from, to string
	kinds    []string
}{
	{"extensions/v1beta1", "apps/v1", []string{"Deployment", "DaemonSet", "ReplicaSet"}},
	{"extensions/v1beta1", "networking.k8s.io/v1", []string{"Ingress", "NetworkPolicy"}},
	{"extensions/v1beta1", "", []string{"PodSecurityPolicy"}},
	{"policy/v1beta1", "", []string{"PodSecurityPolicy"}},
	{"policy/v1beta1", "policy/v1", nil},
	{"apps/v1beta1", "apps/v1", nil},
	{"apps/v1beta2", "apps/v1", nil},
	{"batch/v1beta1", "batch/v1", nil},
	{"batch/v2alpha1", "batch/v1", nil},
	{"rbac.authorization.k8s.io/v1alpha1", "rbac.authorization.k8s.io/v1", nil},
	{"rbac.authorization.k8s.io/v1beta1", "rbac.authorization.k8s.io/v1", nil},
	{"apiextensions.k8s.io/v1beta1", "apiextensions.k8s.io/v1", nil},
	{"apiregistration.k8s.io/v1beta1", "apiregistration.k8s.io/v1", nil},
	{"admissionregistration.k8s.io/v1beta1", "admissionregistration.k8s.io/v1", []string{"MutatingWebhookConfiguration", "ValidatingWebhookConfiguration"}},
	{"autoscaling/v2beta1", "autoscaling/v2", nil},
	{"autoscaling/v2beta2", "autoscaling/v2", nil},
	{"certificates.k8s.io/v1beta1", "certificates.k8s.io/v1", []string{"CertificateSigningRequest"}},
	{"coordination.k8s.io/v1beta1", "coordination.k8s.io/v1", []string{"Lease"}},
	{"discovery.k8s.io/v1beta1", "discovery.k8s.io/v1", nil},
	{"events.k8s.io/v1beta1", "events.k8s.io/v1", nil},
	{"networking.k8s.io/v1beta1", "networking.k8s.io/v1", []string{"Ingress", "IngressClass"}},
	{"node.k8s.io/v1beta1", "node.k8s.io/v1", nil},
	{"scheduling.k8s.io/v1alpha1", "scheduling.k8s.io/v1", []string{"PriorityClass"}},
	{"scheduling.k8s.io/v1beta1", "scheduling.k8s.io/v1", []string{"PriorityClass"}},
	{"storage.k8s.io/v1beta1", "storage.k8s.io/v1", []string{"CSIDriver", "CSINode", "CSIStorageCapacity", "StorageClass", "VolumeAttachment"}},
}

// Successor says that API servers no longer serve a version of one of Kubernetes' own
// kinds, and which version to use instead, none if the kind was removed.
func Successor(gvk schema.GroupVersionKind) (to schema.GroupVersion, isRetired bool) {
	from := gvk.GroupVersion().String()
	for _, r := range retired {
		if r.from == from && (r.kinds == nil || slices.Contains(r.kinds, gvk.Kind)) {
			to, _ = schema.ParseGroupVersion(r.to) // the table is tested
			return to, true
		}
	}
	return schema.GroupVersion{}, false
}

// RetiredAdvice says what to do about a kind in a version that API servers no longer
// serve, empty if it is none.
func RetiredAdvice(gvk schema.GroupVersionKind) string {
	switch to, isRetired := Successor(gvk); {
	case !isRetired:
		return ""
	case to.Empty():
		return "Kubernetes no longer has kind " + gvk.Kind + "; remove it"
	default:
		return "API version " + gvk.GroupVersion().String() + " is no longer served; use " + to.String()
	}
}
