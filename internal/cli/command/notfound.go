package command

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	apimeta "k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"

	kudov1 "github.com/spillway-dev/spillway/api/kudo/v1beta1"
	"github.com/spillway-dev/spillway/internal/describe"
	"github.com/spillway-dev/spillway/internal/kube"
	"github.com/spillway-dev/spillway/internal/nearest"
)

// NotFound is the error for an object that does not exist: that its namespace does not
// exist, or which other object of its kind may have been meant.
func NotFound(ctx context.Context, reader client.Reader, kind schema.GroupVersionKind, namespace, name string) error {
	lower, in := strings.ToLower(kind.Kind)+"/", ""
	if namespace != "" {
		if err := NamespaceMissing(ctx, reader, namespace); err != nil {
			return err
		}
		in = " in namespace " + namespace
	}
	if near := Near(ctx, reader, kind, namespace, name); near != "" {
		return fmt.Errorf("%s not found%s; did you mean %s?", lower+name, in, lower+near)
	}
	switch others := elsewhere(ctx, reader, kind, namespace, name); len(others) {
	case 0:
	case 1:
		return fmt.Errorf("%s not found%s; it is in namespace %s: name that with -n", lower+name, in, others[0])
	default:
		return fmt.Errorf("%s not found%s; namespaces %s have one: name one with -n", lower+name, in, strings.Join(others, ", "))
	}
	if kind.GroupKind() == kudov1.GroupVersion.WithKind(describe.KindInstance).GroupKind() {
		in += "; to see all: spillway package get instances -n " + namespace
	}
	return fmt.Errorf("%s not found%s", lower+name, in)
}

// Missing is an error if an object that a person has named surely does not exist. What may not
// be read may exist, and so may what is of a kind that is not known here.
func Missing(ctx context.Context, reader client.Reader, ref describe.Ref) error {
	kind, known := describe.KindNamed(ref.Kind)
	if !known {
		return nil
	}
	obj := kube.Metadata(kind)
	switch err := reader.Get(ctx, client.ObjectKey{Namespace: ref.Namespace, Name: ref.Name}, obj); {
	case apimeta.IsNoMatchError(err):
		return NotInstalled(ref.String(), ref.Kind)
	case apierrors.IsNotFound(err):
		return NotFound(ctx, reader, kind, ref.Namespace, ref.Name)
	default:
		return nil
	}
}

// NotInstalled is the error for an object of one of Spillway's own kinds that the cluster does
// not have.
func NotInstalled(what, kind string) error {
	return fmt.Errorf("%s: the kind is not installed; install it with: %s", what, describe.Installs(kind))
}

// mostNamespaces is how many namespaces are named in which an object is instead.
const mostNamespaces = 3

// elsewhere are the first namespaces with an object of that name, as far as they may be seen.
func elsewhere(ctx context.Context, reader client.Reader, kind schema.GroupVersionKind, namespace, name string) []string {
	if namespace == "" {
		return nil
	}
	all := kube.MetadataList(kind)
	_ = reader.List(ctx, all, client.MatchingFields{"metadata.name": name}) // without them there is nothing to suggest
	var in []string
	for i := range all.Items {
		if o := all.Items[i]; o.Name == name && o.Namespace != namespace {
			in = append(in, o.Namespace)
		}
	}
	slices.Sort(in)
	return in[:min(len(in), mostNamespaces)]
}

// Near is the name of the object of a kind that a person may have mistyped, "" if there is
// none or it may not be seen.
func Near(ctx context.Context, reader client.Reader, kind schema.GroupVersionKind, namespace, name string) string {
	all := kube.MetadataList(kind)
	_ = reader.List(ctx, all, client.InNamespace(namespace)) // without them there is nothing to suggest
	known := make([]string, 0, len(all.Items))
	for i := range all.Items {
		known = append(known, all.Items[i].Name)
	}
	return nearest.Meant(name, known)
}

// WithName are the objects of a name, of all kinds that a ring rolls or that it rolls workloads
// for, as far as they may be seen.
func WithName(ctx context.Context, reader client.Reader, namespace, name string) []string {
	var found []string
	for _, of := range append(slices.Clone(RolledKinds), describe.KindConfigMap, describe.KindSecret) {
		kind, _ := describe.KindNamed(of)
		obj := kube.Metadata(kind)
		if reader.Get(ctx, client.ObjectKey{Namespace: namespace, Name: name}, obj) == nil {
			found = append(found, strings.ToLower(kind.Kind)+"/"+name)
		}
	}
	return found
}

// ErrBothNamespaces is that one namespace was named, and all.
var ErrBothNamespaces = errors.New("-n and -A contradict each other; leave one out")

// NamespaceMissing returns an error that says so if a namespace is surely not found. What
// may not be looked at may exist.
func NamespaceMissing(ctx context.Context, reader client.Reader, name string) error {
	namespaces := corev1.SchemeGroupVersion.WithKind("Namespace")
	found := kube.Metadata(namespaces)
	err := reader.Get(ctx, client.ObjectKey{Name: name}, found)
	if isAnswer := !apierrors.HasStatusCause(err, metav1.CauseTypeUnexpectedServerResponse); !apierrors.IsNotFound(err) || !isAnswer {
		return nil
	}
	if near := Near(ctx, reader, namespaces, "", name); near != "" {
		return fmt.Errorf("namespace %s not found; did you mean %s?", name, near)
	}
	return fmt.Errorf("namespace %s not found; name another with -n", name)
}
