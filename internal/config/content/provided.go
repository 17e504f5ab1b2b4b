package content

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	apimeta "k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// ProviderGroup is the API group of the secrets store CSI driver.
const ProviderGroup = "secrets-store.csi.x-k8s.io"

// The secrets store CSI driver writes one SecretProviderClassPodStatus for each
// Pod and class, with the version of each object that it has mounted.
const (
	secretsStoreDriver     = "secrets-store.csi.k8s.io"
	providerClassAttribute = "secretProviderClass"
)

var podStatusKind = schema.GroupVersionKind{
	Group: ProviderGroup, Version: "v1", Kind: "SecretProviderClassPodStatus",
}

// NewPodStatus returns an empty status of what the driver has mounted for a Pod.
func NewPodStatus() *unstructured.Unstructured {
	u := &unstructured.Unstructured{}
	u.SetGroupVersionKind(podStatusKind)
	return u
}

// DriverInstalled is true if the API server serves the driver's kinds.
func DriverInstalled(mapper apimeta.RESTMapper) (bool, error) {
	_, err := mapper.RESTMapping(podStatusKind.GroupKind(), podStatusKind.Version)
	if apimeta.IsNoMatchError(err) {
		return false, nil
	}
	if err != nil {
		return false, fmt.Errorf("look up the kinds of the secrets store driver: %w", err)
	}
	return true, nil
}

// provided returns the versions of a class's objects that the newest Pod has
// mounted: those that a new Pod would get. There are none where the driver is not
// installed.
func provided(ctx context.Context, reader client.Reader, o Object) (map[string]string, error) {
	list := PodStatuses()
	err := reader.List(ctx, list, client.InNamespace(o.Namespace), client.UnsafeDisableDeepCopy)
	if apimeta.IsNoMatchError(err) || apierrors.IsNotFound(err) {
		return nil, nil //nolint:nilnil // no versions is what a cluster without the driver has
	}
	if err != nil {
		return nil, fmt.Errorf("list what the secrets store driver has mounted: %w", err)
	}
	var (
		newest   time.Time
		versions map[string]string
	)
	for i := range list.Items {
		item := &list.Items[i]
		created := item.GetCreationTimestamp().Time
		if classOf(item) == o.Name && (versions == nil || created.After(newest)) {
			newest, versions = created, versionsOf(item)
		}
	}
	return versions, nil
}

// PodStatuses is an empty list of them.
func PodStatuses() *unstructured.UnstructuredList {
	list := &unstructured.UnstructuredList{}
	list.SetGroupVersionKind(podStatusKind.GroupVersion().WithKind(podStatusKind.Kind + "List"))
	return list
}

func classOf(status *unstructured.Unstructured) string {
	class, _, _ := unstructured.NestedString(status.Object, "status", "secretProviderClassName")
	return class
}

func versionsOf(status *unstructured.Unstructured) map[string]string {
	versions := map[string]string{}
	objects, _, _ := unstructured.NestedSlice(status.Object, "status", "objects")
	for _, object := range objects {
		fields, _ := object.(map[string]any)
		id, _ := fields["id"].(string)
		version, _ := fields["version"].(string)
		versions[id] = version
	}
	return versions
}

// providedFact is the fact of a class; its versions are not secret, and serve as
// digests.
func providedFact(versions map[string]string) fact {
	if versions == nil {
		return fact{}
	}
	var b strings.Builder
	for _, id := range slices.Sorted(maps.Keys(versions)) {
		b.WriteString(id + "=" + versions[id] + ";")
	}
	return fact{exists: true, version: b.String(), digests: maps.Clone(versions)}
}
