package ops

import (
	"context"
	"fmt"
	"io"
	"slices"
	"strings"

	appsv1 "k8s.io/api/apps/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	apimeta "k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/spillway-dev/spillway/internal/manifests"
	"github.com/spillway-dev/spillway/internal/vocabulary"
)

// prune removes the webhook configurations and policies of rings that are not
// installed any more, or that do not declare them any more, and the dashboard if it is not. A note follows what is said of each.
func prune(ctx context.Context, w io.Writer, c client.Client, o *manifests.Options, installed []*unstructured.Unstructured, note string) error {
	namespace := o.Namespace
	for _, kind := range manifests.AdmissionKinds() {
		if err := pruneKind(ctx, w, c, kind, installed, note, client.MatchingLabels(manifests.InstalledLabels(namespace)), client.HasLabels{vocabulary.Ring}); err != nil {
			return err
		}
	}
	if err := prunePins(ctx, w, c, o, installed, note); err != nil {
		return err
	}
	return pruneDashboard(ctx, w, c, namespace, installed, note)
}

// prunePins takes the permissions of pins away where there are none any more: no policy limits them there.
func prunePins(ctx context.Context, w io.Writer, c client.Client, o *manifests.Options, installed []*unstructured.Unstructured, note string) error {
	for _, kind := range []string{"RoleBinding", "Role", "ClusterRoleBinding", "ClusterRole"} {
		err := pruneKind(ctx, w, c, rbacv1.SchemeGroupVersion.WithKind(kind), installed, note,
			client.MatchingLabels(manifests.InstalledLabels(o.Namespace)), client.MatchingFields{"metadata.name": o.Values.PinRole()})
		if err != nil && !apierrors.IsForbidden(err) { // who may not list them in all namespaces may not remove them
			return err
		}
	}
	return nil
}

// pruneDashboard removes the dashboard if it is not installed any more, or in another namespace.
func pruneDashboard(ctx context.Context, w io.Writer, c client.Client, namespace string, installed []*unstructured.Unstructured, note string) error {
	labels := client.MatchingLabels(manifests.InstalledDashboardLabels(namespace))
	found := &appsv1.DeploymentList{}
	if err := c.List(ctx, found, labels); err != nil {
		return fmt.Errorf("look for what is not installed any more: %w", err)
	}
	if len(found.Items) == 0 {
		return nil
	}
	for _, kind := range append(manifests.ManagerKinds(), manifests.OtherKinds()...) {
		if err := pruneKind(ctx, w, c, kind, installed, note, labels); err != nil {
			return err
		}
	}
	return nil
}

func pruneKind(ctx context.Context, w io.Writer, c client.Client, kind schema.GroupVersionKind, installed []*unstructured.Unstructured, note string, which ...client.ListOption) error {
	list := &unstructured.UnstructuredList{}
	list.SetGroupVersionKind(kind)
	err := c.List(ctx, list, which...)
	if apimeta.IsNoMatchError(err) || apierrors.IsNotFound(err) {
		return nil // an older API server does not have the kind
	}
	if err != nil {
		return fmt.Errorf("look for what is not installed any more: %w", err)
	}
	for i := range list.Items {
		if err := pruneOne(ctx, w, c, &list.Items[i], installed, note); err != nil {
			return err
		}
	}
	return nil
}

func pruneOne(ctx context.Context, w io.Writer, c client.Client, obj *unstructured.Unstructured, installed []*unstructured.Unstructured, note string) error {
	if slices.ContainsFunc(installed, func(i *unstructured.Unstructured) bool {
		return i.GetKind() == obj.GetKind() && i.GetNamespace() == obj.GetNamespace() && i.GetName() == obj.GetName()
	}) {
		return nil
	}
	what, uid, version := strings.ToLower(obj.GetKind())+"/"+obj.GetName(), obj.GetUID(), obj.GetResourceVersion()
	err := c.Delete(ctx, obj, client.Preconditions{UID: &uid, ResourceVersion: &version})
	if client.IgnoreNotFound(err) != nil {
		return fmt.Errorf("delete %s: %w", what, err)
	}
	_, _ = fmt.Fprintf(w, "%s deleted%s\n", what, note)
	return nil
}
