package config

import (
	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/spillway-dev/spillway/internal/vocabulary"
)

// Manifest is what a workload says of its config, read from its manifest alone.
type Manifest struct {
	Settings

	// Uses are the objects that its Pods use, also those that are ignored.
	Uses []Reference
}

// ManifestOf reads the manifest of a Deployment, StatefulSet or DaemonSet as the
// ring does.
func ManifestOf(workload client.Object) Manifest {
	m := Manifest{Settings: settings(workload.GetNamespace(), workload.GetAnnotations())}
	m.Uses = references(workload.GetNamespace(), &TemplateOf(workload).Spec, m.Extra, m.PullSecrets)
	return m
}

// UsesOf are the objects that a Pod uses, image pull Secrets among them.
func UsesOf(namespace string, pod *corev1.PodSpec) []Reference {
	return references(namespace, pod, nil, true)
}

// IsSharedWith is true if workloads of another namespace may name a ConfigMap or
// Secret as an extra one.
func IsSharedWith(obj client.Object, namespace string) bool {
	return facts{sharedWith: vocabulary.SharedWith.Get(obj.GetAnnotations())}.sharedTo(namespace)
}
