package workload

import (
	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/spillway-dev/spillway/internal/config/content"
)

// Manifest is what a workload says of its config, read from its manifest alone.
type Manifest struct {
	Settings

	// Uses are the objects that its Pods use, including those that are ignored.
	Uses []content.Reference
}

// ManifestOf reads the manifest of a Deployment, StatefulSet or DaemonSet as the
// ring does.
func ManifestOf(workload client.Object) Manifest {
	m := Manifest{Settings: settingsOf(workload.GetNamespace(), workload.GetAnnotations())}
	m.Uses = content.References(workload.GetNamespace(), &TemplateOf(workload).Spec, m.Extra, m.PullSecrets)
	m.bound(m.Uses)
	return m
}

// TrackedManifestOf is [ManifestOf] of a workload that a policy tracks.
func TrackedManifestOf(workload client.Object, policy string) Manifest {
	m := ManifestOf(asTracked(workload))
	m.TrackedBy = policy
	return m
}

// UsesOf are the objects that a Pod uses, including image pull Secrets.
func UsesOf(namespace string, pod *corev1.PodSpec) []content.Reference {
	return content.References(namespace, pod, nil, true)
}
