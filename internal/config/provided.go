package config

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

// The secrets store CSI driver tells, in one SecretProviderClassPodStatus for
// each Pod and class, which version of each object it has mounted there.
const (
	secretsStoreDriver     = "secrets-store.csi.k8s.io"
	providerClassAttribute = "secretProviderClass"
)

var podStatusKind = schema.GroupVersionKind{
	Group: "secrets-store.csi.x-k8s.io", Version: "v1", Kind: "SecretProviderClassPodStatus",
}

func emptyPodStatus() *unstructured.Unstructured {
	u := &unstructured.Unstructured{}
	u.SetGroupVersionKind(podStatusKind)
	return u
}

// PodStatuses is an empty list of what the driver tells.
func PodStatuses() *unstructured.UnstructuredList {
	list := &unstructured.UnstructuredList{}
	list.SetGroupVersionKind(podStatusKind.GroupVersion().WithKind(podStatusKind.Kind + "List"))
	return list
}

// driverInstalled is true if the API server knows the driver's kinds.
func driverInstalled(mapper apimeta.RESTMapper) (bool, error) {
	_, err := mapper.RESTMapping(podStatusKind.GroupKind(), podStatusKind.Version)
	if apimeta.IsNoMatchError(err) {
		return false, nil
	}
	if err != nil {
		return false, fmt.Errorf("look for the secrets store driver: %w", err)
	}
	return true, nil
}

// provided returns the versions of a class's objects as the newest Pod has them
// mounted: the one that any Pod would get now. There are none where the driver
// is not installed.
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

// providedFacts are the facts of a class; its versions are no secrets, and
// serve as digests.
func providedFacts(versions map[string]string) facts {
	if versions == nil {
		return facts{}
	}
	var b strings.Builder
	for _, id := range slices.Sorted(maps.Keys(versions)) {
		b.WriteString(id + "=" + versions[id] + ";")
	}
	return facts{exists: true, version: b.String(), digests: maps.Clone(versions)}
}
