package cluster

import (
	"strings"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	"github.com/spillway-dev/spillway/internal/vocabulary"
)

// secretSuffix is what the name of a Secret has that of its cluster has not.
const secretSuffix = "-kubeconfig" //nolint:gosec // the name of a Secret is none

// KubeconfigKey is the key of the Secret with the kubeconfig.
const KubeconfigKey = "value"

// GVK is Cluster API's Cluster, in the only version that is read.
var GVK = schema.GroupVersionKind{Group: "cluster.x-k8s.io", Version: "v1beta2", Kind: "Cluster"}

// SecretGVK is the kind of the Secrets with kubeconfigs.
var SecretGVK = corev1.SchemeGroupVersion.WithKind("Secret")

// Cluster is one of the fleet, as far as anything is decided about it.
type Cluster struct {
	types.NamespacedName

	// Object is what stands for it.
	Object schema.GroupVersionKind
	// UID is that of the object.
	UID types.UID
	// Labels are those of the object.
	Labels map[string]string
	// Ready is true once something can be assigned to it. One that is not ready any
	// more keeps what it was assigned.
	Ready bool
	// Deleting is true once its object is being deleted.
	Deleting bool
}

// Secret is the name of the Secret with its kubeconfig.
func (c *Cluster) Secret() string { return SecretName(c.Name) }

// SecretName is the name of the Secret with the kubeconfig of a cluster.
func SecretName(cluster string) string { return cluster + secretSuffix }

// isNamed returns true for a Secret whose name is that of a Secret with the kubeconfig of a
// cluster. One with another name is no cluster, although it is labeled: its kubeconfig
// would be read elsewhere, and another Secret may be the cluster of the same name.
func isNamed(secret string) bool {
	return strings.HasSuffix(secret, secretSuffix) && len(secret) > len(secretSuffix)
}

// fromClusterAPI returns the cluster of a Cluster of Cluster API.
func fromClusterAPI(u *unstructured.Unstructured, hasSecret bool) Cluster {
	initialized, _, _ := unstructured.NestedBool(u.Object, "status", "initialization", "controlPlaneInitialized")
	return Cluster{
		NamespacedName: types.NamespacedName{Namespace: u.GetNamespace(), Name: u.GetName()},
		Object:         GVK, UID: u.GetUID(), Labels: u.GetLabels(),
		Ready: initialized && hasSecret, Deleting: u.GetDeletionTimestamp() != nil,
	}
}

// fromSecret returns the cluster of a labeled Secret.
func fromSecret(m *metav1.PartialObjectMetadata) Cluster {
	return Cluster{
		NamespacedName: types.NamespacedName{Namespace: m.Namespace, Name: NameOf(m.Name)},
		Object:         SecretGVK, UID: m.UID, Labels: m.Labels, Ready: true, Deleting: m.DeletionTimestamp != nil,
	}
}

// NameOf is the name of the cluster whose kubeconfig is in a Secret.
func NameOf(secret string) string { return strings.TrimSuffix(secret, secretSuffix) }

// mayHoldKubeconfig is true of a Secret that this package has to do with.
func mayHoldKubeconfig(name string, labels map[string]string) bool {
	return strings.HasSuffix(name, secretSuffix) || isCluster(labels)
}

// isCluster returns true for a Secret that registers a cluster.
func isCluster(labels map[string]string) bool { return vocabulary.Cluster.Get(labels) == "true" }
