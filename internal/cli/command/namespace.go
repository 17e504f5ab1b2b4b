package command

import (
	"context"
	"errors"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/spillway-dev/spillway/internal/nearest"
)

// ErrBothNamespaces is that one namespace was named, and all.
var ErrBothNamespaces = errors.New("-n and -A contradict each other; leave one out")

// NamespaceMissing returns an error that says so if a namespace is surely not found. What
// may not be looked at may exist.
func NamespaceMissing(ctx context.Context, reader client.Reader, name string) error {
	namespaces := corev1.SchemeGroupVersion.WithKind("Namespace")
	var found metav1.PartialObjectMetadata
	found.SetGroupVersionKind(namespaces)
	err := reader.Get(ctx, client.ObjectKey{Name: name}, &found)
	if isAnswer := !apierrors.HasStatusCause(err, metav1.CauseTypeUnexpectedServerResponse); !apierrors.IsNotFound(err) || !isAnswer {
		return nil
	}
	var all metav1.PartialObjectMetadataList
	all.SetGroupVersionKind(namespaces)
	_ = reader.List(ctx, &all) // without them there is nothing to suggest
	known := make([]string, 0, len(all.Items))
	for i := range all.Items {
		known = append(known, all.Items[i].Name)
	}
	if near := nearest.Meant(name, known); near != "" {
		return fmt.Errorf("namespace %s not found; did you mean %s?", name, near)
	}
	return fmt.Errorf("namespace %s not found; name another with -n", name)
}
