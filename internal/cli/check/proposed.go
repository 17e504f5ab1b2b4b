package check

import (
	"context"
	"fmt"
	"strings"

	appsv1 "k8s.io/api/apps/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"

	zonesv1 "github.com/spillway-dev/spillway/api/zones/v1"
	"github.com/spillway-dev/spillway/internal/kube"
	"github.com/spillway-dev/spillway/internal/vocabulary"
)

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
	list := &metav1.PartialObjectMetadataList{}
	list.SetGroupVersionKind(kind)
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
