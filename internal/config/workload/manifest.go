package workload

import (
	"slices"

	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/spillway-dev/spillway/internal/config/content"
	"github.com/spillway-dev/spillway/internal/config/reloader"
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

// ReloadedManifestOf is [ManifestOf] of a workload that annotations of Reloader may track.
func ReloadedManifestOf(workload client.Object, o *reloader.Options) Manifest {
	w := ReadReloaded(workload, o)
	if w.Reloaded == nil {
		return ManifestOf(workload)
	}
	m := ManifestOf(asTracked(workload))
	m.TrackedBy = w.Settings.TrackedBy
	m.Uses = slices.DeleteFunc(m.Uses, func(r content.Reference) bool {
		return !r.Extra && !w.Reloaded.Wants.RolledBy(r.Object.Kind, r.Object.Name, reloader.Plain)
	})
	return m
}

// ReloaderProblems are what is wrong with the annotations of Reloader of a workload.
func ReloaderProblems(workload client.Object, o *reloader.Options) []Problem {
	return problemsOf(o.Read(reloadedOf(workload)).Problems)
}

// UsesOf are the objects that a Pod uses, including image pull Secrets.
func UsesOf(namespace string, pod *corev1.PodSpec) []content.Reference {
	return content.References(namespace, pod, nil, true)
}
