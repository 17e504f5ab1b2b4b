package object

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	utilyaml "k8s.io/apimachinery/pkg/util/yaml"
	"sigs.k8s.io/yaml"
)

// Parse reads the objects of a manifest in their order. Empty documents are
// skipped; a list becomes its items. An object without a name gets the default; where
// that is empty, it is refused.
func Parse(manifest, defaultName string) ([]*unstructured.Unstructured, error) {
	var objects []*unstructured.Unstructured
	documents := utilyaml.NewYAMLReader(bufio.NewReader(strings.NewReader(manifest)))
	for number := 1; ; number++ {
		document, err := documents.Read()
		if errors.Is(err, io.EOF) {
			return objects, nil
		}
		if err != nil {
			return nil, fmt.Errorf("read document %d: %w", number, err)
		}
		parsed, err := parseDocument(document, defaultName)
		if err != nil {
			return nil, fmt.Errorf("document %d: %w", number, err)
		}
		objects = append(objects, parsed...)
	}
}

func parseDocument(document []byte, defaultName string) ([]*unstructured.Unstructured, error) {
	raw, err := yaml.YAMLToJSON(document)
	if err != nil {
		return nil, fmt.Errorf("invalid YAML: %w", err)
	}
	if bytes.Equal(raw, []byte("null")) {
		return nil, nil
	}
	u := &unstructured.Unstructured{}
	if err := u.UnmarshalJSON(raw); err != nil {
		head := metav1.PartialObjectMetadata{}
		if json.Unmarshal(raw, &head) == nil && head.APIVersion != "" && versionProblem(head.APIVersion) != "" {
			return nil, fmt.Errorf("%s %s: apiVersion: %s", head.Kind, head.Name, versionProblem(head.APIVersion))
		}
		return nil, fmt.Errorf("not a Kubernetes object: %w", err)
	}
	if !u.IsList() {
		return checked(u, defaultName)
	}
	return parseList(u, defaultName)
}

func parseList(u *unstructured.Unstructured, defaultName string) ([]*unstructured.Unstructured, error) {
	list, err := u.ToList()
	if err != nil {
		return nil, fmt.Errorf("invalid list: %w", err)
	}
	var objects []*unstructured.Unstructured
	for i := range list.Items {
		one, err := checked(&list.Items[i], defaultName)
		if err != nil {
			return nil, fmt.Errorf("item %d: %w", i+1, err)
		}
		objects = append(objects, one...)
	}
	return objects, nil
}

// checked refuses an object without a kind, an apiVersion or a name, or with one that no request
// can have.
func checked(u *unstructured.Unstructured, defaultName string) ([]*unstructured.Unstructured, error) {
	if _, ok := u.Object["metadata"].(map[string]any); u.Object["metadata"] != nil && !ok {
		return nil, errors.New("metadata is not a map")
	}
	if u.GetName() == "" && defaultName != "" {
		if u.Object["metadata"] == nil {
			delete(u.Object, "metadata")
		}
		u.SetName(defaultName)
	}
	switch {
	case u.GetKind() == "":
		return nil, errors.New("has no kind")
	case u.GetAPIVersion() == "":
		return nil, errors.New("has no apiVersion")
	case u.GetName() == "":
		return nil, fmt.Errorf("%s has no metadata.name", u.GetKind())
	}
	if why := versionProblem(u.GetAPIVersion()); why != "" {
		return nil, fmt.Errorf("%s %s: apiVersion: %s", u.GetKind(), u.GetName(), why)
	}
	if why := RefOf(u).Problem(); why != "" {
		return nil, errors.New(why)
	}
	return []*unstructured.Unstructured{u}, checkMetadata(u)
}

// checkMetadata refuses labels and annotations whose values are not strings, also in
// Pod templates.
func checkMetadata(u *unstructured.Unstructured) error {
	for _, path := range [][]string{{"metadata"}, {"spec", "template", "metadata"}} {
		for _, field := range []string{"labels", "annotations"} {
			full := append(slices.Clone(path), field)
			_, _, err := unstructured.NestedStringMap(u.Object, full...)
			if _, there, _ := unstructured.NestedMap(u.Object, full...); there && err != nil {
				return fmt.Errorf("%s %s: values of %s must be strings; quote them", u.GetKind(), u.GetName(), strings.Join(full, "."))
			}
		}
	}
	return nil
}

// Sort brings objects into the order in which they are applied. Objects of one kind
// stay in the order in which they are listed.
func Sort(objects []*unstructured.Unstructured) {
	slices.SortStableFunc(objects, func(a, b *unstructured.Unstructured) int { return rank(a) - rank(b) })
}

// kindOrder is the order in which objects are applied after Namespaces and
// CustomResourceDefinitions: what Pods run under or read comes first, what sends
// traffic to them last. Kinds that are not listed come at the end.
var kindOrder = []string{
	"PriorityClass", "NetworkPolicy", "ResourceQuota", "LimitRange", "PodDisruptionBudget",
	"ServiceAccount", "Secret", "ConfigMap", "StorageClass", "PersistentVolume", "PersistentVolumeClaim",
	"ClusterRole", "ClusterRoleBinding", "Role", "RoleBinding", "Service",
	"DaemonSet", "Pod", "ReplicationController", "ReplicaSet", "Deployment", "HorizontalPodAutoscaler", "StatefulSet", "Job", "CronJob",
	"IngressClass", "Ingress", "APIService", "MutatingWebhookConfiguration", "ValidatingWebhookConfiguration",
}

// rank is the position of an object in that order.
func rank(u *unstructured.Unstructured) int {
	i := slices.Index(kindOrder, u.GetKind())
	switch {
	case IsFoundation(u):
		return -1
	case i < 0:
		return len(kindOrder)
	default:
		return i
	}
}

// IsFoundation is true of what must exist before other objects can be applied.
func IsFoundation(u *unstructured.Unstructured) bool {
	gk := u.GroupVersionKind().GroupKind()
	return gk == NamespaceKind || gk == CRDKind
}
