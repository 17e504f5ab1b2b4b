package object

import (
	"slices"

	"k8s.io/apimachinery/pkg/runtime/schema"
)

// Latest is the minor version of Kubernetes 1 up to which it is known what is served.
const Latest = 37

// retired are the versions of Kubernetes' own kinds that API servers no longer serve, and
// the version to use instead; none if the kind itself was removed. No kinds means all of
// the version.
var retired = []struct {
	from, to string
	kinds    []string
	// removed is the minor version of Kubernetes 1 that was the first not to serve it.
	removed int
}{
	{"extensions/v1beta1", "apps/v1", []string{"Deployment", "DaemonSet", "ReplicaSet"}, 16},
	{"extensions/v1beta1", "networking.k8s.io/v1", []string{"Ingress"}, 22},
	{"extensions/v1beta1", "networking.k8s.io/v1", []string{"NetworkPolicy"}, 16},
	{"extensions/v1beta1", "", []string{"PodSecurityPolicy"}, 16},
	{"policy/v1beta1", "", []string{"PodSecurityPolicy"}, 25},
	{"policy/v1beta1", "policy/v1", nil, 25},
	{"apps/v1beta1", "apps/v1", nil, 16},
	{"apps/v1beta2", "apps/v1", nil, 16},
	{"batch/v1beta1", "batch/v1", nil, 25},
	{"batch/v2alpha1", "batch/v1", nil, 21},
	{"rbac.authorization.k8s.io/v1alpha1", "rbac.authorization.k8s.io/v1", nil, 23},
	{"rbac.authorization.k8s.io/v1beta1", "rbac.authorization.k8s.io/v1", nil, 22},
	{"apiextensions.k8s.io/v1beta1", "apiextensions.k8s.io/v1", nil, 22},
	{"apiregistration.k8s.io/v1beta1", "apiregistration.k8s.io/v1", nil, 22},
	{"admissionregistration.k8s.io/v1beta1", "admissionregistration.k8s.io/v1", []string{"MutatingWebhookConfiguration", "ValidatingWebhookConfiguration"}, 22},
	{"autoscaling/v2beta1", "autoscaling/v2", nil, 25},
	{"autoscaling/v2beta2", "autoscaling/v2", nil, 26},
	{"certificates.k8s.io/v1beta1", "certificates.k8s.io/v1", []string{"CertificateSigningRequest"}, 22},
	{"coordination.k8s.io/v1beta1", "coordination.k8s.io/v1", []string{"Lease"}, 22},
	{"discovery.k8s.io/v1beta1", "discovery.k8s.io/v1", nil, 25},
	{"events.k8s.io/v1beta1", "events.k8s.io/v1", nil, 25},
	{"networking.k8s.io/v1beta1", "networking.k8s.io/v1", []string{"Ingress", "IngressClass"}, 22},
	{"node.k8s.io/v1beta1", "node.k8s.io/v1", nil, 25},
	{"scheduling.k8s.io/v1alpha1", "scheduling.k8s.io/v1", []string{"PriorityClass"}, 23},
	{"scheduling.k8s.io/v1beta1", "scheduling.k8s.io/v1", []string{"PriorityClass"}, 22},
	{"storage.k8s.io/v1beta1", "storage.k8s.io/v1", []string{"CSIDriver", "CSINode", "StorageClass", "VolumeAttachment"}, 22},
	{"storage.k8s.io/v1beta1", "storage.k8s.io/v1", []string{"CSIStorageCapacity"}, 27},
	{"flowcontrol.apiserver.k8s.io/v1beta1", "flowcontrol.apiserver.k8s.io/v1", nil, 26},
	{"flowcontrol.apiserver.k8s.io/v1beta2", "flowcontrol.apiserver.k8s.io/v1", nil, 29},
	{"flowcontrol.apiserver.k8s.io/v1beta3", "flowcontrol.apiserver.k8s.io/v1", nil, 32},
}

// Successor says that API servers no longer serve a version of one of Kubernetes' own
// kinds, and which version to use instead, none if the kind was removed.
func Successor(gvk schema.GroupVersionKind) (to schema.GroupVersion, isRetired bool) {
	to, removed := successor(gvk)
	return to, removed > 0
}

// IsServedIn is false of one of Kubernetes' own kinds in a version that API servers of
// Kubernetes 1.MINOR do not serve any more.
func IsServedIn(gvk schema.GroupVersionKind, minor int) bool {
	_, removed := successor(gvk)
	return removed == 0 || minor < removed
}

func successor(gvk schema.GroupVersionKind) (to schema.GroupVersion, removed int) {
	from := gvk.GroupVersion().String()
	for _, r := range retired {
		if r.from == from && (r.kinds == nil || slices.Contains(r.kinds, gvk.Kind)) {
			to, _ = schema.ParseGroupVersion(r.to) // the table is tested
			return to, r.removed
		}
	}
	return schema.GroupVersion{}, 0
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
