package ops

import (
	"context"
	"fmt"
	"io"
	"slices"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	apimeta "k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/spillway-dev/spillway/internal/manifests"
	"github.com/spillway-dev/spillway/internal/vocabulary"
)

// prune removes the webhook configurations and policies of rings that are not
// installed any more, or that do not declare them any more. A note follows what is said of each.
func prune(ctx context.Context, w io.Writer, c client.Client, namespace string, installed []*unstructured.Unstructured, note string) error {
	for _, kind := range manifests.AdmissionKinds() {
		list := &unstructured.UnstructuredList{}
		list.SetGroupVersionKind(kind)
		err := c.List(ctx, list, client.MatchingLabels(manifests.InstalledLabels(namespace)), client.HasLabels{vocabulary.Ring})
		if apimeta.IsNoMatchError(err) || apierrors.IsNotFound(err) {
			continue // an older API server does not have the kind
		}
		if err != nil {
			return fmt.Errorf("look for what is not installed any more: %w", err)
		}
		for i := range list.Items {
			if err := pruneOne(ctx, w, c, &list.Items[i], installed, note); err != nil {
				return err
			}
		}
	}
	return nil
}

func pruneOne(ctx context.Context, w io.Writer, c client.Client, obj *unstructured.Unstructured, installed []*unstructured.Unstructured, note string) error {
	if slices.ContainsFunc(installed, func(i *unstructured.Unstructured) bool {
		return i.GetKind() == obj.GetKind() && i.GetName() == obj.GetName()
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
