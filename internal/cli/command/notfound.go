package command

import (
	"context"
	"fmt"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/spillway-dev/spillway/internal/nearest"
)

// NotFound is the error for an object that does not exist: that its namespace does not
// exist, or which other object of its kind may have been meant.
func NotFound(ctx context.Context, reader client.Reader, kind schema.GroupVersionKind, namespace, name string) error {
	if err := NamespaceMissing(ctx, reader, namespace); err != nil {
		return err
	}
	lower := strings.ToLower(kind.Kind) + "/"
	if near := Near(ctx, reader, kind, namespace, name); near != "" {
		return fmt.Errorf("%s not found in namespace %s; did you mean %s?", lower+name, namespace, lower+near)
	}
	return fmt.Errorf("%s not found in namespace %s", lower+name, namespace)
}

// Near is the name of the object of a kind that a person may have mistyped, "" if there is
// none or it may not be seen.
func Near(ctx context.Context, reader client.Reader, kind schema.GroupVersionKind, namespace, name string) string {
	var all metav1.PartialObjectMetadataList
	all.SetGroupVersionKind(kind)
	_ = reader.List(ctx, &all, client.InNamespace(namespace)) // without them there is nothing to suggest
	known := make([]string, 0, len(all.Items))
	for i := range all.Items {
		known = append(known, all.Items[i].Name)
	}
	return nearest.Meant(name, known)
}

// KindOf is the kind of objects that a ring rolls, by its name.
func KindOf(kind string) (schema.GroupVersionKind, bool) {
	for _, known := range Rolled {
		if known.Kind == kind {
			return known, true
		}
	}
	return schema.GroupVersionKind{}, false
}
