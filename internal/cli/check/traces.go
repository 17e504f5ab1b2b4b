package check

import (
	"context"
	"fmt"
	"slices"
	"strings"

	appsv1 "k8s.io/api/apps/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"

	zonesv1 "github.com/spillway-dev/spillway/api/zones/v1"
	"github.com/spillway-dev/spillway/internal/config"
	"github.com/spillway-dev/spillway/internal/kube"
	"github.com/spillway-dev/spillway/internal/manifests"
	"github.com/spillway-dev/spillway/internal/shell"
	"github.com/spillway-dev/spillway/internal/vocabulary"
)

// checkTraces looks for workloads that are suspended, and for what wave
// left on them, as far as it may be seen.
func checkTraces(ctx context.Context, reader client.Reader) []finding {
	traces, err := config.Traces(ctx, reader)
	if err != nil {
		return []finding{{Advice: true, What: "suspended workloads and what wave left on others could not be looked for: " + err.Error()}}
	}
	managers := &appsv1.DeploymentList{}
	unknown := reader.List(ctx, managers, client.MatchingLabels(manifests.ManagerLabels())) != nil
	var findings []finding
	for _, trace := range traces {
		what := fmt.Sprintf("%s/%s in namespace %s ", strings.ToLower(trace.Kind), trace.Name.Name, trace.Namespace)
		if trace.Suspended() {
			findings = append(findings, suspendedFinding(what, trace, unknown || isManaged(managers, trace.Namespace)))
		}
		for _, left := range trace.LeftOut {
			findings = append(findings, finding{Group: groupWorkloads, Advice: true, What: what + "names config of another namespace that does not count: " + left,
				Action: "share it before changing over from wave, or run the manager with --allow-cross-namespace"})
		}
		if trace.Finalizer {
			findings = append(findings, finding{Group: groupWorkloads, Advice: true, problem: "finalizer", What: what + "has the finalizer of wave before 2024", Action: disownAction(&trace)})
		}
	}
	return findings
}

// disownAction says what the manager needs to remove wave's finalizer: permissions for the
// objects of this workload alone.
func disownAction(t *config.Trace) string {
	const removes = "the manager removes it"
	if len(t.Owns) == 0 {
		return removes
	}
	words := []string{"kubectl", "create", "role", "spillway-wave-" + strings.ToLower(t.Kind) + "-" + t.Name.Name, "-n", t.Namespace, "--verb=patch", "--resource=configmaps,secrets"}
	for _, owned := range t.Owns {
		words = append(words, "--resource-name="+owned.Name)
	}
	return removes + " with the owner references on its config, once it may patch that: " + shell.Join(words...) +
		", and bind it to the ServiceAccount of the manager; or install with --wave-cleanup"
}

// isManaged is true if one of the managers watches the namespace.
func isManaged(managers *appsv1.DeploymentList, namespace string) bool {
	return slices.ContainsFunc(managers.Items, func(d appsv1.Deployment) bool { return manifests.ArgumentsOf(&d).Watches(namespace) })
}

// suspendedFinding says who lets a suspended workload run. Without a manager
// no one does: it is blocked.
func suspendedFinding(what string, trace config.Trace, managed bool) finding {
	f := finding{Group: groupWorkloads, Advice: true, problem: "suspended", What: what + "is suspended until its config exists", Action: "spillway explain says what is missing"}
	if trace.Suspension.Scheduler {
		f.What, f.Action = what+"was suspended by wave", "the manager releases it once its config exists"
	}
	if !managed {
		f.What += " and blocked, because no manager watches its namespace"
		f.Action = "install the manager, or release the workload with spillway uninstall"
	}
	return f
}

// checkProposed looks for what is only proposed for rollout-operator, and has no effect: the
// manager sees StatefulSets of groups alone, and a Deployment that is to wait for another waits for
// nothing. What may not be seen is not looked for.
func checkProposed(ctx context.Context, c client.Client, namespaces []string) []finding {
	var findings []finding
	for _, namespace := range kube.OrAll(namespaces) {
		for _, kind := range []string{"StatefulSet", "Deployment"} {
			findings = append(findings, checkMetadata(ctx, c, namespace, appsv1.SchemeGroupVersion.WithKind(kind), func(o *metav1.PartialObjectMetadata) []vocabulary.WithoutEffect {
				return vocabulary.IgnoredOn(kind, o.Labels, o.Annotations)
			})...)
		}
		mapping, err := c.RESTMapper().RESTMapping(schema.GroupKind{Group: zonesv1.GroupVersion.Group, Kind: vocabulary.UnsupportedKind})
		if err == nil {
			findings = append(findings, checkMetadata(ctx, c, namespace, mapping.GroupVersionKind, func(*metav1.PartialObjectMetadata) []vocabulary.WithoutEffect {
				return []vocabulary.WithoutEffect{{Name: "its kind", Instead: vocabulary.InsteadOfKind}}
			})...)
		}
	}
	return findings
}

func checkMetadata(
	ctx context.Context, c client.Client, namespace string, kind schema.GroupVersionKind, ignored func(*metav1.PartialObjectMetadata) []vocabulary.WithoutEffect,
) (findings []finding) {
	list := kube.MetadataList(kind)
	if err := c.List(ctx, list, client.InNamespace(namespace)); err != nil {
		if apierrors.IsForbidden(err) || apierrors.IsNotFound(err) {
			return nil
		}
		return []finding{unread(strings.ToLower(kind.Kind)+"s", err)}
	}
	for i := range list.Items {
		o := &list.Items[i]
		for _, of := range ignored(o) {
			findings = append(findings, finding{
				Group: groupWorkloads, Advice: true, Action: of.Instead,
				What: fmt.Sprintf("%s/%s in namespace %s: %s has no effect", strings.ToLower(kind.Kind), o.Name, o.Namespace, of.Name),
			})
		}
	}
	return findings
}
